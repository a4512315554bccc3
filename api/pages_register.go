package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func (s *Server) pageRegister(c echo.Context) error {
	return s.endpointForm(c, http.StatusOK, web.FormPage{Form: formOf(store.NewEndpoint())}, nil)
}

func (s *Server) pageEdit(c echo.Context) error {
	o, err := s.cfg.Store.Endpoint(c.Request().Context(), c.Param("slug"))
	if err != nil {
		return err
	}
	parents, err := s.slugList(c.Request().Context(), o.DependsOn)
	if err != nil {
		return err
	}
	return s.endpointForm(c, http.StatusOK, web.FormPage{Slug: o.Slug, Name: o.Name, Form: formOf(o.Endpoint), Known: locationsOf(o)}, parents)
}

// endpointForm shows the form with everything that does not depend on what was typed. parents are the slugs that were chosen.
func (s *Server) endpointForm(c echo.Context, status int, page web.FormPage, parents []string) error {
	channels, err := s.cfg.Store.Channels(c.Request().Context())
	if err != nil {
		return err
	}
	for _, channel := range channels {
		page.Channels = append(page.Channels, web.ChannelOption{
			ID: channel.ID, Name: channel.Name, Type: typeWords(channel.Type), Broken: channel.Broken != "",
		})
	}
	if page.Parents, err = s.picker(c.Request().Context(), "depends_on", "Other endpoints", parents, page.Slug, page.Problems); err != nil {
		return err
	}
	page.Known = append(page.Known, s.cfg.Location)
	slices.Sort(page.Known)
	page.Known = slices.Compact(page.Known)
	page.Frame, page.Kinds = s.frame(c, "/"), web.GroupKinds(probe.Kinds())
	return s.shown(c, status, page)
}

// locationsOf returns the names of the places of an endpoint.
func locationsOf(o store.Overview) []string {
	var names []string
	for _, p := range placesOf(o) {
		names = append(names, p.Location)
	}
	return names
}

// formOf is an endpoint as the form shows it, without any secret.
func formOf(e store.Endpoint) web.EndpointForm {
	f := web.EndpointForm{
		Name:         e.Name,
		Kind:         string(e.Kind),
		Method:       e.Request.Method,
		Params:       string(e.Request.Params),
		Schedule:     e.Schedule,
		Timeout:      durationText(e.Timeout),
		DegradedOver: durationText(e.DegradedOver),
		Failures:     strconv.Itoa(e.Confirm.Failures),
		Successes:    strconv.Itoa(e.Confirm.Successes),
		After:        durationText(e.Confirm.After),
		Tags:         strings.Join(e.Tags, ", "),
		Channels:     e.Channels,
		Public:       e.Public,
		Locations:    strings.Join(e.Locations, ", "),
	}
	if e.Quorum != 0 {
		f.Quorum = strconv.Itoa(e.Quorum)
	}
	optionsForm(&f, e)
	alertsForm(&f, e)
	if e.URL != "" {
		f.URL = probe.RedactURL(e.URL)
	}
	for _, h := range e.Headers {
		row := web.HeaderRow{Name: h.Name, Value: h.Value, Secret: h.Secret, Kept: h.Secret}
		if h.Secret {
			row.Value = ""
		}
		f.Headers = append(f.Headers, row)
	}
	return f
}

func (s *Server) doRegister(c echo.Context) error {
	return s.submitEndpoint(c, web.FormPage{}, store.Endpoint{}, func(ctx context.Context, in endpointInput) (store.Overview, error) {
		return s.register(ctx, in)
	})
}

func (s *Server) doEdit(c echo.Context) error {
	o, err := s.cfg.Store.Endpoint(c.Request().Context(), c.Param("slug"))
	if err != nil {
		return err
	}
	page := web.FormPage{Slug: o.Slug, Name: o.Name, Known: locationsOf(o)}
	return s.submitEndpoint(c, page, o.Endpoint, func(ctx context.Context, in endpointInput) (store.Overview, error) {
		return s.edit(ctx, o.Slug, in)
	})
}

// submitEndpoint tests or saves what was typed. Whatever goes wrong, the form comes back with all of it.
func (s *Server) submitEndpoint(c echo.Context, page web.FormPage, kept store.Endpoint,
	save func(context.Context, endpointInput) (store.Overview, error)) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	page.Form = readEndpointForm(f, kept)
	if page.Slug == "" && f.ticked("short") { // no more than a URL was asked for
		page.Form = formOf(store.NewEndpoint())
		page.Form.URL = f.text("url")
	}
	in, parents := inputOf(page.Form), f.picked("depends_on")
	if f.ticked("alerts") { // the form has the fields for them
		in.Alerting = alertsOf(page.Form, parents, &in.Mistakes)
	}
	switch f.text("action") {
	case "test":
		outlast(c, maxProbe)
		check, err := s.try(c.Request().Context(), page.Slug, in, lookAt(c))
		again(c)
		if err != nil {
			return s.endpointMistaken(c, page, parents, err)
		}
		if page.Slug == "" {
			page.Proposed = s.propose(c.Request().Context(), &page.Form, check.Result)
		}
		view := web.CheckOf("", check.Result)
		page.Test = &view
		return s.endpointForm(c, http.StatusOK, page, parents)
	case "save":
		o, err := save(ctx, in)
		if err != nil {
			return s.endpointMistaken(c, page, parents, err)
		}
		done := "saved"
		if page.Slug == "" {
			done = "registered"
		}
		return seeOther(c, "/endpoints/"+o.Slug, done)
	}
	return errNoAction
}

// endpointMistaken shows the form again with what is wrong with it. An error that is not the visitor's is passed on.
func (s *Server) endpointMistaken(c echo.Context, page web.FormPage, parents []string, err error) error {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError || p.Status == http.StatusNotFound {
		return err
	}
	setRetryAfter(c, p)
	page.Problems = problemsOf(p)
	return s.endpointForm(c, p.Status, page, parents)
}

// maxHeaderRows is how many rows of headers are read: some more than an endpoint may have, so that too many are named
// as a mistake rather than passed over.
const maxHeaderRows = 100

// readEndpointForm takes what was typed as it was typed. Rows of headers without a name and a value are left out. kept
// is the endpoint that is edited.
func readEndpointForm(f form, kept store.Endpoint) web.EndpointForm {
	typed := web.EndpointForm{
		URL:          f.text("url"),
		Name:         f.text("name"),
		Kind:         f.text("kind"),
		Method:       f.text("method"),
		Params:       f.text("params"),
		Schedule:     f.text("schedule"),
		Timeout:      f.text("timeout"),
		DegradedOver: f.text("degraded_over"),
		Failures:     f.text("failures"),
		Successes:    f.text("successes"),
		After:        f.text("after"),
		Tags:         f.text("tags"),
		Channels:     f.texts("channels"),
		Public:       f.ticked("public"),
		Locations:    f.text("locations"),
		Quorum:       f.text("quorum"),
	}
	for i := range maxHeaderRows {
		row := web.HeaderRow{
			Name:   f.text(fmt.Sprintf("header_name_%d", i)),
			Value:  f.text(fmt.Sprintf("header_value_%d", i)),
			Secret: f.ticked(fmt.Sprintf("header_secret_%d", i)),
		}
		if row.Name == "" && row.Value == "" {
			continue
		}
		row.Kept = slices.ContainsFunc(kept.Headers, func(h probe.Header) bool { return h.Secret && strings.EqualFold(h.Name, row.Name) })
		typed.Headers = append(typed.Headers, row)
	}
	readOptionsForm(&typed, f, kept)
	readAlertsForm(&typed, f)
	return typed
}

// inputOf reads what was typed.
func inputOf(typed web.EndpointForm) endpointInput {
	params := json.RawMessage(typed.Params)
	in := endpointInput{
		Name:         &typed.Name,
		Kind:         &typed.Kind,
		URL:          &typed.URL,
		Schedule:     &typed.Schedule,
		Timeout:      &typed.Timeout,
		DegradedOver: &typed.DegradedOver,
		Confirm:      confirmInput{After: &typed.After},
		Headers:      new(headerInputs(typed.Headers)),
		Request:      requestInput{Method: &typed.Method, Params: &params},
		Public:       &typed.Public,
		Tags:         new(namesOf(typed.Tags)),
		Channels:     &typed.Channels,

		ContractNotices: &typed.ContractNotices,

		Locations: new(namesOf(typed.Locations)),
		Quorum:    new(int),
	}
	in.Options, in.Mistakes = optionsOf(typed)
	number := func(field, text string) *int {
		n, err := strconv.Atoi(text)
		if err != nil {
			in.Mistakes = append(in.Mistakes, probe.Problem{Field: field, Message: "must be a whole number"})
			return nil
		}
		return &n
	}
	in.Confirm.Failures = number("confirm.failures", typed.Failures)
	in.Confirm.Successes = number("confirm.successes", typed.Successes)
	if typed.Quorum != "" {
		in.Quorum = number("quorum", typed.Quorum)
	}
	return in
}

// headerInputs leaves out the value of a secret that is kept and was not typed anew.
func headerInputs(rows []web.HeaderRow) []headerInput {
	headers := make([]headerInput, 0, len(rows))
	for _, row := range rows {
		h := headerInput{Name: row.Name, Value: &row.Value, Secret: row.Secret}
		if row.Kept && row.Value == "" {
			h.Value = nil
		}
		headers = append(headers, h)
	}
	return headers
}

// namesOf reads names between commas or line breaks.
func namesOf(text string) []string {
	names := []string{}
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
