package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// llms answers with a status page as plain text: what it is, how each part is, what is going on, and where programs read the same.
// Its form is that of https://llmstxt.org: Markdown with a heading, a summary and lists of links.
func (s *Server) llms(c echo.Context) error {
	p, v, err := s.shownOn(c)
	if err != nil {
		return err
	}
	s.sharedSite(c, v, s.siteLinksCache(v))
	return cached(c, "text/plain; charset=utf-8", []byte(p.plain(v, p.open(), s.planned(p))))
}

// plain is a page as text.
func (p publicStatus) plain(v site, open []store.Incident, plans []publicPlan) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	name := oneLine(v.name())
	if v.page == nil {
		name = "Status"
	}
	line("# %s\n", name)
	line("> A status page: how the services below are, checked from outside. At present: %s.\n", p.description())
	if !p.at.IsZero() {
		line("Last checked %s.\n", sentenceTime(p.at))
	}
	line("## Services\n")
	for _, o := range p.endpoints {
		status := string(o.Status())
		if p.maintained[o.ID] {
			status += ", under maintenance"
		}
		line("- [%s](%s): %s", oneLine(o.Name), v.base+v.endpoint(o.Slug), status)
	}
	if len(p.endpoints) == 0 {
		line("None is shown.")
	}
	line("\n## Open incidents\n")
	for _, i := range open {
		line("- [%s](%s): since %s", oneLine(headline(i)), v.incident(i), sentenceTime(i.StartedAt))
		for _, e := range slices.Backward(p.updates[i.ID]) {
			line("  - %s: %s", sentenceTime(e.At), oneLine(e.Text))
		}
	}
	if len(open) == 0 {
		line("None.")
	}
	if len(plans) > 0 {
		line("\n## Maintenance\n")
		for _, plan := range plans {
			line("- %s: %s to %s", oneLine(plan.Title), sentenceTime(plan.begin), sentenceTime(plan.end))
		}
	}
	line("\n## For programs\n")
	for _, part := range []string{"summary", "status", "components", "incidents"} {
		line("- [%s.json](%s)", part, v.base+v.api("/api/v2/"+part+".json"))
	}
	line("- [Incidents as Atom](%s)", v.base+v.path("/feed.atom"))
	line("- [Incidents as JSON Feed](%s)", v.base+v.path("/feed.json"))
	return b.String()
}

// plainText keeps what somebody typed from becoming a line, a heading or a link of its own.
var plainText = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `<`, `\<`, "`", "\\`")

func oneLine(text string) string { return plainText.Replace(strings.Join(strings.Fields(text), " ")) }

// robots says what search engines may look at: status pages that are not hidden, and nothing of the dashboard. Those that are
// hidden are not named.
func (s *Server) robots(c echo.Context) error {
	all, err := s.sites.read(c.Request().Context(), s.cfg.Store)
	if err != nil {
		return err
	}
	allowed := []string{"/status", "/static/", "/llms.txt"}
	for _, page := range all.bySlug {
		if v := (site{page: page}); !v.hidden() {
			allowed = append(allowed, "/p/"+page.Slug+"$", "/p/"+page.Slug+"/")
		}
	}
	slices.Sort(allowed)
	c.Response().Header().Set("Cache-Control", publicCache)
	return cached(c, "text/plain; charset=utf-8", []byte("User-agent: *\nAllow: "+strings.Join(allowed, "\nAllow: ")+"\nDisallow: /\n"))
}

// siteRobots says so at the domain of a page. Elsewhere there is none: programs look at the root only.
func (s *Server) siteRobots(c echo.Context) error {
	if c.Get(keyDomain) == nil {
		return store.ErrNotFound
	}
	all, err := s.sites.read(c.Request().Context(), s.cfg.Store)
	if err != nil {
		return err
	}
	rule := "Disallow: /"
	if v := (site{page: all.bySlug[c.Param("slug")]}); v.page != nil && !v.hidden() {
		rule = "Allow: /"
	}
	c.Response().Header().Set("Cache-Control", publicCache)
	return cached(c, "text/plain; charset=utf-8", []byte("User-agent: *\n"+rule+"\n"))
}
