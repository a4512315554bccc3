package api

import (
	"html"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
)

// pageBadges shows the badge that the query asks for, and what to copy. What it does not know is as if it were not there: the
// choices on the page are right, and so is every badge that it hands out.
func (s *Server) pageBadges(c echo.Context) error {
	o, err := s.cfg.Store.Endpoint(c.Request().Context(), c.Param("slug"))
	if err != nil {
		return err
	}
	page := web.BadgesPage{
		Frame: s.frame(c, "/"), Slug: o.Slug, Name: o.Name, Public: o.Public,
		Windows: windowNames, Quantiles: quantileNames,
	}
	for _, k := range badgeKinds {
		page.Kinds = append(page.Kinds, k.name)
	}
	for _, one := range o.Objectives {
		page.Objectives = append(page.Objectives, one.Name)
	}
	for _, one := range styles {
		page.Styles = append(page.Styles, one.name)
	}
	for _, one := range themes {
		page.Themes = append(page.Themes, one.name)
	}
	page.Form = badgeForm(c, page)
	path := badgeAddress(o.Slug, page)
	page.Picture = path
	page.Height = styles[slices.Index(page.Styles, page.Form.Style)].height
	base := s.baseURL(c)
	page.Snippets = badgeSnippets(o.Name, base+path, base+"/status/"+o.Slug)
	return s.render(c, 200, page)
}

// badgeForm reads what was chosen, with the usual choice for what was not, or is none.
func badgeForm(c echo.Context, page web.BadgesPage) web.BadgeForm {
	chosen := func(name string, from []string, usual string) string {
		if v := c.QueryParam(name); slices.Contains(from, v) {
			return v
		}
		return usual
	}
	f := web.BadgeForm{
		Kind:     chosen("kind", page.Kinds, page.Kinds[0]),
		Quantile: chosen("quantile", page.Quantiles, page.Quantiles[0]),
		Style:    chosen("style", page.Styles, page.Styles[0]),
		Theme:    chosen("theme", page.Themes, page.Themes[0]),
		Label:    badgeText(c.QueryParam("label"), maxLabel),
	}
	kind := badgeKindOf(f.Kind)
	f.Window = chosen("window", page.Windows, kind.usual)
	if f.Window == "" { // of a kind that looks at none: what the others begin with
		f.Window = "30d"
	}
	if len(page.Objectives) > 0 {
		f.Objective = chosen("objective", page.Objectives, page.Objectives[0])
	}
	return f
}

// badgeAddress is where the badge that was chosen is, with no more in its query than it takes. A space is %20, and marks that a
// document could take for its own are written as numbers: this address stands in all sorts of documents.
func badgeAddress(slug string, page web.BadgesPage) string {
	f := page.Form
	kind := badgeKindOf(f.Kind)
	q := url.Values{}
	add := func(name, value, usual string) {
		if value != "" && value != usual {
			q.Set(name, value)
		}
	}
	if kind.usual != "" {
		add("window", f.Window, kind.usual)
	}
	switch f.Kind {
	case "latency":
		add("quantile", f.Quantile, page.Quantiles[0])
	case "slo":
		add("objective", f.Objective, "")
	}
	add("style", f.Style, page.Styles[0])
	add("theme", f.Theme, page.Themes[0])
	add("label", f.Label, "")
	path := "/badge/" + slug + "/" + f.Kind + ".svg"
	if len(q) == 0 {
		return path
	}
	return path + "?" + strings.NewReplacer("+", "%20", "_", "%5F", "~", "%7E").Replace(q.Encode())
}

// badgeSnippets are what shows a picture, with a link to the public page, in the documents that people write. The name is
// anybody's: in none of them it may be more than words.
func badgeSnippets(name, picture, link string) []web.BadgeSnippet {
	return []web.BadgeSnippet{
		{ID: "badge-markdown", Label: "Markdown", Rows: 2, Text: "[![" + markdownText(name) + "](" + picture + ")](" + link + ")"},
		{ID: "badge-html", Label: "HTML", Rows: 2, Text: `<a href="` + html.EscapeString(link) + `"><img src="` + html.EscapeString(picture) +
			`" alt="` + html.EscapeString(name) + `"></a>`},
		{ID: "badge-asciidoc", Label: "AsciiDoc", Rows: 2, Text: "image:" + picture + `["` + asciidocText(name) + `",link="` + link + `"]`},
		{ID: "badge-rst", Label: "reStructuredText", Rows: 3, Text: ".. image:: " + picture + "\n   :alt: " + name + "\n   :target: " + link},
		{ID: "badge-url", Label: "URL", Rows: 1, Text: picture},
	}
}

// markdownText keeps words from being Markdown or HTML (CommonMark §2.4: any punctuation may be escaped).
func markdownText(words string) string {
	var b strings.Builder
	for _, r := range words {
		if strings.ContainsRune("\\`*_[]()<>!#&|~$", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// asciidocText puts what would end a quoted attribute, or mean something in it, into harmless marks: escapes differ between
// programs that read AsciiDoc.
func asciidocText(words string) string {
	return strings.NewReplacer(`"`, "'", "[", "(", "]", ")", "{", "(", "}", ")", `\`, "/", "`", "'", "+", " ", "#", " ", "*", " ",
		"_", " ", "^", " ", "~", " ", "<", "(", ">", ")", "|", "/", "$", " ").Replace(words)
}
