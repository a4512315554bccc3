package api

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// subscriptionJSON returns a subscription as it stands in JSON: what its channel is made of, without secrets, then what it is
// about. An address that is not the reader's own is shortened. page is the slug of the page that it is of, nil where it is of none.
func subscriptionJSON(s store.Subscription, page *string, slugs map[string]string, own bool) Channel {
	shown := Channel{{"id", s.ID}, {"type", s.Channel.Type}}
	spec, _ := s.Channel.Type.Spec()
	for _, f := range spec.Fields {
		value := s.Channel.Settings[f.Name]
		switch {
		case f.Secret:
			shown = append(shown, channelMember{"has_" + f.Name, s.Channel.Secrets[f.Name] != ""})
		case value != "" && s.Channel.Type == store.ChannelEmail && f.Name == "to" && !own:
			shown = append(shown, channelMember{f.Name, shortened(value)})
		case value != "":
			shown = append(shown, channelMember{f.Name, value})
		}
	}
	if s.Channel.Broken != "" && own {
		shown = append(shown, channelMember{"broken", s.Channel.Broken}) // why nothing more is sent here; it may repeat the address
	}
	if at := timeOf(s.Channel.BrokenAt); at != nil {
		shown = append(shown, channelMember{"broken_at", at})
	}
	return append(shown,
		channelMember{"public", s.Public()},
		channelMember{"page", page},
		channelMember{"all", s.All},
		channelMember{"endpoints", slugsOf(s.Endpoints, slugs)},
		channelMember{"tags", append([]string{}, s.Tags...)},
		channelMember{"severities", s.Severities}, // null: whatever the endpoints tell
		channelMember{"quiet", s.Quiet},
		channelMember{"confirmed_at", timeOf(s.ConfirmedAt)},
		channelMember{"created_at", Time{s.CreatedAt}},
	)
}

// shortened returns addresses as far as they may be shown to others: "a…@example.com".
func shortened(list string) string {
	addresses := strings.Split(list, ",")
	for i, a := range addresses {
		name, domain, found := strings.Cut(strings.TrimSpace(a), "@")
		first := ""
		for _, r := range name {
			first = string(r)
			break
		}
		addresses[i] = first + "…"
		if found {
			addresses[i] += "@" + strings.TrimSuffix(domain, ">")
		}
	}
	return strings.Join(addresses, ", ")
}

func (s *Server) subscriptionsJSON(ctx context.Context, reader string, all ...store.Subscription) ([]Channel, error) {
	ids := map[string]bool{}
	for _, one := range all {
		for _, id := range one.Endpoints {
			ids[id] = true
		}
	}
	slugs, err := s.slugs(ctx, ids)
	if err != nil {
		return nil, err
	}
	pages, err := s.sites.read(ctx, s.cfg.Store)
	if err != nil {
		return nil, err
	}
	shown := make([]Channel, 0, len(all))
	for _, one := range all {
		var page *string
		if of := pages.byID[one.PageID]; of != nil {
			page = &of.Slug
		}
		shown = append(shown, subscriptionJSON(one, page, slugs, reader != "" && one.UserID == reader))
	}
	return shown, nil
}

// subscribed are the types of channels that a subscription may be sent through.
var subscribed = []store.ChannelType{store.ChannelEmail, store.ChannelWebhook, store.ChannelSlack}

// subscriptionInput is what a member wants to hear of, read from a JSON body or a form.
type subscriptionInput struct {
	Type       string
	Fields     map[string]string // of the channel, by name
	All        bool
	Endpoints  []string // slugs
	Tags       []string
	Severities *[]store.Status // nil: whatever the endpoints tell
	Quiet      *store.Quiet

	// Mistakes are those already met while reading.
	Mistakes []probe.Problem
}

// subscribe keeps a subscription of a member. Errors are store.Invalid with every mistake, store.Conflict when they have
// subscribed that address already, or the database's.
func (s *Server) subscribe(ctx context.Context, u store.User, in subscriptionInput) (store.Subscription, error) {
	ids, unknown, err := s.idsOf(ctx, "endpoints", in.Endpoints, store.MaxSubscribed)
	if err != nil {
		return store.Subscription{}, err
	}
	sub := in.of(u, time.Now())
	sub.Endpoints = ids
	mistakes := append(slices.Clone(in.Mistakes), unknown...)
	if err := sub.Validate(); err != nil {
		mistakes = besides(mistakes, problemOf(err).Errors)
	}
	if mistakes = slices.Concat(mistakes, tagMistakes(in.Tags)); len(mistakes) > 0 {
		return store.Subscription{}, store.Invalid{Problems: mistakes}
	}
	return s.cfg.Store.CreateSubscription(ctx, sub)
}

// of returns the subscription of a member that in describes, but for its endpoints. Its channel goes by their name.
func (in subscriptionInput) of(u store.User, now time.Time) store.Subscription {
	sub := store.Subscription{
		UserID: u.ID, All: in.All, Tags: in.Tags, Quiet: in.Quiet, ConfirmedAt: new(store.Stamp(now)),
		Channel: store.Channel{
			Name: clipRunes(u.Name, maxTitle), Type: store.ChannelType(in.Type), Settings: map[string]string{}, Secrets: map[string]string{},
		},
	}
	set(&sub.Severities, in.Severities)
	spec, _ := sub.Channel.Type.Spec()
	for name, value := range in.Fields {
		group := sub.Channel.Secrets // where Validate finds what is no field of this type
		if f, ok := spec.Field(name); ok && !f.Secret {
			group = sub.Channel.Settings
		}
		put(group, name, &value)
	}
	return sub
}

func clipRunes(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// tagMistakes says which tags no endpoint could have.
func tagMistakes(tags []string) []probe.Problem {
	var mistakes []probe.Problem
	for i, tag := range tags {
		if strings.TrimSpace(tag) == "" || !isText(tag) || len(tag) > maxParameter {
			mistakes = append(mistakes, probe.Problem{Field: indexed("tags", i), Message: "is no tag"})
		}
	}
	return mistakes
}

func readSubscription(m *members) subscriptionInput {
	in := subscriptionInput{Fields: map[string]string{}}
	set(&in.Type, m.text("type", ""))
	for _, f := range subscribedFields() {
		if value := m.text(f, ""); value != nil {
			in.Fields[f] = *value
		}
	}
	set(&in.All, m.flag("all", false))
	set(&in.Endpoints, m.texts("endpoints"))
	set(&in.Tags, m.texts("tags"))
	if raw, there := m.values["severities"]; there && isNull(raw) {
		m.take("severities")
	}
	in.Severities = readStatuses(m, "severities")
	if inner, removed := m.object("quiet"); inner != nil && !removed {
		q := store.Quiet{}
		set(&q.From, inner.text("from", ""))
		set(&q.To, inner.text("to", ""))
		set(&q.Zone, inner.text("zone", ""))
		q.Zone = cmp.Or(q.Zone, "UTC")
		inner.rest()
		in.Quiet = &q
	}
	m.readOnly("id", "public", "page", "broken", "broken_at", "confirmed_at", "created_at")
	m.rest()
	in.Mistakes = *m.mistakes
	return in
}

// subscribedFields are the names of what those channels are made of. The words are ours: there is no template.
func subscribedFields() []string {
	names := map[string]bool{}
	for _, t := range subscribed {
		spec, _ := t.Spec()
		for _, f := range spec.Fields {
			names[f.Name] = true
		}
	}
	delete(names, "template")
	return slices.Sorted(maps.Keys(names))
}

// listSubscriptions lists a member's own, or with all=true everybody's. To a token, which is nobody's, it lists all.
func (s *Server) listSubscriptions(c echo.Context) error {
	q := queryOf(c)
	all := q.flag("all")
	f := store.SubscriptionFilter{Limit: q.limit(), Cursor: q.text("cursor")}
	if err := q.end(); err != nil {
		return err
	}
	u, isMember := s.member(c)
	if isMember && !all {
		f.UserID = u.ID
	}
	ctx := c.Request().Context()
	page, err := s.cfg.Store.Subscriptions(ctx, f)
	if err != nil {
		return err
	}
	items, err := s.subscriptionsJSON(ctx, u.ID, page.Items...)
	if err != nil {
		return err
	}
	return ok(c, list[Channel]{items, page.Next})
}

func (s *Server) postSubscription(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	u, isMember := s.member(c)
	if !isMember {
		return fault(http.StatusForbidden, "Members only",
			"Subscriptions belong to members, and a token is nobody: log in to the dashboard. Tokens may list subscriptions and remove them.")
	}
	ctx := c.Request().Context()
	sub, err := s.subscribe(ctx, u, readSubscription(m))
	if err != nil {
		return err
	}
	items, err := s.subscriptionsJSON(ctx, u.ID, sub)
	if err != nil {
		return err
	}
	return answer(c, http.StatusCreated, "application/json", items[0])
}

// deleteSubscription ends a subscription: a member's own, or to a token that may change things any.
func (s *Server) deleteSubscription(c echo.Context) error {
	if err := s.unsubscribe(c, c.Param("id")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// unsubscribe ends a subscription; store.ErrNotFound also when it is somebody else's.
func (s *Server) unsubscribe(c echo.Context, id string) error {
	ctx := c.Request().Context()
	if u, isMember := s.member(c); isMember {
		sub, err := s.cfg.Store.Subscription(ctx, id)
		if err != nil {
			return err
		}
		if sub.UserID != u.ID {
			return store.ErrNotFound
		}
	} else if !s.role(c).May(editor) {
		return mayNot(editor)
	}
	return s.cfg.Store.DeleteSubscription(ctx, id)
}
