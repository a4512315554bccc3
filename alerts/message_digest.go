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
		Title: digestTitle(ds), Since: worst.Since, Link: link(publicURL, "incidents"),
	}
	s := ds[0].Subscription
	public := s != nil && s.Public()
	if public {
		m.Link = link(publicURL, "status")
	}
	for _, d := range ds[:min(len(ds), maxListed)] {
		one := NewMessage(d, publicURL)
		item := Item{Symbol: one.Symbol, Title: one.Title, Said: one.Said, Link: one.Link}
		if !one.Open {
			item.Title, item.Said = one.Title+" after "+one.Lasted, ""
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

// digestTitle counts: "23 incidents: 21 down, 1 degraded, 1 over".
func digestTitle(ds []store.Delivery) string {
	counts := map[string]int{}
	for _, d := range ds {
		if d.Incident.ResolvedAt != nil {
			counts["over"]++
			continue
		}
		counts[string(d.Incident.Severity)]++
	}
	if counts["over"] == len(ds) {
		if len(ds) == 1 {
			return "1 incident is over"
		}
		return counted(int64(len(ds)), "incident") + " are over"
	}
	var parts []string
	for _, what := range []string{"down", "gated", "unknown", "degraded", "over"} {
		if n := counts[what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	return counted(int64(len(ds)), "incident") + ": " + strings.Join(parts, ", ")
}
