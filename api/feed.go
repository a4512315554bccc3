package api

import (
	"encoding/xml"
	"slices"
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
	Name string `xml:"name" json:"name"`
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

// Where the feeds are.
const (
	feedPath     = "/status/feed.atom"
	jsonFeedPath = "/status/feed.json"
)

// feedItem is an incident or a stretch of maintenance, as feeds tell of it: once, and again under the same id when there is more
// to say.
type feedItem struct {
	id, title, url, text string
	published, updated   time.Time
}

// feed collects what feeds tell, and when that was last something else.
func (s *Server) feed(c echo.Context) (items []feedItem, updated time.Time, err error) {
	p, v, err := s.shownOn(c)
	if err != nil {
		return nil, updated, err
	}
	for _, plan := range s.planned(p) {
		if plan.Schedule == "" || plan.active || plan.begin.Sub(p.now) < planAhead {
			items = append(items, planItem(plan, v))
		}
	}
	for _, i := range p.incidents {
		items = append(items, p.incidentItem(i, v))
	}
	updated = p.at // before the first incident, the feed is as new as what it says: nothing happened
	if updated.IsZero() {
		updated = s.started // nothing was checked either
	}
	for _, item := range items {
		if item.updated.After(updated) {
			updated = item.updated
		}
	}
	return items, updated, nil
}

// planAhead is how long before it begins feeds tell of maintenance that comes again and again.
const planAhead = 24 * time.Hour

func (p publicStatus) incidentItem(i store.Incident, v site) feedItem {
	item := feedItem{id: entryID(i.ID), title: headline(i), published: i.OpenedAt, updated: p.changed(i)}
	if i.ResolvedAt != nil {
		item.title = "Resolved: " + item.title
	}
	item.url = v.incident(i)
	var text []string
	for _, e := range slices.Backward(p.updates[i.ID]) {
		text = append(text, sentenceTime(e.At)+": "+e.Text)
	}
	text = append(text, outcome(i)+" Since "+sentenceTime(i.StartedAt)+".")
	if about := p.about(i); i.Kind != store.IncidentEndpoint && len(about) > 0 {
		text = append(text, "About "+namesIn(about)+".")
	}
	item.text = strings.Join(text, "\n\n")
	return item
}

func planItem(p publicPlan, v site) feedItem {
	item := feedItem{
		id: entryID(p.ID), title: "Maintenance: " + p.Title, url: v.base + v.home() + "#" + p.ID,
		published: p.CreatedAt, updated: p.UpdatedAt,
		text: "From " + sentenceTime(p.begin) + " to " + sentenceTime(p.end) + ".",
	}
	if p.Schedule != "" { // each time is another one
		item.id = entryID(p.ID + "/" + atomTime(p.begin))
		if told := p.begin.Add(-planAhead); told.After(item.published) {
			item.published = told
		}
	}
	if item.updated.Before(item.published) {
		item.updated = item.published
	}
	if p.active {
		item.title = "Under way: " + p.Title
		if p.begin.After(item.updated) {
			item.updated = p.begin
		}
	}
	if len(p.covers) > 0 {
		item.text += " Of " + namesIn(p.covers) + "."
	}
	if p.Text != "" {
		item.text += "\n\n" + p.Text
	}
	return item
}

func sentenceTime(t time.Time) string { return t.UTC().Format("2 January 2006 15:04:05 UTC") }

func (s *Server) atomFeed(c echo.Context) error {
	v := s.siteOf(c)
	s.sharedSite(c, v, s.siteLinksCache(v))
	items, updated, err := s.feed(c)
	if err != nil {
		return err
	}
	f := atomFeed{
		ID:      v.base + v.path("/feed.atom"),
		Title:   v.incidents(),
		Updated: atomTime(updated),
		Author:  atomAuthor{v.name()},
		Links: []atomLink{
			{Rel: "self", Type: "application/atom+xml", Href: v.base + v.path("/feed.atom")},
			{Rel: "alternate", Type: "text/html", Href: v.base + v.home()},
		},
	}
	for _, i := range items {
		f.Entries = append(f.Entries, atomEntry{
			ID:        i.id,
			Title:     i.title,
			Published: atomTime(i.published),
			Updated:   atomTime(i.updated),
			Links:     []atomLink{{Rel: "alternate", Type: "text/html", Href: i.url}},
			Content:   atomText{"text", i.text},
		})
	}
	text, err := xml.MarshalIndent(f, "", " ")
	if err != nil {
		return internal(err)
	}
	return cached(c, "application/atom+xml; charset=utf-8", append([]byte(xml.Header), text...))
}

// jsonFeed is a feed as JSON Feed 1.1 has it: https://www.jsonfeed.org/version/1.1/
type jsonFeed struct {
	Version string         `json:"version"`
	Title   string         `json:"title"`
	HomeURL string         `json:"home_page_url"`
	FeedURL string         `json:"feed_url"`
	Authors []atomAuthor   `json:"authors"`
	Items   []jsonFeedItem `json:"items"`
}

type jsonFeedItem struct {
	ID        string `json:"id"`
	URL       string `json:"url"`
	Title     string `json:"title"`
	Text      string `json:"content_text"`
	Published string `json:"date_published"`
	Modified  string `json:"date_modified"`
}

func (s *Server) jsonFeed(c echo.Context) error {
	v := s.siteOf(c)
	s.sharedSite(c, v, s.siteLinksCache(v))
	items, _, err := s.feed(c)
	if err != nil {
		return err
	}
	f := jsonFeed{
		Version: "https://jsonfeed.org/version/1.1",
		Title:   v.incidents(),
		HomeURL: v.base + v.home(),
		FeedURL: v.base + v.path("/feed.json"),
		Authors: []atomAuthor{{"Rollcall"}},
		Items:   make([]jsonFeedItem, 0, len(items)),
	}
	for _, i := range items {
		f.Items = append(f.Items, jsonFeedItem{i.id, i.url, i.title, i.text, atomTime(i.published), atomTime(i.updated)})
	}
	data, err := encode(f)
	if err != nil {
		return err
	}
	return cached(c, "application/feed+json; charset=utf-8", data)
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
