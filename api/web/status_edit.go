package web

import (
	"fmt"
	"time"
)

// StatusPagesPage lists the status pages that the team has made.
type StatusPagesPage struct {
	Frame
	Pages []StatusPageRow
}

func (StatusPagesPage) template() string { return "status_pages" }

// StatusPageRow is one status page in a list.
type StatusPageRow struct {
	Slug, Name string
	Domain     string // empty for none
	Proven     bool   // the domain is
	Locked     bool   // it takes a password
	Hidden     bool   // from search engines
	Sections   int
	Updated    time.Time
}

// StatusPageFactsPage shows what a status page is made of to somebody who may not change it.
type StatusPageFactsPage struct {
	Frame
	Row     StatusPageRow
	Text    string
	Accent  string // of the form #rrggbb; empty: ours
	HasLogo bool
	Parts   []SectionFacts
}

func (StatusPageFactsPage) template() string { return "status_page_facts" }

// SectionFacts is a part of a status page.
type SectionFacts struct {
	Title     string
	Endpoints []EndpointLink // that were chosen one by one
	Tags      []string       // whose endpoints are shown
}

// StatusPageFormPage makes a status page, or edits one.
type StatusPageFormPage struct {
	Frame
	Slug     string // of the one that is edited; empty for a new one
	Name     string // of the one that is edited, as kept
	Locked   bool   // the one that is edited takes a password
	HasLogo  bool   // the one that is edited has one
	Form     StatusPageForm
	Sections []SectionForm
	Domain   *DomainCheck // nil where the one that is edited has no domain
	Domains  bool         // pages can have domains here
	Problems Problems
}

func (StatusPageFormPage) template() string { return "status_page_form" }

// Action is the address that the form is posted to.
func (p StatusPageFormPage) Action() string {
	if p.Slug == "" {
		return "/pages/new"
	}
	return "/pages/" + p.Slug
}

// StatusPageForm is a status page as somebody typed it.
type StatusPageForm struct {
	Slug, Name, Text string
	Accent, Domain   string
	RemoveLogo       bool
	Locked           bool   // it is to take a password
	Password         string // to be set; empty keeps the one there is
	Hidden           bool
}

// SectionForm is a part of a status page as somebody typed it.
type SectionForm struct {
	N           int // from zero
	Title, Tags string
	Picker      Picker
	First, Last bool
}

// Field is the name of one of the section's fields, on the form and in mistakes.
func (s SectionForm) Field(name string) string { return fmt.Sprintf("sections[%d].%s", s.N, name) }

// Number counts sections from one, as people do.
func (s SectionForm) Number() int { return s.N + 1 }

// DomainCheck is how the domain of a page stands.
type DomainCheck struct {
	Domain       string
	Record, Text string     // of the TXT record that is wanted
	ProvenAt     *time.Time // when it was last seen; nil when the domain is not in use
}
