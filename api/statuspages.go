package api

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// StatusPage is a status page as it stands in JSON.
type StatusPage struct {
	ID             string        `json:"id"`
	Slug           string        `json:"slug"`
	Name           string        `json:"name"`
	Text           string        `json:"text"`
	HasLogo        bool          `json:"has_logo"`
	Accent         string        `json:"accent"`
	Sections       []SectionJSON `json:"sections"`
	Domain         string        `json:"domain"`
	DomainRecord   *DomainRecord `json:"domain_record"` // null without a domain
	DomainProvenAt *Time         `json:"domain_proven_at"`
	Public         bool          `json:"public"` // it takes no password
	HideFromSearch bool          `json:"hide_from_search"`
	URL            string        `json:"url"`
	CreatedAt      Time          `json:"created_at"`
	UpdatedAt      Time          `json:"updated_at"`
}

// SectionJSON is a part of a status page.
type SectionJSON struct {
	Title     string   `json:"title"`
	Endpoints []string `json:"endpoints"` // slugs
	Tags      []string `json:"tags"`
}

// DomainRecord is the TXT record that shows whose a domain is.
type DomainRecord struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// statusPagesJSON returns pages as they stand in JSON.
func (s *Server) statusPagesJSON(c echo.Context, all ...store.StatusPage) ([]StatusPage, error) {
	ids := map[string]bool{}
	for _, p := range all {
		named, _ := p.Choice()
		for _, id := range named {
			ids[id] = true
		}
	}
	slugs, err := s.slugs(c.Request().Context(), ids)
	if err != nil {
		return nil, err
	}
	shown := make([]StatusPage, 0, len(all))
	for _, p := range all {
		page := StatusPage{
			ID: p.ID, Slug: p.Slug, Name: p.Name, Text: p.Text, HasLogo: p.LogoType != "", Accent: p.Accent, Sections: []SectionJSON{},
			Domain: p.Domain, DomainProvenAt: timeOf(p.DomainProvenAt), Public: p.Public(), HideFromSearch: p.HideFromSearch,
			URL: s.baseURL(c) + "/p/" + p.Slug, CreatedAt: Time{p.CreatedAt}, UpdatedAt: Time{p.UpdatedAt},
		}
		if p.Domain != "" {
			name, text := p.DomainRecord()
			page.DomainRecord = &DomainRecord{name, text}
		}
		for _, section := range p.Sections {
			page.Sections = append(page.Sections, SectionJSON{section.Title, slugsInOrder(section.Endpoints, slugs), append([]string{}, section.Tags...)})
		}
		shown = append(shown, page)
	}
	return shown, nil
}

// statusPageInput is what somebody wants a page to be, read from a JSON body or a form. A nil member stays as it is.
type statusPageInput struct {
	Name           *string
	Text           *string
	Logo           *[]byte // empty: none
	Accent         *string
	Sections       *[]sectionInput
	Domain         *string
	Password       *string // empty: everybody may see it
	HideFromSearch *bool

	// Mistakes are those already met while reading.
	Mistakes []probe.Problem

	sections []store.PageSection // that Sections stands for, once its endpoints are looked up
	hash     string              // that Password stands for
}

// sectionInput is a part of a page, with slugs.
type sectionInput struct {
	Title           string
	Endpoints, Tags []string
}

// minSitePassword is the least length, in characters, of the password of a page, which many people know.
const minSitePassword = 8

// prepared returns in with everything looked up and worked out that takes time, and with what is wrong with it.
func (s *Server) prepared(c echo.Context, in statusPageInput) (statusPageInput, error) {
	ctx := c.Request().Context()
	in.Mistakes = slices.Clone(in.Mistakes)
	wrong := func(field, format string, args ...any) {
		in.Mistakes = append(in.Mistakes, probe.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if in.Sections != nil {
		for i, section := range (*in.Sections)[:min(len(*in.Sections), store.MaxSections+1)] {
			field := fmt.Sprintf("sections[%d]", i)
			ids, mistakes, err := s.idsOf(ctx, field+".endpoints", section.Endpoints, store.MaxLimit)
			if err != nil {
				return in, err
			}
			in.Mistakes = append(in.Mistakes, mistakes...)
			in.sections = append(in.sections, store.PageSection{Title: strings.TrimSpace(section.Title), Endpoints: ids, Tags: section.Tags})
		}
	}
	if in.Domain != nil && *in.Domain != "" {
		name := asciiHost(strings.TrimSpace(*in.Domain))
		switch {
		case s.cfg.ProveDomain == nil || s.ourHost() == "":
			wrong("domain", "takes a --public-url, by which the dashboard is reached")
		case strings.Contains(*in.Domain, ":") || name == "":
			wrong("domain", "must be a name like status.example.com, without a scheme, a port or a path")
		case name == s.ourHost() || name == asciiHost(c.Request().Host):
			wrong("domain", "is where the dashboard is: choose another")
		}
		in.Domain = &name
	}
	if in.Password != nil && *in.Password != "" {
		switch password := *in.Password; {
		case utf8.RuneCountInString(password) < minSitePassword:
			wrong("password", "must have at least %d characters", minSitePassword)
		case len(password) > maxPassword:
			wrong("password", "is longer than %d bytes", maxPassword)
		default:
			if err := s.whenThereIsRoom(ctx, func() { in.hash = HashPassword(password) }); err != nil {
				return in, err
			}
		}
	}
	return in, nil
}

// edit changes p as in says, once it is prepared. Its error names every mistake; p is left as it was then.
func (in statusPageInput) edit(p *store.StatusPage) error {
	changed := *p
	for to, from := range map[*string]*string{&changed.Name: in.Name, &changed.Text: in.Text} {
		if from != nil {
			*to = strings.TrimSpace(*from)
		}
	}
	if in.Accent != nil {
		changed.Accent = strings.ToLower(strings.TrimSpace(*in.Accent))
	}
	set(&changed.Logo, in.Logo)
	set(&changed.Domain, in.Domain)
	set(&changed.HideFromSearch, in.HideFromSearch)
	if in.Sections != nil {
		changed.Sections = in.sections
	}
	if in.Password != nil {
		changed.PasswordHash = in.hash
	}
	mistakes := slices.Clone(in.Mistakes)
	if err := changed.Validate(); err != nil {
		more := slices.DeleteFunc(problemOf(err).Errors, func(wrong probe.Problem) bool { // endpoints of which one is not there are not missing
			return strings.HasSuffix(wrong.Field, ".endpoints") &&
				slices.ContainsFunc(mistakes, func(met probe.Problem) bool { return within(met.Field, wrong.Field) })
		})
		mistakes = besides(mistakes, more)
	}
	if len(mistakes) > 0 {
		return store.Invalid{Problems: mistakes}
	}
	*p = changed
	return nil
}

// createStatusPage keeps a page. Errors are store.Invalid with every mistake, store.Conflict, or the database's.
func (s *Server) createStatusPage(c echo.Context, slug string, in statusPageInput) (store.StatusPage, error) {
	in, err := s.prepared(c, in)
	if err != nil {
		return store.StatusPage{}, err
	}
	p := store.StatusPage{Slug: slug}
	if err := in.edit(&p); err != nil {
		return store.StatusPage{}, err
	}
	p, err = s.cfg.Store.CreateStatusPage(c.Request().Context(), p)
	s.sites.forget()
	return p, err
}

// editStatusPage changes what in names of a page. Errors are those of createStatusPage, and store.ErrNotFound.
func (s *Server) editStatusPage(c echo.Context, slug string, in statusPageInput) (store.StatusPage, error) {
	in, err := s.prepared(c, in) // before the transaction that changes it begins
	if err != nil {
		return store.StatusPage{}, err
	}
	p, err := s.cfg.Store.UpdateStatusPage(c.Request().Context(), slug, in.edit)
	s.sites.forget()
	return p, err
}

// removeStatusPage takes a page away.
func (s *Server) removeStatusPage(ctx context.Context, slug string) error {
	err := s.cfg.Store.DeleteStatusPage(ctx, slug)
	s.sites.forget()
	return err
}

// domainPatience bounds a look for the record of a domain, which somebody waits for.
const domainPatience = 10 * time.Second

// proveDomain looks for the record of the domain of a page at once. The error is fit for whoever asked, where it is a problem.
func (s *Server) proveDomain(c echo.Context, slug string) error {
	ctx := c.Request().Context()
	p, err := s.cfg.Store.StatusPage(ctx, slug)
	if err != nil {
		return err
	}
	if p.Domain == "" || s.cfg.ProveDomain == nil {
		return store.Conflict{Field: "domain", Message: "is not set: there is nothing to check"}
	}
	looking, cancel := context.WithTimeout(ctx, domainPatience)
	defer cancel()
	missing := s.cfg.ProveDomain(looking, p)
	_, err = s.cfg.Store.UpdateStatusPage(ctx, slug, func(now *store.StatusPage) error {
		if now.Domain == p.Domain {
			now.NoteDomain(missing == nil, time.Now())
		}
		return nil
	})
	s.sites.forget()
	if err == nil && missing != nil {
		return store.Conflict{Field: "domain", Message: missing.Error()}
	}
	return err
}

func readStatusPage(m *members) statusPageInput {
	in := statusPageInput{
		Name:           m.text("name", ""),
		Text:           m.text("text", ""),
		Accent:         m.text("accent", ""),
		Domain:         m.text("domain", ""),
		Password:       m.text("password", ""),
		HideFromSearch: m.flag("hide_from_search", false),
	}
	if logo := m.text("logo", ""); logo != nil {
		data, err := base64.StdEncoding.DecodeString(*logo)
		if err != nil {
			m.mistake("logo", "must be an image in base64")
		}
		in.Logo = &data
	}
	if list := m.list("sections"); list != nil {
		sections := []sectionInput{}
		for i, raw := range (*list)[:min(len(*list), store.MaxSections+1)] {
			inner := m.inside(raw, fmt.Sprintf("sections[%d]", i))
			if inner == nil {
				continue
			}
			var section sectionInput
			set(&section.Title, inner.text("title", ""))
			set(&section.Endpoints, inner.texts("endpoints"))
			set(&section.Tags, inner.texts("tags"))
			inner.rest()
			sections = append(sections, section)
		}
		in.Sections = &sections
	}
	m.readOnly("id", "has_logo", "domain_record", "domain_proven_at", "public", "url", "created_at", "updated_at")
	return in
}

func (s *Server) listStatusPages(c echo.Context) error {
	if err := queryOf(c).end(); err != nil {
		return err
	}
	all, err := s.cfg.Store.StatusPages(c.Request().Context())
	if err != nil {
		return err
	}
	items, err := s.statusPagesJSON(c, all...)
	if err != nil {
		return err
	}
	return ok(c, list[StatusPage]{Items: items})
}

func (s *Server) postStatusPage(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	var slug string
	set(&slug, m.text("slug", ""))
	in := readStatusPage(m)
	m.rest()
	in.Mistakes = *m.mistakes
	p, err := s.createStatusPage(c, slug, in)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/api/v1/pages/"+p.Slug)
	return s.answerStatusPage(c, http.StatusCreated, p)
}

func (s *Server) getStatusPage(c echo.Context) error {
	p, err := s.cfg.Store.StatusPage(c.Request().Context(), c.Param("slug"))
	if err != nil {
		return err
	}
	return s.answerStatusPage(c, http.StatusOK, p)
}

// patchStatusPage takes a JSON merge patch (RFC 7396).
func (s *Server) patchStatusPage(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	in := readStatusPage(m)
	m.readOnly("slug")
	m.rest()
	in.Mistakes = *m.mistakes
	p, err := s.editStatusPage(c, c.Param("slug"), in)
	if err != nil {
		return err
	}
	return s.answerStatusPage(c, http.StatusOK, p)
}

func (s *Server) deleteStatusPage(c echo.Context) error {
	if err := s.removeStatusPage(c.Request().Context(), c.Param("slug")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// checkStatusPage looks for the record of the domain of a page.
func (s *Server) checkStatusPage(c echo.Context) error {
	if err := s.proveDomain(c, c.Param("slug")); err != nil {
		return err
	}
	return s.getStatusPage(c)
}

func (s *Server) answerStatusPage(c echo.Context, status int, p store.StatusPage) error {
	items, err := s.statusPagesJSON(c, p)
	if err != nil {
		return err
	}
	return answer(c, status, "application/json", items[0])
}
