package api

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Options are the settings of an endpoint beyond whom to ask and what, as they stand in JSON. What is at its default is
// absent.
type Options struct {
	Subscribe   bool              `json:"subscribe,omitempty"`
	Framing     probe.Framing     `json:"framing,omitempty"`
	IPVersion   probe.IPVersion   `json:"ip_version,omitempty"`
	HTTPVersion probe.HTTPVersion `json:"http_version,omitempty"`
	TLS         *TLS              `json:"tls,omitempty"`
	OAuth       *OAuth            `json:"oauth,omitempty"`
	Chain       *Chain            `json:"chain,omitempty"`
	Canary      *probe.Canary     `json:"canary,omitempty"`
	ACPVariant  probe.ACPVariant  `json:"acp_variant,omitempty"`
	LSP         *probe.LSPOptions `json:"lsp,omitempty"`
}

// TLS says how the certificate of an endpoint is judged. ClientKey is only ever sent by who exports secrets.
type TLS struct {
	CA            string  `json:"ca,omitempty"`
	ServerName    string  `json:"server_name,omitempty"`
	ClientCert    string  `json:"client_cert,omitempty"`
	ClientKey     *string `json:"client_key,omitempty"`
	HasClientKey  bool    `json:"has_client_key,omitempty"`
	Insecure      bool    `json:"insecure,omitempty"`
	ExpiryWarning string  `json:"expiry_warning,omitempty"`
}

// OAuth is how a token for the endpoint is had. ClientSecret is only ever sent by who exports secrets.
type OAuth struct {
	ClientID        string   `json:"client_id"`
	ClientSecret    *string  `json:"client_secret,omitempty"`
	HasClientSecret bool     `json:"has_client_secret"`
	Scopes          []string `json:"scopes,omitempty"`
	TokenURL        string   `json:"token_url,omitempty"`
	Resource        string   `json:"resource,omitempty"`
}

// Chain is what is expected of the chain that an endpoint serves.
type Chain struct {
	ID      string `json:"id,omitempty"`
	Lagging int64  `json:"lagging,omitempty"`
	Syncing int64  `json:"syncing,omitempty"`
	MaxAge  string `json:"max_age,omitempty"`
}

// optionsJSON returns o as it stands in JSON. What is asked stands in the member request.
func optionsJSON(o probe.Options) Options {
	shown := Options{
		Subscribe:   o.Subscribe,
		Framing:     o.Framing,
		IPVersion:   o.IP,
		HTTPVersion: o.HTTP,
		Canary:      o.Canary,
		ACPVariant:  o.ACP,
	}
	if t := o.TLS; t != (probe.TLS{}) {
		shown.TLS = &TLS{
			CA: t.CA, ServerName: t.ServerName, ClientCert: t.ClientCert, HasClientKey: t.ClientKey != "", Insecure: t.Insecure,
			ExpiryWarning: durationOrNone(t.ExpiryWarning),
		}
	}
	if a := o.OAuth; a != nil {
		shown.OAuth = &OAuth{
			ClientID: a.ClientID, HasClientSecret: a.ClientSecret != "", Scopes: a.Scopes, TokenURL: a.TokenURL, Resource: a.Resource,
		}
	}
	if c := o.Chain; c != (probe.Chain{}) {
		shown.Chain = &Chain{ID: c.ID, Lagging: c.Lagging, Syncing: c.Syncing, MaxAge: durationOrNone(c.MaxAge)}
	}
	if o.LSP != (probe.LSPOptions{}) {
		shown.LSP = &o.LSP
	}
	return shown
}

// Reveal fills in what an answer never shows: the secrets of o, for who holds the database and asks for them.
func (e *Endpoint) Reveal(o store.Endpoint) {
	e.URL = o.URL
	for i := range e.Headers {
		e.Headers[i].Value = &o.Headers[i].Value
	}
	if o.Options.TLS.ClientKey != "" {
		e.TLS.ClientKey = &o.Options.TLS.ClientKey
	}
	if o.Options.OAuth != nil && o.Options.OAuth.ClientSecret != "" {
		e.OAuth.ClientSecret = &o.Options.OAuth.ClientSecret
	}
	if o.Command != nil {
		e.Command.Args = o.Command.Args
		for i := range e.Command.Env {
			e.Command.Env[i].Value = &o.Command.Env[i].Value
		}
	}
}

func durationOrNone(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return durationText(d)
}

// requestJSON returns what an endpoint is asked as it stands in JSON.
func requestJSON(e store.Endpoint) Request {
	r := Request{Method: e.Request.Method, Params: e.Request.Params, Batch: e.Options.Batch, Notify: e.Options.Notify}
	if !isZeroExpect(e.Options.Expect) {
		r.Expect = &e.Options.Expect
	}
	return r
}

func isZeroExpect(e probe.Expect) bool {
	return e.Path == "" && e.Type == "" && e.Equals == nil && e.Regex == "" && e.Min == nil && e.Max == nil && e.CEL == ""
}

// optionsInput are the members of the options that somebody sent, by name. Null goes back to the default, an object is
// merged into the one that is there.
type optionsInput map[string]json.RawMessage

// The members of the options, as they stand in the body and in its member request.
var (
	optionMembers  = []string{"subscribe", "framing", "ip_version", "http_version", "tls", "oauth", "chain", "canary", "acp_variant", "lsp"}
	requestMembers = []string{"expect", "batch", "notify"}
)

// takeOptions takes members out of m, under their full names; nil when there are none.
func takeOptions(m *members, names []string, into optionsInput) optionsInput {
	for _, name := range names {
		raw := m.take(name)
		if raw == nil {
			continue
		}
		if into == nil {
			into = optionsInput{}
		}
		into[m.path+name] = raw
	}
	return into
}

// onto returns the options with what in names, as far as it could be read, and every mistake met. moved says that the endpoint is at another address,
// so that kept secrets must be given again.
func (in optionsInput) onto(o probe.Options, moved bool) (probe.Options, []probe.Problem) {
	if len(in) == 0 && !moved {
		return o, nil
	}
	m := &members{values: optionsDocument(o), mistakes: new([]probe.Problem)}
	for name, raw := range in {
		if isNull(raw) {
			delete(m.values, name)
			continue
		}
		m.values[name] = mergeMembers(m.values[name], raw)
	}
	return readOptions(m, o, moved), *m.mistakes
}

// optionsDocument returns the members of o by their full names, as an answer shows them.
func optionsDocument(o probe.Options) map[string]json.RawMessage {
	document := map[string]json.RawMessage{}
	take := func(prefix string, v any, names []string) {
		var all map[string]json.RawMessage
		text, err := encode(v)
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil {
			panic(err) // what was kept as JSON can be written as JSON
		}
		for _, name := range names {
			if raw, there := all[name]; there {
				document[prefix+name] = raw
			}
		}
	}
	take("", optionsJSON(o), optionMembers)
	take("request.", requestJSON(store.Endpoint{Options: o}), requestMembers)
	return document
}

// mergeMembers returns an object with the members of patch in place of its own, those that are null taken out (RFC 7396).
// What is data and not a setting, such as the arguments of a canary, is replaced whole. What is no object takes its place.
func mergeMembers(object, patch json.RawMessage) json.RawMessage {
	var into, from map[string]json.RawMessage
	if json.Unmarshal(patch, &from) != nil || from == nil {
		return patch
	}
	if json.Unmarshal(object, &into) != nil || into == nil {
		into = map[string]json.RawMessage{}
	}
	for name, raw := range from {
		switch {
		case isNull(raw):
			delete(into, name)
			delete(into, "has_"+name)
		case name == "expect":
			into[name] = mergeMembers(into[name], raw)
		default:
			into[name] = raw
		}
	}
	merged, err := encode(into)
	if err != nil {
		return patch // not reached: it was JSON before
	}
	return bytes.TrimSpace(merged)
}

// readOptions reads a whole document of options. kept are those that are there, for the secrets that it does not repeat.
func readOptions(m *members, kept probe.Options, moved bool) probe.Options {
	o := probe.Options{Expect: readExpect(m, "request.expect"), Batch: readBatch(m)}
	set(&o.Notify, m.flag("request.notify", false))
	set(&o.Subscribe, m.flag("subscribe", false))
	o.Framing = probe.Framing(orEmpty(m.text("framing", "")))
	o.IP = probe.IPVersion(orEmpty(m.text("ip_version", "")))
	o.HTTP = probe.HTTPVersion(orEmpty(m.text("http_version", "")))
	o.ACP = probe.ACPVariant(orEmpty(m.text("acp_variant", "")))
	o.TLS = readTLS(m, kept.TLS, moved)
	o.OAuth = readOAuth(m, kept.OAuth, moved)
	o.Chain = readChain(m)
	o.Canary = readCanary(m)
	if inner, _ := m.object("lsp"); inner != nil {
		set(&o.LSP.AllowExit, inner.flag("allow_exit", false))
		inner.rest()
	}
	return o
}

func readTLS(m *members, kept probe.TLS, moved bool) probe.TLS {
	inner, _ := m.object("tls")
	if inner == nil {
		return probe.TLS{}
	}
	t := probe.TLS{
		CA:         orEmpty(inner.text("ca", "")),
		ServerName: orEmpty(inner.text("server_name", "")),
		ClientCert: orEmpty(inner.text("client_cert", "")),
		ClientKey:  inner.secret("client_key", kept.ClientKey, moved),
	}
	set(&t.Insecure, inner.flag("insecure", false))
	t.ExpiryWarning = inner.lasting("expiry_warning")
	inner.rest()
	return t
}

// readOAuth reads how a token is had. The client secret goes to the token endpoint, which is where token_url says or where
// the endpoint itself leads, and the token that it buys goes to the endpoint: it is given again when either changes.
func readOAuth(m *members, kept *probe.OAuth, moved bool) *probe.OAuth {
	inner, _ := m.object("oauth")
	if inner == nil {
		return nil
	}
	before := probe.OAuth{}
	if kept != nil {
		before = *kept
	}
	a := probe.OAuth{
		ClientID: orEmpty(inner.text("client_id", "")),
		TokenURL: orEmpty(inner.text("token_url", "")),
		Resource: orEmpty(inner.text("resource", "")),
	}
	a.ClientSecret = inner.secret("client_secret", before.ClientSecret, moved || !sameAddress(before.TokenURL, a.TokenURL))
	set(&a.Scopes, inner.texts("scopes"))
	inner.rest()
	return &a
}

func readChain(m *members) probe.Chain {
	inner, _ := m.object("chain")
	if inner == nil {
		return probe.Chain{}
	}
	c := probe.Chain{ID: orEmpty(inner.text("id", ""))}
	set(&c.Lagging, member[int64](inner, "lagging", 0, "a whole number of blocks"))
	set(&c.Syncing, member[int64](inner, "syncing", 0, "a whole number of blocks"))
	c.MaxAge = inner.lasting("max_age")
	inner.rest()
	return c
}

func readCanary(m *members) *probe.Canary {
	inner, _ := m.object("canary")
	if inner == nil {
		return nil
	}
	c := probe.Canary{
		Tool:      orEmpty(inner.text("tool", "")),
		Arguments: inner.data("arguments"),
		Expect:    readExpect(inner, "expect"),
	}
	inner.rest()
	return &c
}

func readExpect(m *members, name string) probe.Expect {
	inner, _ := m.object(name)
	if inner == nil {
		return probe.Expect{}
	}
	e := probe.Expect{
		Path:   orEmpty(inner.text("path", "")),
		Type:   orEmpty(inner.text("type", "")),
		Equals: inner.data("equals"),
		Regex:  orEmpty(inner.text("regex", "")),
		Min:    inner.data("min"),
		Max:    inner.data("max"),
		CEL:    orEmpty(inner.text("cel", "")),
	}
	inner.rest()
	return e
}

func readBatch(m *members) []probe.Call {
	items := m.list("request.batch")
	if items == nil {
		return nil
	}
	var calls []probe.Call
	for i, raw := range *items {
		inner := m.inside(raw, m.path+indexed("request.batch", i))
		if inner == nil {
			calls = append(calls, probe.Call{}) // so that what is said of the next ones names their place
			continue
		}
		c := probe.Call{
			Method: orEmpty(inner.text("method", "")), Params: inner.data("params"), Expect: readExpect(inner, "expect"),
		}
		set(&c.Notify, inner.flag("notify", false))
		inner.rest()
		calls = append(calls, c)
	}
	return calls
}

// secret reads a secret. Absent, with has_… set, it is the one that is kept, unless it would go elsewhere.
func (m *members) secret(name, kept string, elsewhere bool) string {
	given, has := m.text(name, ""), m.flag("has_"+name, false)
	switch {
	case given != nil:
		return *given
	case has == nil || !*has:
		return ""
	case kept == "":
		m.mistake(m.path+name, "is required")
		return ""
	case elsewhere:
		m.mistake(m.path+name, requiredAgain)
		return ""
	}
	return kept
}

// lasting reads a duration; zero when it is absent or empty.
func (m *members) lasting(name string) time.Duration {
	text := m.duration(name, "")
	if text == nil || *text == "" {
		return 0
	}
	d, err := time.ParseDuration(*text)
	if err != nil {
		m.mistake(m.path+name, `must be a duration like "336h" or "90s"`)
	}
	return d
}

// data reads JSON that is nobody's but the endpoint's; nil when it is absent or null.
func (m *members) data(name string) json.RawMessage {
	raw := m.take(name)
	if raw == nil || isNull(raw) {
		return nil
	}
	return raw
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
