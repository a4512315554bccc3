package api

import (
	"encoding/xml"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// atomFeed is a feed as RFC 4287 has it.
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  atomAuthor  `xml:"author"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomAuthor struct {
	Name string `xml:"name"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	ID        string     `xml:"id"`
	Title     string     `xml:"title"`
	Published string     `xml:"published"`
	Updated   string     `xml:"updated"`
	Links     []atomLink `xml:"link"`
	Content   atomText   `xml:"content"`
}

type atomText struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

// feed tells incidents: one entry each, which is updated when the incident is over.
func (s *Server) feed(c echo.Context) error {
	shared(c, s.linksCache())
	p, err := s.public(c.Request().Context())
	if err != nil {
		return err
	}
	base := s.baseURL(c)
	f := atomFeed{
		ID:     base + "/status/feed.atom",
		Title:  "Incidents",
		Author: atomAuthor{"Rollcall"},
		Links: []atomLink{
			{Rel: "self", Type: "application/atom+xml", Href: base + "/status/feed.atom"},
			{Rel: "alternate", Type: "text/html", Href: base + "/status"},
		},
	}
	latest := p.at // before the first incident, the feed is as new as what it says: nothing happened
	if latest.IsZero() {
		latest = s.started // nothing was checked either
	}
	for _, i := range p.incidents {
		entry, updated := feedEntry(i, base)
		f.Entries = append(f.Entries, entry)
		if updated.After(latest) {
			latest = updated
		}
	}
	f.Updated = atomTime(latest)
	text, err := xml.MarshalIndent(f, "", " ")
	if err != nil {
		return internal(err)
	}
	return cached(c, "application/atom+xml; charset=utf-8", append([]byte(xml.Header), text...))
}

func feedEntry(i store.Incident, base string) (entry atomEntry, updated time.Time) {
	updated = i.OpenedAt
	title := headline(i)
	if i.ResolvedAt != nil {
		updated = *i.ResolvedAt
		title = "Resolved: " + title
	}
	return atomEntry{
		ID:        entryID(i.ID),
		Title:     title,
		Published: atomTime(i.OpenedAt),
		Updated:   atomTime(updated),
		Links:     []atomLink{{Rel: "alternate", Type: "text/html", Href: base + "/status/" + i.Slug}},
		Content:   atomText{"text", outcome(i) + " Since " + i.StartedAt.UTC().Format("2 January 2006 15:04:05 UTC") + "."},
	}, updated
}

// entryID is an address-free name for an incident, so that it stays the same when the service moves.
func entryID(incident string) string {
	_, hex, _ := strings.Cut(incident, "_")
	id, err := uuid.Parse(hex)
	if err != nil {
		id = uuid.NewSHA1(uuid.NameSpaceOID, []byte(incident))
	}
	return "urn:uuid:" + id.String()
}

func atomTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
