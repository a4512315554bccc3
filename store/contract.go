package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Contract is a tool list of an MCP server as it was from FirstSeen to LastSeen.
type Contract struct {
	ID         string
	EndpointID string
	Key        string // protocol era and credential: lists of different keys are not compared
	Hash       string // "sha256:…" of Tools
	FirstSeen  time.Time
	LastSeen   time.Time
	Present    bool           // it is what the server promises, as far as is known
	Tools      []byte         // canonical JSON; nil in lists, when it was larger than MaxTools, and when it is long past
	Changes    []probe.Change // against the one before of the same key, worst first; empty for the first one
}

// Told counts notices in an hour that begins with the first of them.
type Told struct {
	Since time.Time `json:"since,omitzero"`
	Count int       `json:"count,omitempty"`
}

// maxTold is how many changes of contracts the channels of an endpoint are told of in an hour. The rest are on its timeline.
const maxTold = 5

// again reports whether another notice may go out at this time, and counts it.
func (t Told) again(at time.Time) (Told, bool) {
	if at.Sub(t.Since) >= time.Hour {
		t = Told{Since: at}
	}
	if t.Count >= maxTold {
		return t, false
	}
	t.Count++
	return t, true
}

// Bounds of what is kept of contracts.
const (
	// MaxTools is the largest tool list that is kept, in bytes. Of a larger one there is the hash, and the changes that
	// led to it when the one before was not too large.
	MaxTools = 1 << 20
	// MaxContracts and MaxToolLists are how many contracts of an endpoint are kept, and how many with their tools. A
	// server that changes all the time does not fill the disk.
	MaxContracts = 200
	MaxToolLists = 20
	// maxKeys is how many contracts of different keys an endpoint has at a time: two eras and some credentials.
	maxKeys = 8
	// maxChanges is how many changes of one contract are kept: as many as DiffContracts tells of.
	maxChanges = 201
)

// KnownContract is what a State knows of a contract.
type KnownContract struct {
	ID   string    `json:"id,omitempty"`
	Key  string    `json:"key"`
	Hash string    `json:"hash"`
	Seen time.Time `json:"seen"` // last; for a suspect, first
	// Other is how many checks in a row found a list that is neither the known one nor the one before; of a suspect.
	Other int `json:"other,omitempty"`
}

// restless is after how many checks, each with another list than the one before, the latest is believed all the same: a
// list that never comes twice must not hide what it promises.
const restless = 5

// NewContract is a contract to be kept with the check that showed it.
type NewContract struct {
	Contract Contract
	Before   *KnownContract // whose place it takes; nil for the first of its key
	Event    *Event         // nil for the first of its key
	Restless bool           // it was not seen twice: the list is another one at every check
}

// observeContract notes the tool list that a check found. The first of its key is believed at once, one that differs from
// it when two checks in a row found it: a rolling update shows both lists for a while.
func (s State) observeContract(e Endpoint, c Check) (State, *NewContract) {
	found := c.Result.Contract
	if found == nil || found.Hash == "" {
		return s, nil
	}
	at := c.Result.StartedAt
	known := slices.IndexFunc(s.Contracts, func(k KnownContract) bool { return k.Key == found.Key })
	if known >= 0 && s.Contracts[known].Hash == found.Hash {
		s.Suspect = nil
		return s.seenContract(known, at), nil
	}
	if known >= 0 && (s.Suspect == nil || s.Suspect.Key != found.Key || s.Suspect.Hash != found.Hash) {
		suspect := KnownContract{Key: found.Key, Hash: found.Hash, Seen: at, Other: 1}
		if s.Suspect != nil && s.Suspect.Key == found.Key {
			suspect.Other = s.Suspect.Other + 1
		}
		s.Suspect = &suspect
		if suspect.Other < restless {
			return s, nil
		}
	}
	added := NewContract{Contract: Contract{
		ID: NewID("con"), EndpointID: e.ID, Key: found.Key, Hash: found.Hash, FirstSeen: at, LastSeen: at, Present: true,
		Tools: found.Tools,
	}}
	if known >= 0 {
		added.Contract.FirstSeen = s.Suspect.Seen
		added.Before = &s.Contracts[known]
		added.Restless = s.Suspect.Other >= restless
		added.Event = &Event{ID: NewID("evt"), EndpointID: e.ID, At: s.Suspect.Seen, Kind: EventContractChanged}
	}
	s.Suspect = nil
	return s.withContract(KnownContract{ID: added.Contract.ID, Key: found.Key, Hash: found.Hash, Seen: at}), &added
}

// seenContract notes that a known contract was seen once more.
func (s State) seenContract(i int, at time.Time) State {
	seen := s.Contracts[i]
	seen.Seen = at
	return s.withContract(seen)
}

// withContract puts k at the end, in the place of the one with its key. Beyond maxKeys the one longest unseen is forgotten.
func (s State) withContract(k KnownContract) State {
	rest := slices.DeleteFunc(slices.Clone(s.Contracts), func(o KnownContract) bool { return o.Key == k.Key })
	rest = append(rest, k)
	s.Contracts = rest[max(0, len(rest)-maxKeys):]
	return s
}

// Compare works out what changed, and words the event. before are the tools of n.Before, nil when they are not kept.
func (n *NewContract) Compare(before []byte) {
	if n.Event == nil {
		return
	}
	var changes []probe.Change
	if len(before) > 0 && len(n.Contract.Tools) > 0 {
		// Tools that cannot be read are ours, or were changed in the database: that they differ is known all the same.
		changes, _ = probe.DiffContracts(before, n.Contract.Tools)
	}
	n.Contract.Changes = tidyChanges(changes)
	n.Event.Severity, n.Event.Title = summary(n.Contract.Changes)
	if n.Restless {
		n.Event.Title = clipRunes("At every check another list. "+n.Event.Title, maxChangeText)
	}
	n.Event.Data = contractData(n.Contract)
}

// tidyChanges returns as many changes as are kept, the most serious first as they come, in texts that every database keeps.
func tidyChanges(changes []probe.Change) []probe.Change {
	tidy := slices.Clone(changes[:min(len(changes), maxChanges)])
	for i := range tidy {
		c := &tidy[i]
		c.Tool, c.Path = clipRunes(CleanText(c.Tool), maxChangeText), clipRunes(CleanText(c.Path), maxChangeText)
		c.Message = clipRunes(CleanText(c.Message), maxChangeText)
	}
	return tidy
}

const maxChangeText = 500 // runes

// ranks are the ranks of changes, the most serious first, with the words for a number of them.
var ranks = []struct {
	rank  probe.Rank
	words string
}{{probe.RankBreaking, "breaking"}, {probe.RankWarning, "to look at"}, {probe.RankInfo, "harmless"}}

// summary returns the worst rank of changes, and how many there are of each in words.
func summary(changes []probe.Change) (severity, title string) {
	const changed = "The tool list changed"
	if len(changes) == 0 {
		return string(probe.RankWarning), changed
	}
	counts := map[probe.Rank]int{}
	for _, c := range changes {
		counts[c.Rank]++
	}
	var parts []string
	for _, r := range ranks {
		if n := counts[r.rank]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, r.words))
		}
	}
	return string(changes[0].Rank), changed + " (" + strings.Join(parts, ", ") + ")"
}

// maxEventChanges is how many changes an event repeats: what a message has room for.
const maxEventChanges = 20

// ContractChanged is the data of an event of that kind.
type ContractChanged struct {
	ContractID string         `json:"contract_id"`
	Key        string         `json:"key"`
	Hash       string         `json:"hash"`
	Changes    []probe.Change `json:"changes"` // worst first, the first ones
	More       int            `json:"more,omitempty"`
}

func contractData(c Contract) json.RawMessage {
	shown := c.Changes[:min(len(c.Changes), maxEventChanges)]
	data, err := json.Marshal(ContractChanged{c.ID, c.Key, c.Hash, append([]probe.Change{}, shown...), len(c.Changes) - len(shown)})
	if err != nil {
		panic(err) // strings and numbers always have a JSON form
	}
	return data
}

// EncodeContract returns the parts of a contract that databases do not keep as they are. tools is nil where they are not kept.
func EncodeContract(c Contract) (tools, changes []byte, err error) {
	if changes, err = json.Marshal(append([]probe.Change{}, c.Changes...)); err != nil {
		return nil, nil, fmt.Errorf("write changes: %w", err)
	}
	if len(c.Tools) > 0 && len(c.Tools) <= MaxTools {
		tools = squeeze(c.Tools)
	}
	return tools, changes, nil
}

// DecodeContract fills in what EncodeContract wrote; known are the present contracts of the endpoint's places.
func DecodeContract(c *Contract, known []KnownContract, tools, changes []byte) (err error) {
	if err := json.Unmarshal(changes, &c.Changes); err != nil {
		return fmt.Errorf("read changes: %w", err)
	}
	if len(c.Changes) == 0 {
		c.Changes = nil
	}
	if c.LastSeen.IsZero() { // nothing has taken its place
		for _, k := range known {
			if k.ID == c.ID && k.Seen.After(c.LastSeen) {
				c.Present, c.LastSeen = true, k.Seen
			}
		}
	}
	if c.LastSeen.IsZero() {
		c.LastSeen = c.FirstSeen
	}
	if c.Tools, err = Expand(tools); err != nil {
		return fmt.Errorf("read tools: %w", err)
	}
	return nil
}

// tidyContract returns c as every database can keep it.
func tidyContract(c *probe.Contract) *probe.Contract {
	if c == nil {
		return nil
	}
	tidy := *c
	tidy.Key, tidy.Hash = clipRunes(CleanText(c.Key), maxChain), clipRunes(CleanText(c.Hash), maxChain)
	return &tidy
}
