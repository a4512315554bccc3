package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func (s *Server) pagePages(c echo.Context) error {
	all, err := s.cfg.Store.StatusPages(c.Request().Context())
	if err != nil {
		return err
	}
	page := web.StatusPagesPage{Frame: s.frame(c, "/pages")}
	for _, p := range all {
		page.Pages = append(page.Pages, statusPageRow(p))
	}
	return s.render(c, http.StatusOK, page)
}

func statusPageRow(p store.StatusPage) web.StatusPageRow {
	return web.StatusPageRow{
		Slug: p.Slug, Name: p.Name, Domain: p.Domain, Proven: p.DomainProvenAt != nil, Locked: !p.Public(), Hidden: p.HideFromSearch,
		Sections: len(p.Sections), Updated: p.UpdatedAt,
	}
}

// typedPage is a page as it stands on the form.
type typedPage struct {
	web.StatusPageForm
	sections  []sectionInput
	logo      *[]byte // nil: none was sent
	confirmed bool    // it is really to be deleted
	mistakes  []probe.Problem
}

func (s *Server) pageNewPage(c echo.Context) error {
	return s.statusPageForm(c, http.StatusOK, nil, typedPage{sections: []sectionInput{{}}}, nil)
}

func (s *Server) pagePage(c echo.Context) error {
	p, err := s.cfg.Store.StatusPage(c.Request().Context(), c.Param("slug"))
	if err != nil {
		return err
	}
	if !s.frame(c, "").May(store.RoleEditor) {
		return s.statusPageFacts(c, p)
	}
	typed, err := s.typedFrom(c, p)
	if err != nil {
		return err
	}
	return s.statusPageForm(c, http.StatusOK, &p, typed, nil)
}

// statusPageFacts shows what a page is made of to somebody who may not change it.
func (s *Server) statusPageFacts(c echo.Context, p store.StatusPage) error {
	page := web.StatusPageFactsPage{
		Frame: s.frame(c, "/pages"), Row: statusPageRow(p), Text: p.Text, Accent: p.Accent, HasLogo: p.LogoType != "",
	}
	for _, section := range p.Sections {
		links, err := s.linksInOrder(c.Request().Context(), section.Endpoints)
		if err != nil {
			return err
		}
		page.Parts = append(page.Parts, web.SectionFacts{Title: section.Title, Endpoints: links, Tags: section.Tags})
	}
	return s.render(c, http.StatusOK, page)
}

// typedFrom is how a page that is kept stands on the form.
func (s *Server) typedFrom(c echo.Context, p store.StatusPage) (typedPage, error) {
	typed := typedPage{StatusPageForm: web.StatusPageForm{
		Name: p.Name, Text: p.Text, Accent: p.Accent, Domain: p.Domain, Locked: !p.Public(), Hidden: p.HideFromSearch,
	}}
	for _, section := range p.Sections {
		slugs, err := s.slugList(c.Request().Context(), section.Endpoints)
		if err != nil {
			return typed, err
		}
		typed.sections = append(typed.sections, sectionInput{section.Title, slugs, section.Tags})
	}
	return typed, nil
}

// statusPageForm shows the form as it is filled in; kept is the page that is edited, nil for a new one.
func (s *Server) statusPageForm(c echo.Context, status int, kept *store.StatusPage, typed typedPage, problems web.Problems) error {
	page := web.StatusPageFormPage{
		Frame: s.frame(c, "/pages"), Form: typed.StatusPageForm, Domains: s.cfg.ProveDomain != nil && s.ourHost() != "",
		Problems: sectioned(problems),
	}
	if kept != nil {
		page.Slug, page.Name, page.Locked, page.HasLogo = kept.Slug, kept.Name, !kept.Public(), kept.LogoType != ""
		if kept.Domain != "" {
			record, text := kept.DomainRecord()
			page.Domain = &web.DomainCheck{Domain: kept.Domain, Record: record, Text: text, ProvenAt: kept.DomainProvenAt}
		}
	}
	for i, section := range typed.sections {
		shown := web.SectionForm{
			N: i, Title: section.Title, Tags: strings.Join(section.Tags, ", "), First: i == 0, Last: i == len(typed.sections)-1,
		}
		var err error
		shown.Picker, err = s.picker(c.Request().Context(), shown.Field("endpoints"), "Endpoints", section.Endpoints, "", page.Problems)
		if err != nil {
			return err
		}
		showPlaces(&shown.Picker, section.Endpoints)
		page.Sections = append(page.Sections, shown)
	}
	return s.render(c, status, page)
}

// sectioned returns mistakes by the names of the fields on the form, where a list is one field.
func sectioned(ps web.Problems) web.Problems {
	named := slices.Clone(ps)
	for i, p := range named {
		for _, list := range []string{".endpoints", ".tags"} {
			if before, _, found := strings.Cut(p.Field, list+"["); found && strings.HasPrefix(p.Field, "sections[") {
				named[i].Field = before + list
			}
		}
	}
	return named
}

// readUpload reads a form that may hold a file; nil where none was chosen.
func readUpload(c echo.Context, field string) (form, *[]byte, error) {
	r := c.Request()
	err := r.ParseMultipartForm(maxBody)
	if errors.Is(err, http.ErrNotMultipart) {
		f, err := readForm(c)
		return f, nil, err
	}
	if err != nil {
		if p := problemOf(err); p.Status == http.StatusRequestEntityTooLarge {
			return form{}, nil, err
		}
		return form{}, nil, fault(http.StatusBadRequest, "Bad form", "The form could not be read. Go back and try again.")
	}
	defer r.MultipartForm.RemoveAll() //nolint:errcheck // a body is far smaller than what is kept in memory
	again(c)
	f := form{r.PostForm}
	files := r.MultipartForm.File[field]
	if len(files) == 0 || files[0].Size == 0 {
		return f, nil, nil
	}
	file, err := files[0].Open()
	if err != nil {
		return form{}, nil, internal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(file, store.MaxLogo+1))
	return f, &data, internal(err)
}

// readTypedPage reads what was typed.
func readTypedPage(c echo.Context) (typedPage, string, error) {
	f, logo, err := readUpload(c, "logo")
	if err != nil {
		return typedPage{}, "", err
	}
	typed := typedPage{logo: logo, confirmed: f.ticked("confirmed"), StatusPageForm: web.StatusPageForm{
		Slug: f.text("slug"), Name: f.text("name"), Text: strings.ReplaceAll(f.text("text"), "\r\n", "\n"), Accent: f.text("accent"),
		Domain: f.text("domain"), RemoveLogo: f.ticked("remove_logo"), Locked: f.ticked("locked"), Password: f.raw("password"),
		Hidden: f.ticked("hide_from_search"),
	}}
	n, err := strconv.Atoi(f.text("sections"))
	if err != nil {
		n = 0
	}
	for i := range min(max(0, n), store.MaxSections+1) {
		field := fmt.Sprintf("sections[%d].", i)
		endpoints, mistakes := f.pickedInOrder(field + "endpoints")
		typed.mistakes = append(typed.mistakes, mistakes...)
		typed.sections = append(typed.sections, sectionInput{Title: f.text(field + "title"), Endpoints: endpoints, Tags: namesOf(f.text(field + "tags"))})
	}
	return typed, f.text("action"), nil
}

// arranged does what a button on the sections says; false when it is none of theirs.
func (t *typedPage) arranged(action string) bool {
	if action == "add" {
		t.sections = append(t.sections, sectionInput{})
		return true
	}
	verb, number, found := strings.Cut(action, "-")
	at, err := strconv.Atoi(number)
	if !found || err != nil || at < 0 || at >= len(t.sections) {
		return false
	}
	switch {
	case verb == "up" && at > 0:
		t.sections[at-1], t.sections[at] = t.sections[at], t.sections[at-1]
	case verb == "down" && at < len(t.sections)-1:
		t.sections[at+1], t.sections[at] = t.sections[at], t.sections[at+1]
	case verb == "remove":
		t.sections = slices.Delete(t.sections, at, at+1)
	default:
		return false
	}
	return true
}

// input is what the form comes to; kept is the page that is edited, nil for a new one.
func (t *typedPage) input(kept *store.StatusPage) statusPageInput {
	in := statusPageInput{
		Name: &t.Name, Text: &t.Text, Accent: &t.Accent, Domain: &t.Domain, HideFromSearch: &t.Hidden, Logo: t.logo, Sections: &t.sections,
		Mistakes: t.mistakes,
	}
	if t.RemoveLogo && t.logo == nil {
		in.Logo = new([]byte)
	}
	switch {
	case !t.Locked:
		in.Password = new("")
	case t.Password != "":
		in.Password = &t.Password
	case kept == nil || kept.Public():
		in.Mistakes = append(in.Mistakes, required("password"))
	}
	return in
}

func (s *Server) doNewPage(c echo.Context) error {
	typed, action, err := readTypedPage(c)
	if err != nil {
		return err
	}
	if typed.arranged(action) {
		return s.statusPageForm(c, http.StatusOK, nil, typed, nil)
	}
	if action != "save" {
		return errNoAction
	}
	slug := typed.Slug
	if slug == "" {
		slug = store.Slugify(typed.Name)
	}
	p, err := s.createStatusPage(c, slug, typed.input(nil))
	if err != nil {
		return s.statusPageAgain(c, nil, typed, err)
	}
	return seeOther(c, "/pages/"+p.Slug, "saved")
}

// statusPageAgain shows the form as it was filled in, with what is wrong. A file has to be chosen again.
func (s *Server) statusPageAgain(c echo.Context, kept *store.StatusPage, typed typedPage, err error) error {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError || p.Status == http.StatusNotFound {
		return err
	}
	typed.Password = "" // it is in no page
	return s.statusPageForm(c, p.Status, kept, typed, problemsOf(p))
}

func (s *Server) doPage(c echo.Context) error {
	typed, action, err := readTypedPage(c)
	if err != nil {
		return err
	}
	p, err := s.cfg.Store.StatusPage(c.Request().Context(), c.Param("slug"))
	if err != nil {
		return err
	}
	path := "/pages/" + p.Slug
	switch {
	case typed.arranged(action):
		return s.statusPageForm(c, http.StatusOK, &p, typed, nil)
	case action == "save":
		if _, err := s.editStatusPage(c, p.Slug, typed.input(&p)); err != nil {
			return s.statusPageAgain(c, &p, typed, err)
		}
		return seeOther(c, path, "saved")
	case action == "check":
		return s.checkDomain(c, p)
	case action == "delete" && !typed.confirmed:
		return s.confirmPageRemoval(c, p)
	case action == "delete":
		if err := s.removeStatusPage(c.Request().Context(), p.Slug); err != nil {
			return err
		}
		return seeOther(c, "/pages", "deleted")
	}
	return errNoAction
}

// checkDomain looks for the record and shows what came of it.
func (s *Server) checkDomain(c echo.Context, p store.StatusPage) error {
	if err := s.proveDomain(c, p.Slug); err != nil {
		typed, other := s.typedFrom(c, p)
		if other != nil {
			return other
		}
		return s.statusPageAgain(c, &p, typed, err)
	}
	return seeOther(c, "/pages/"+p.Slug, "proven")
}

func (s *Server) confirmPageRemoval(c echo.Context, p store.StatusPage) error {
	return s.render(c, http.StatusOK, web.ConfirmPage{
		Frame:    s.frame(c, "/pages"),
		Question: "Delete " + p.Name + "?",
		Detail:   "Its address leads nowhere then, and neither does its domain. The endpoints on it stay as they are.",
		Verb:     "Delete for good",
		Action:   "/pages/" + p.Slug,
		Back:     "/pages/" + p.Slug,
	})
}
