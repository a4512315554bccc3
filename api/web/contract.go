package web

import (
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Contract is a tool list of an MCP server as its endpoint's page shows it.
type Contract struct {
	Key, Hash    string
	Present      bool // it is what the server promises
	Since, Until time.Time
	Known        bool // Tools and Count are known
	Count        int
	Tools        []string // names, the first ones
	Changes      []probe.Change
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
func (c Contract) Under() string {
	era, credentials, _ := strings.Cut(c.Key, "/")
	switch {
	case era == "":
		return ""
	case credentials == "" || credentials == "public":
		return era + " era, without credentials"
	default:
		return era + " era, with credentials " + credentials
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
