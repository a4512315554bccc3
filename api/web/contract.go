package web

import (
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// ContractsPage lists the tool lists of an MCP server, as it promised them.
type ContractsPage struct {
	Frame
	Slug, Name string // of the endpoint
	Contracts  []Contract
	Newest     string // address of the first page, empty on it
	Older      string // address of the next page, empty on the last
}

func (ContractsPage) template() string { return "contracts" }

// ContractPage shows one tool list, and how it differs from another.
type ContractPage struct {
	Frame
	Slug, Name string // of the endpoint
	Contract   Contract
	Shown      []Tool     // those of Contract, the first ones
	Others     []Contract // that it can be compared with: of the same key
	Against    *Contract  // that it is compared with; nil when that is none
	Compared   bool       // Differences is known
	// Differences is what changed from the older one of the two to the newer, worst first.
	Differences []probe.Change
	Reversed    bool // Against is the newer one
}

func (ContractPage) template() string { return "contract" }

// Rest is how many tools are not shown.
func (p ContractPage) Rest() int { return p.Contract.Count - len(p.Shown) }

// Chosen reports whether c is what the tool list is compared with.
func (p ContractPage) Chosen(c Contract) bool { return p.Against != nil && p.Against.ID == c.ID }

// ByRank are the differences of a rank.
func (p ContractPage) ByRank(rank string) []probe.Change {
	var some []probe.Change
	for _, c := range p.Differences {
		if string(c.Rank) == rank {
			some = append(some, c)
		}
	}
	return some
}

// Contract is a tool list of an MCP server as its endpoint's page shows it.
type Contract struct {
	ID           string
	Key, Hash    string
	Present      bool // it is what the server promises
	Since, Until time.Time
	Known        bool // Tools and Count are known
	Count        int
	Tools        []string // names, the first ones
	Changes      []probe.Change
	Link         string // address of its page
}

// Short is the beginning of the hash, enough to tell two apart.
func (c Contract) Short() string {
	_, hash, found := strings.Cut(c.Hash, ":")
	if !found {
		hash = c.Hash
	}
	return hash[:min(len(hash), 12)]
}

// Under says in which era of MCP and with what credentials the list was seen.
func (c Contract) Under() Said {
	era, credentials, _ := strings.Cut(c.Key, "/")
	switch {
	case era == "":
		return Said{}
	case credentials == "" || credentials == "public":
		return Say("%s era, without credentials", Words(era))
	default:
		return Say("%s era, with credentials %s", Words(era), credentials)
	}
}

// MoreTools is how many tools are not named.
func (c Contract) MoreTools() int { return c.Count - len(c.Tools) }

// maxShownChanges is how many changes a page names: the worst come first, and the API has all of them.
const maxShownChanges = 20

// ShownChanges are the changes that are named.
func (c Contract) ShownChanges() []probe.Change {
	return c.Changes[:min(len(c.Changes), maxShownChanges)]
}

// MoreChanges is how many changes are not named.
func (c Contract) MoreChanges() int { return len(c.Changes) - len(c.ShownChanges()) }

// Event is a line of an endpoint's timeline.
type Event struct {
	At       time.Time
	Severity string
	Title    string
}

// rankTone is the tone in which a rank is shown, always beside its word.
func rankTone(rank any) string {
	var name string
	switch r := rank.(type) {
	case probe.Rank:
		name = string(r)
	case string:
		name = r
	}
	switch name {
	case "breaking":
		return "down"
	case "warning":
		return "degraded"
	}
	return "unknown"
}
