package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// pageChannels lists the channels, with a form for one more of the type that the query names.
func (s *Server) pageChannels(c echo.Context) error {
	spec, known := store.ChannelType(c.QueryParam("type")).Spec()
	if !known {
		spec = store.ChannelSpecs()[0]
	}
	return s.channelList(c, http.StatusOK, web.ChannelsPage{Form: s.channelForm(spec, store.Channel{}), For: c.QueryParam("for")})
}

func (s *Server) channelList(c echo.Context, status int, page web.ChannelsPage) error {
	channels, err := s.cfg.Store.Channels(c.Request().Context())
	if err != nil {
		return err
	}
	page.Frame, page.Nameless = s.frame(c, "/channels"), s.cfg.PublicURL == ""
	if page.For != "" {
		o, err := s.cfg.Store.Endpoint(c.Request().Context(), page.For)
		if err != nil {
			return err
		}
		page.For, page.ForName = o.Slug, o.Name
	}
	for _, channel := range channels {
		page.Channels = append(page.Channels, channelRow(channel))
	}
	for _, spec := range store.ChannelSpecs() {
		page.Types = append(page.Types, web.ChannelType{Name: string(spec.Type), Title: spec.Title})
	}
	return s.render(c, status, page)
}

func channelRow(c store.Channel) web.ChannelRow {
	return web.ChannelRow{ID: c.ID, Name: c.Name, Type: typeWords(c.Type), How: howWords(c), Broken: c.Broken, BrokenAt: c.BrokenAt}
}

// typeWords names a type of channel for people.
func typeWords(t store.ChannelType) string {
	if spec, known := t.Spec(); known {
		return spec.Title
	}
	return string(t)
}

// howWords says how a channel is reached, without its secrets: "channel #alerts, at chat.example". A channel of which
// nothing may be told but its secrets is reached "by webhook URL".
func howWords(c store.Channel) web.Said {
	var how, by web.Said
	also := func(s web.Said) {
		if how.Empty() {
			how = s
			return
		}
		how = web.Say("%s, %s", how, s)
	}
	spec, _ := c.Type.Spec()
	for _, f := range spec.Fields {
		switch value := c.Value(f.Name); {
		case value == "" || f.Kind == store.FieldLong:
		case f.Secret && by.Empty():
			by = web.Say("by " + inSentence(f.Label))
		case f.Secret:
		case f.Kind == store.FieldURL:
			if u, err := url.Parse(value); err == nil {
				also(web.Say("at %s", clip(u.Host, maxShown)))
			}
		default:
			also(web.Say(inSentence(f.Label)+" %s", clip(value, maxShown)))
		}
	}
	if how.Empty() {
		return by
	}
	return how
}

// inSentence returns a label as it stands in the middle of a sentence: "webhook URL", but "API key".
func inSentence(label string) string {
	if len(label) > 1 && label[1] >= 'a' && label[1] <= 'z' {
		return strings.ToLower(label[:1]) + label[1:]
	}
	return label
}

// channelsOf returns the channels that hear of an endpoint.
func (s *Server) channelsOf(ctx context.Context, e store.Endpoint) ([]web.ChannelRow, error) {
	if len(e.Channels) == 0 {
		return nil, nil
	}
	channels, err := s.cfg.Store.Channels(ctx)
	if err != nil {
		return nil, err
	}
	var rows []web.ChannelRow
	for _, c := range channels {
		if slices.Contains(e.Channels, c.ID) {
			rows = append(rows, channelRow(c))
		}
	}
	return rows, nil
}

// doChannels adds a channel, or shows what the template that was typed for it makes of a message.
func (s *Server) doChannels(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if f.text("action") == "paste" {
		return s.doPaste(c, f)
	}
	spec, known := store.ChannelType(f.text("type")).Spec()
	if !known {
		return fault(http.StatusBadRequest, "Unknown type", "There is no such type of channel. Go back and choose one.")
	}
	typed := s.channelForm(spec, store.Channel{})
	typeInto(&typed, f)
	if f.text("action") == "preview" {
		status, mistakes := s.previewInto(&typed)
		return s.channelList(c, status, web.ChannelsPage{Form: typed, Problems: mistakes})
	}
	in := channelInputOf(typed)
	in.Type = &typed.Type
	if _, err := s.createChannel(c.Request().Context(), in); err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			return err
		}
		return s.channelList(c, p.Status, web.ChannelsPage{Form: typed, Problems: problemsOf(p)})
	}
	return seeOther(c, "/channels", "added")
}

// channelForm is a channel as the form of its type shows it, without any secret.
func (s *Server) channelForm(spec store.ChannelSpec, c store.Channel) web.ChannelForm {
	form := web.ChannelForm{Type: string(spec.Type), TypeTitle: spec.Title, Name: c.Name}
	if s.cfg.PreviewTemplate != nil {
		form.Kinds, form.Kind = previewKinds, previewKinds[0]
	}
	someRequired := slices.ContainsFunc(spec.Fields, func(f store.ChannelField) bool { return f.Required })
	for _, f := range spec.Fields {
		form.Fields = append(form.Fields, web.ChannelField{
			ChannelField: f,
			Value:        c.Settings[f.Name],
			Kept:         c.Secrets[f.Name] != "",
			Optional:     someRequired && !f.Required,
		})
	}
	return form
}

// typeInto puts what was typed into a form, as it was typed.
func typeInto(form *web.ChannelForm, f form) {
	form.Name = f.text("name")
	for i := range form.Fields {
		field := &form.Fields[i]
		field.Value = strings.ReplaceAll(f.text(field.Name), "\r\n", "\n")
		field.Remove = field.Kept && f.ticked("remove_"+field.Name)
	}
	if kind := f.text("kind"); slices.Contains(form.Kinds, kind) {
		form.Kind = kind
	}
}

// channelInputOf reads what was typed. A secret that is kept stays while its field is empty, unless it is to be removed.
func channelInputOf(typed web.ChannelForm) channelInput {
	in := channelInput{Name: &typed.Name, Fields: map[string]*string{}}
	for _, f := range typed.Fields {
		if f.Value == "" && f.Kept && !f.Remove {
			continue
		}
		in.Fields[f.ChannelField.Name] = &f.Value
	}
	return in
}

// previewInto shows in the form what its template makes of a message. It returns the status of the answer.
func (s *Server) previewInto(form *web.ChannelForm) (int, web.Problems) {
	i := slices.IndexFunc(form.Fields, func(f web.ChannelField) bool { return f.Name == "template" })
	if i < 0 {
		return http.StatusOK, nil
	}
	words, mistakes := s.preview(form.Fields[i].Value, form.Kind)
	if len(mistakes) > 0 {
		return http.StatusUnprocessableEntity, mistakes
	}
	form.Fields[i].Preview = words
	return http.StatusOK, nil
}

func (s *Server) pageChannel(c echo.Context) error {
	channel, err := s.cfg.Store.Channel(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}
	return s.channelPage(c, http.StatusOK, channel, web.ChannelPage{Form: s.channelFormOf(channel)})
}

func (s *Server) channelPage(c echo.Context, status int, channel store.Channel, page web.ChannelPage) error {
	q := queryOf(c)
	cursor := q.text("cursor")
	if err := pageEnd(q); err != nil {
		return err
	}
	log, err := s.deliveryLog(c.Request().Context(), channel.ID, cursor)
	if err != nil {
		return err
	}
	page.Frame, page.Channel, page.Log = s.frame(c, "/channels"), channelRow(channel), log
	return s.render(c, status, page)
}

// attemptsPerPage is how many lines of the log of deliveries a page shows.
const attemptsPerPage = 20

// deliveryLog is what became of the messages to a channel.
func (s *Server) deliveryLog(ctx context.Context, id, cursor string) (*web.DeliveryLog, error) {
	page, err := s.cfg.Store.Attempts(ctx, store.AttemptFilter{ChannelID: id, Limit: attemptsPerPage, Cursor: cursor})
	if err != nil {
		return nil, err
	}
	log, path := &web.DeliveryLog{}, "/channels/"+id
	for _, a := range page.Items {
		log.Attempts = append(log.Attempts, attemptRow(a))
	}
	if cursor != "" {
		log.First = path + "#log"
	}
	if page.Next != "" {
		log.Next = listPath(path, map[string]string{"cursor": page.Next}) + "#log"
	}
	return log, nil
}

func attemptRow(a store.Attempt) web.AttemptRow {
	row := web.AttemptRow{
		At: a.At, Kind: noticeWords(a.Kind), Subject: subjectOf(a), IncidentID: a.IncidentID, Outcome: a.Outcome, Error: a.Error,
		NoticeID: a.NoticeID, Took: a.Took,
	}
	if a.Outcome == store.OutcomeRetry {
		row.Outcome = "retried"
	}
	return row
}

// subjectOf names what an attempt was to tell of, empty for an incident without a name.
func subjectOf(a store.Attempt) string {
	if a.Name == "" && a.IncidentID == "" {
		return "Rollcall"
	}
	return cmp.Or(a.Title, a.Name)
}

// channelFormOf is a channel that there is as its form shows it.
func (s *Server) channelFormOf(c store.Channel) web.ChannelForm {
	spec, _ := c.Type.Spec()
	return s.channelForm(spec, c)
}

// doChannel does what the buttons on a channel's page say.
func (s *Server) doChannel(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	channel, err := s.cfg.Store.Channel(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	switch f.text("action") {
	case "save":
		return s.saveChannel(c, channel, f)
	case "preview":
		typed := s.channelFormOf(channel)
		typeInto(&typed, f)
		status, mistakes := s.previewInto(&typed)
		return s.channelPage(c, status, channel, web.ChannelPage{Form: typed, Problems: mistakes})
	case "test":
		page := web.ChannelPage{Form: s.channelFormOf(channel), Tested: true}
		outlast(c, maxProbe)
		if err := s.cfg.TestChannel(c.Request().Context(), channel); err != nil {
			page.Failure = err.Error()
		}
		return s.channelPage(c, http.StatusOK, channel, page)
	case "resend":
		return s.resend(c, channel, f.text("notice"))
	case "delete":
		if f.ticked("confirmed") {
			if err := s.cfg.Store.DeleteChannel(ctx, channel.ID); err != nil {
				return err
			}
			return seeOther(c, "/channels", "deleted")
		}
		return s.render(c, http.StatusOK, web.ConfirmPage{
			Frame:    s.frame(c, "/channels"),
			Question: "Delete " + channel.Name + "?",
			Detail:   "Endpoints that tell it stop doing so, and what still waits to be sent is dropped. This cannot be undone.",
			Verb:     "Delete for good",
			Action:   "/channels/" + channel.ID,
			Back:     "/channels/" + channel.ID,
		})
	}
	return errNoAction
}

// resend has a message sent once more. That it still waits is shown on the page.
func (s *Server) resend(c echo.Context, channel store.Channel, noticeID string) error {
	err := s.cfg.Store.Resend(c.Request().Context(), noticeID, time.Now())
	if p := problemOf(err); err != nil && p.Status == http.StatusConflict {
		return s.channelPage(c, p.Status, channel, web.ChannelPage{Form: s.channelFormOf(channel), Problems: web.Problems{{Message: "That message still waits to be sent."}}})
	}
	if err != nil {
		return err
	}
	s.noticed()
	return seeOther(c, "/channels/"+channel.ID, "resent")
}

func (s *Server) saveChannel(c echo.Context, channel store.Channel, f form) error {
	typed := s.channelFormOf(channel)
	typeInto(&typed, f)
	if _, err := s.editChannel(c.Request().Context(), channel.ID, channelInputOf(typed)); err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError || p.Status == http.StatusNotFound {
			return err
		}
		return s.channelPage(c, p.Status, channel, web.ChannelPage{Form: typed, Problems: problemsOf(p)})
	}
	return seeOther(c, "/channels/"+channel.ID, "saved")
}
