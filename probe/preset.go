package probe

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// preset is all that this package knows of one family of chains, one file of presets/ each. To know another chain, or
// another family that answers in known ways, is to add data.
type preset struct {
	Kind       Kind     `json:"kind"`
	Title      string   `json:"title"`      // "an EVM node"
	Unit       string   `json:"unit"`       // what heights count, as in "3 blocks"
	Transports []string `json:"transports"` // schemes of the URLs by which its nodes are reached, without their TLS twins

	Envelope     dialect       `json:"envelope,omitempty"`
	TextInData   bool          `json:"text_in_data,omitempty"` // the message of an error is always the same, its data tells
	Grace        seconds       `json:"starting_grace_s"`       // how long a node may say that it is starting
	Calls        []call        `json:"calls"`                  // in this order; the first is the liveness
	Instead      []variant     `json:"instead,omitempty"`
	Subscription *subscription `json:"subscription,omitempty"`
	Landmark     *landmark     `json:"landmark,omitempty"`
	Errors       []errorRule   `json:"errors,omitempty"` // the first that fits an error says what it means

	Default chainData   `json:"default"` // what is assumed of a chain that is not in Chains
	Chains  []chainData `json:"chains,omitempty"`
}

// dialect is how a family deviates from JSON-RPC 2.0 as a whole.
type dialect string

// The dialects; empty is JSON-RPC 2.0, with the liberties that chain nodes take.
const (
	// dialectRippled: {result: {status: "success" or "error", …}} without an id over HTTP; over WebSocket the method goes by
	// the name of command, and status stands beside result.
	dialectRippled dialect = "rippled"
	dialectTON     dialect = "ton" // {ok: true, result} or {ok: false, error, code}, without jsonrpc and id
)

// variant are the calls of an endpoint whose URL looks in a certain way.
type variant struct {
	URL   pattern `json:"url"` // of the URL's path
	Calls []call  `json:"calls"`
}

// call is one request of the conversation, and what its answer says.
type call struct {
	Step       string          `json:"step,omitempty"` // its name in the Result; empty: the method, or GET and the path
	Method     string          `json:"method,omitempty"`
	Params     json.RawMessage `json:"params,omitempty"`
	Get        string          `json:"get,omitempty"`        // a path to GET, in place of a method: "/…" of the host, "…" below the URL
	Transports []string        `json:"transports,omitempty"` // empty: all of the family
	Need       need            `json:"need"`

	Must     []value                    `json:"must,omitempty"`  // what an answer of this family cannot lack
	Equal    map[string]json.RawMessage `json:"equal,omitempty"` // what must stand at a path
	Read     reads                      `json:"read,omitzero"`
	Distance []distance                 `json:"distance,omitempty"` // how far the node is from where it should be; the first that is there counts
	Findings []rule                     `json:"findings,omitempty"`
	Statuses map[int]remark             `json:"statuses,omitempty"` // of a GET: other statuses than 200 with a body of the same kind
	Keep     map[string]value           `json:"keep,omitempty"`     // what later calls ask with: "$name" in their params stands for it, "$height" for the head's height
}

// need says what it means when a call fails.
type need string

// The needs.
const (
	needMust   need = "must"   // any failure decides the check
	needShould need = "should" // a node that does not know the method is well all the same
	needMay    need = "may"    // neither is an error any reason to worry
)

// reads are the places of what an answer may tell.
type reads struct {
	Height    value `json:"height,omitzero"`
	Hash      value `json:"hash,omitzero"`
	HeadHash  value `json:"head_hash,omitzero"` // of the head that another call told of
	Parent    value `json:"parent,omitzero"`
	Time      value `json:"time,omitzero"`
	Chain     value `json:"chain,omitzero"` // its id; a number is written in decimal
	Finalized value `json:"finalized,omitzero"`
	Safe      value `json:"safe,omitzero"`
	Software  value `json:"software,omitzero"` // name or version

	Peers      value `json:"peers,omitzero"`       // how many nodes it is connected to; none is a warning
	WantsPeers value `json:"wants_peers,omitzero"` // unless this is there and not true
}

// distance is what a node says of itself: a height it knows of, and the one it has. Either Behind, or Target and At; At
// is the head's height where it is left out.
type distance struct {
	Target value `json:"target,omitzero"`
	At     value `json:"at,omitzero"`
	Behind value `json:"behind,omitzero"`
	Class  Class `json:"class,omitempty"` // what to call it; empty: syncing
}

// rule finds something wrong in an answer. Exactly one of Is, Not, Below, Present and Busy is set.
type rule struct {
	Path    string            `json:"path"`
	Is      []json.RawMessage `json:"is,omitempty"`      // what stands there is one of these
	Not     []json.RawMessage `json:"not,omitempty"`     // something stands there and is none of these
	Below   *float64          `json:"below,omitempty"`   // a number stands there and is smaller
	Present bool              `json:"present,omitempty"` // anything stands there
	Busy    bool              `json:"busy,omitempty"`    // true stands there, or an object that tells what is being done
	Sure    bool              `json:"sure,omitempty"`    // beside one of them: it holds, however short the distance that the node tells
	remark
}

// remark is what something means.
type remark struct {
	Class Class  `json:"class,omitempty"` // empty: nothing is wrong
	Note  string `json:"note,omitempty"`
}

// errorRule says what an error means in a family. All members that are set must fit.
type errorRule struct {
	Codes []int    `json:"codes,omitempty"`
	Range []int    `json:"range,omitempty"` // of codes: lowest and highest
	Words []string `json:"words,omitempty"` // any of them, in lower case, somewhere in the error object
	Data  value    `json:"behind,omitzero"` // in the error object: how many blocks the node says it is behind
	remark
}

// subscription is how a family tells of new heads by itself.
type subscription struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"` // in rippled's dialect: what stands beside the command
	First  bool            `json:"first,omitempty"`  // needs the liveness call before it on the same connection
	Event  string          `json:"event,omitempty"`  // method, or type, of an event; empty: events repeat the id of the request
	ID     value           `json:"id,omitzero"`      // where in an event the id of the subscription stands, as the answer gave it
	Height value           `json:"height"`           // where in an event the height stands
}

// chainData is what is known of one chain of a family.
type chainData struct {
	Name      string   `json:"name,omitempty"`
	ID        string   `json:"id,omitempty"`      // as Facts.ChainID
	Aliases   []string `json:"aliases,omitempty"` // other names, and other spellings of the id
	BlockTime seconds  `json:"block_time_s,omitempty"`
	Lagging   uint64   `json:"lagging,omitempty"` // blocks behind its peers that make a node degraded
	Syncing   uint64   `json:"syncing,omitempty"` // and down
	MaxAge    seconds  `json:"max_age_s,omitempty"`
	Finality  uint64   `json:"finality,omitempty"` // blocks between the newest and the last final one that are too many
	Idle      bool     `json:"idle,omitempty"`     // makes blocks on demand: their age says nothing
}

// seconds is a duration as presets write it.
type seconds float64

func (s seconds) duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// pattern is a regular expression as presets write it.
type pattern struct{ *regexp.Regexp }

// UnmarshalText compiles a pattern.
func (p *pattern) UnmarshalText(text []byte) (err error) {
	p.Regexp, err = regexp.Compile(string(text))
	return err
}

//go:embed presets/*.json
var presetFiles embed.FS

// presets read the file of a family, once, when it is first asked for: a check should not pay for families it has nothing
// to do with. That all of them can be read is a matter of this package's own tests.
var presets = func() map[Kind]func() *preset {
	all := map[Kind]func() *preset{}
	for _, kind := range families {
		all[kind] = sync.OnceValue(func() *preset { return loadPreset(kind) })
	}
	return all
}()

// presetOf returns the preset of a family; nil for any other kind.
func presetOf(kind Kind) *preset {
	load, ok := presets[kind]
	if !ok {
		return nil
	}
	return load()
}

func loadPreset(kind Kind) *preset {
	raw, err := presetFiles.ReadFile("presets/" + string(kind) + ".json")
	if err != nil {
		panic("probe: " + err.Error())
	}
	p, err := readPreset(raw)
	if err != nil {
		panic(fmt.Sprintf("probe: presets/%s.json: %v", kind, err))
	}
	return p
}

// readPreset reads one file of presets. Members it does not know are mistakes.
func readPreset(raw []byte) (*preset, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var p preset
	if err := decoder.Decode(&p); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("something behind the object")
	}
	return &p, p.validate()
}

// validate returns everything that is wrong with p, joined.
func (p *preset) validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if p.Kind == "" || p.Title == "" || p.Unit == "" || p.Grace <= 0 {
		add("kind, title, unit and starting_grace_s are required")
	}
	if len(p.Transports) == 0 || len(p.Calls) == 0 {
		add("transports and calls are required")
	}
	if p.Envelope != "" && p.Envelope != dialectRippled && p.Envelope != dialectTON {
		add("unknown envelope %q", p.Envelope)
	}
	for _, calls := range p.everyCalls() {
		errs = append(errs, validateCalls(calls)...)
	}
	for _, e := range p.Errors {
		if e.Class.Verdict() == Unknown && e.Class != ClassRateLimited || len(e.Codes)+len(e.Range)+len(e.Words) == 0 || len(e.Range) != 0 && len(e.Range) != 2 {
			add("error rule %+v", e)
		}
	}
	if p.Default.Lagging == 0 || p.Default.Syncing < p.Default.Lagging {
		add("default needs lagging and syncing")
	}
	names := map[string]bool{}
	for _, c := range p.Chains {
		if c.Name == "" || c.ID == "" || c.BlockTime <= 0 && !c.Idle || c.Lagging != 0 && c.Syncing < c.Lagging {
			add("chain %q lacks something", c.Name)
		}
		for _, name := range append([]string{c.Name, c.ID}, c.Aliases...) {
			if names[strings.ToLower(name)] && name != c.ID {
				add("the name %q is taken", name)
			}
			names[strings.ToLower(name)] = true
		}
	}
	return errors.Join(errs...)
}

// everyCalls returns the lists of calls that p may hold.
func (p *preset) everyCalls() [][]call {
	all := [][]call{p.Calls}
	for _, v := range p.Instead {
		all = append(all, v.Calls)
	}
	return all
}

func validateCalls(calls []call) (errs []error) {
	height := false
	for i, call := range calls {
		fail := func(what string) { errs = append(errs, fmt.Errorf("call %d (%s): %s", i, call.name(), what)) }
		if call.Need != needMust && call.Need != needShould && call.Need != needMay || i == 0 && call.Need != needMust {
			fail("need")
		}
		if (call.Method == "") == (call.Get == "") {
			fail("either method or get")
		}
		r := call.Read
		for _, v := range []value{r.Height, r.Finalized, r.Safe, r.Peers} {
			if !v.isZero() && !v.encoding.isNumber() {
				fail(v.spec + " is no number")
			}
		}
		for _, v := range []value{r.Hash, r.Parent, r.Software} {
			if !v.isZero() && !v.encoding.isText() {
				fail(v.spec + " is no text")
			}
		}
		if !r.Time.isZero() && !r.Time.encoding.isTime() {
			fail(r.Time.spec + " is no time")
		}
		for _, f := range call.Findings {
			if verdicts[f.Class] != Degraded && verdicts[f.Class] != Down {
				fail("class " + string(f.Class))
			}
		}
		height = height || !r.Height.isZero()
	}
	if !height {
		errs = append(errs, errors.New("no call reads the height"))
	}
	return errs
}

// name returns the name of the call's step.
func (c *call) name() string {
	switch {
	case c.Step != "":
		return c.Step
	case c.Get != "":
		path, _, _ := strings.Cut(c.Get, "?")
		return "GET /" + strings.TrimPrefix(path, "/")
	default:
		return c.Method
	}
}

// callsFor returns the calls for an endpoint.
func (p *preset) callsFor(u *url.URL) []*call {
	calls := p.Calls
	for _, v := range p.Instead {
		if v.URL.MatchString(u.Path) {
			calls = v.Calls
			break
		}
	}
	wanted := make([]*call, 0, len(calls))
	for i := range calls {
		if c := &calls[i]; len(c.Transports) == 0 || slices.Contains(c.Transports, transportOf(u)) {
			wanted = append(wanted, c)
		}
	}
	return wanted
}

// transportOf returns the scheme of u as presets name it: without TLS.
func transportOf(u *url.URL) string {
	switch u.Scheme {
	case "https":
		return "http"
	case "wss":
		return "ws"
	case "tls":
		return "tcp"
	default:
		return u.Scheme
	}
}

// canonical returns the id of a chain as p writes it: the id of the known chain that goes by this name, alias or spelling,
// else the word itself, a hex number in decimal.
func (p *preset) canonical(word string) string {
	word = strings.TrimSpace(word)
	if c := p.chain(word); c != nil {
		return c.ID
	}
	if p.numericChains() && quantityShape.MatchString(word) {
		if n, ok := new(big.Int).SetString(word[2:], 16); ok {
			return n.String()
		}
	}
	return word
}

// chain returns what is known of the chain of this id, name or alias; nil when that is nothing.
func (p *preset) chain(word string) *chainData {
	if p.numericChains() && quantityShape.MatchString(word) {
		if n, ok := new(big.Int).SetString(word[2:], 16); ok {
			word = n.String()
		}
	}
	for _, byID := range []bool{true, false} { // the name of one chain may be the id of another: an id is what nodes say
		for i, c := range p.Chains {
			same := func(name string) bool { return strings.EqualFold(name, word) }
			if byID && c.ID == word || !byID && (same(c.Name) || same(c.ID) || slices.ContainsFunc(c.Aliases, same)) {
				return &p.Chains[i]
			}
		}
	}
	return nil
}

// numericChains reports whether the ids of the family's chains are numbers.
func (p *preset) numericChains() bool {
	for _, calls := range p.everyCalls() {
		for _, c := range calls {
			if c.Read.Chain.encoding.isNumber() {
				return true
			}
		}
	}
	return false
}

// nameOf returns the name of a chain for words to people: "1 (ethereum)".
func (p *preset) nameOf(id string) string {
	if c := p.chain(id); c != nil && c.Name != id {
		return id + " (" + c.Name + ")"
	}
	return id
}

// ChainName returns what the chain of an id is called, such as "ethereum" for 1 of kind evm; empty when nobody has said.
func ChainName(kind Kind, id string) string {
	if p := presetOf(kind); p != nil {
		if c := p.chain(id); c != nil {
			return c.Name
		}
	}
	return ""
}
