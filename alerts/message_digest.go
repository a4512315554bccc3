package alerts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// maxListed bounds what a digest lists. Who has more on their hands reads on where the link leads.
const maxListed = 20

// NewDigest words many deliveries to one channel, each of another incident, as one message: how many of what, and the most serious
// of them by name. There must be at least one.
func NewDigest(ds []store.Delivery, publicURL string) Message {
	ds = slices.SortedStableFunc(slices.Values(ds), func(a, b store.Delivery) int {
		return cmp.Or(cmp.Compare(gravity(a), gravity(b)), strings.Compare(a.Endpoint.Name, b.Endpoint.Name))
	})
	worst := NewMessage(ds[0], publicURL)
	m := Message{
		Kind: KindDigest, ID: ds[0].Notice.ID, Severity: worst.Severity, Symbol: worst.Symbol, Open: worst.Open,
		Since: worst.Since, Link: link(publicURL, "incidents"),
	}
	s := ds[0].Subscription
	public := s != nil && s.Public()
	m.Title = digestTitle(ds, public)
	if public {
		m.Link, m.LinkText = pageLink(ds[0], publicURL), seeHowItStands
	}
	for _, d := range ds[:min(len(ds), maxListed)] {
		one := NewMessage(d, publicURL)
		item := Item{Symbol: one.Symbol, Title: one.Title, Said: one.Said, Link: one.Link}
		if !one.Open {
			item.Title, item.Said = one.Title+either(one.Kind == KindResolved, " after ", " for ")+one.Lasted, ""
		}
		m.Items = append(m.Items, item)
		if one.Open && one.Since.Before(m.Since) {
			m.Since = one.Since
		}
	}
	if more := len(ds) - maxListed; more > 0 {
		m.Update = fmt.Sprintf("The %d most serious are listed, and there are %d more.", maxListed, more)
	}
	if !m.Open {
		m.Since = time.Time{} // each has a time of its own, and they are over
	} else if !public {
		m.Meaning = "So many at once often have one cause: a network, a proxy or a service that they share, or ours."
	}
	return m
}

// gravity orders what is open before what is over, and the more serious first.
func gravity(d store.Delivery) int {
	at := slices.Index(store.Severities(), d.Incident.Severity)
	if d.Incident.ResolvedAt != nil {
		at += len(store.Severities())
	}
	return at
}

// digestTitle counts, in the order of ds: "21 endpoints down, 6 gated, 3 over", or "24 incidents: 21 down, 2 halted, 1 over" where some
// are of no single endpoint, or not about how it answers.
func digestTitle(ds []store.Delivery, public bool) string {
	counts, states := map[string]int{}, []string(nil)
	what, recovered := "endpoint", true
	for _, d := range ds {
		t := newTopic(d)
		t.public = public
		if !t.ofEndpoint() {
			what = "incident"
		}
		state := t.state()
		recovered = recovered && state == "recovered"
		if !t.open() {
			state = "over"
		}
		if counts[state]++; counts[state] == 1 {
			states = append(states, state)
		}
	}
	all := counted(int64(len(ds)), what)
	switch {
	case recovered:
		return all + either(len(ds) == 1, " has", " have") + " recovered"
	case counts["over"] == len(ds):
		return counted(int64(len(ds)), "incident") + either(len(ds) == 1, " is", " are") + " over"
	}
	var parts []string
	for _, state := range states {
		parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
	}
	if what == "endpoint" {
		parts[0] = counted(int64(counts[states[0]]), what) + " " + states[0]
		return strings.Join(parts, ", ")
	}
	return all + ": " + strings.Join(parts, ", ")
}

func either(is bool, this, that string) string {
	if is {
		return this
	}
	return that
}
