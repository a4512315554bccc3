package api

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func required(field string) probe.Problem { return probe.Problem{Field: field, Message: "is required"} }

func (s *Server) pageSubscriptions(c echo.Context) error {
	return s.subscriptionsPage(c, http.StatusOK, web.SubscriptionsPage{Form: subscriptionForm(form{url.Values{"type": {"email"}, "all": {"yes"}}})}, nil)
}

// subscriptionsPage shows somebody's own subscriptions, with what they typed for one more.
func (s *Server) subscriptionsPage(c echo.Context, status int, page web.SubscriptionsPage, chosen []string) error {
	q := queryOf(c)
	cursor := q.text("cursor")
	if err := pageEnd(q); err != nil {
		return err
	}
	ctx := c.Request().Context()
	u, _ := s.user(c)
	found, err := s.cfg.Store.Subscriptions(ctx, store.SubscriptionFilter{UserID: u.ID, Cursor: cursor})
	if err != nil {
		return err
	}
	page.Frame, page.Nameless = s.frame(c, "/subscriptions"), s.cfg.PublicURL == ""
	for _, sub := range found.Items {
		page.Subscriptions = append(page.Subscriptions, subscriptionRow(sub))
	}
	if cursor != "" {
		page.First = "/subscriptions"
	}
	if found.Next != "" {
		page.Next = listPath("/subscriptions", map[string]string{"cursor": found.Next})
	}
	if page.Picker, err = s.picker(ctx, "endpoints", "Endpoints", chosen, "", page.Problems); err != nil {
		return err
	}
	return s.render(c, status, page)
}

func subscriptionRow(sub store.Subscription) web.SubscriptionRow {
	row := web.SubscriptionRow{
		ID: sub.ID, Type: typeWords(sub.Channel.Type), Address: howWords(sub.Channel),
		About: aboutWords(sub.All, len(sub.Endpoints), sub.Tags), When: whenWords(sub.Severities),
		Broken: sub.Channel.Broken, BrokenAt: sub.Channel.BrokenAt,
	}
	if address := cmp.Or(sub.Channel.Value("to"), hostOf(sub.Channel.Value("webhook_url"))); address != "" {
		row.Address = web.Say("%s", address)
	}
	if q := sub.Quiet; q != nil {
		row.Quiet = q.From + "–" + q.To + " " + q.Zone
	}
	return row
}

// whenWords says which severities somebody hears of: "when down, gated".
func whenWords(severities []store.Status) web.Said {
	if severities == nil {
		return web.Say("whatever the endpoints tell")
	}
	words := make(web.List, 0, len(severities))
	for _, s := range severities {
		words = append(words, web.Words(s))
	}
	return web.Say("when %s", words)
}

// subscriptionForm is a subscription as it was typed.
func subscriptionForm(f form) web.SubscriptionForm {
	severities := f.texts("severities")
	return web.SubscriptionForm{
		Type: f.text("type"), Address: f.text("address"), Secret: f.text("signing_secret"), All: f.ticked("all"), Tags: f.text("tags"),
		Severities: web.SeverityTicks(func(s store.Status) bool {
			for _, one := range severities {
				if one == string(s) {
					return true
				}
			}
			return false
		}),
		QuietFrom: f.text("quiet_from"), QuietTo: f.text("quiet_to"), QuietZone: f.text("quiet_zone"),
	}
}

// doSubscriptions adds a subscription, or ends one.
func (s *Server) doSubscriptions(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	switch f.text("action") {
	case "delete":
		if err := s.unsubscribe(c, f.text("id")); err != nil {
			return err
		}
		return seeOther(c, "/subscriptions", "deleted")
	case "add":
		return s.addSubscription(c, f)
	}
	return errNoAction
}

func (s *Server) addSubscription(c echo.Context, f form) error {
	typed, chosen := subscriptionForm(f), f.picked("endpoints")
	u, _ := s.user(c)
	if _, err := s.subscribe(c.Request().Context(), u, subscribedBy(typed, chosen)); err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			return err
		}
		return s.subscriptionsPage(c, p.Status, web.SubscriptionsPage{Form: typed, Problems: addressed(problemsOf(p))}, chosen)
	}
	return seeOther(c, "/subscriptions", "subscribed")
}

// subscribedBy reads what was typed. What does not go with the choice that was made is left out, though the form keeps it.
func subscribedBy(typed web.SubscriptionForm, endpoints []string) subscriptionInput {
	in := subscriptionInput{Type: typed.Type, Fields: map[string]string{}, All: typed.All}
	if !typed.All {
		in.Endpoints, in.Tags = endpoints, namesOf(typed.Tags)
	}
	if store.ChannelType(typed.Type) == store.ChannelEmail {
		in.Fields["to"] = typed.Address
	} else {
		in.Fields["webhook_url"] = typed.Address
	}
	if store.ChannelType(typed.Type) == store.ChannelWebhook && typed.Secret != "" {
		in.Fields["signing_secret"] = typed.Secret
	}
	if typed.Address == "" {
		in.Mistakes = append(in.Mistakes, required("address"))
	}
	for _, tick := range typed.Severities {
		if tick.On {
			if in.Severities == nil {
				in.Severities = new([]store.Status)
			}
			*in.Severities = append(*in.Severities, store.Status(tick.Value))
		}
	}
	if typed.QuietFrom != "" || typed.QuietTo != "" {
		in.Quiet = &store.Quiet{From: typed.QuietFrom, To: typed.QuietTo, Zone: cmp.Or(typed.QuietZone, "UTC")}
	}
	return in
}

// addressed returns mistakes by the names of the fields on the form, where the address is one field for every type.
func addressed(ps web.Problems) web.Problems {
	var named web.Problems
	for _, p := range ps {
		if p.Field == "to" || p.Field == "webhook_url" {
			p.Field = "address"
		}
		if p.Field == "address" && len(named.For("address")) > 0 {
			continue
		}
		named = append(named, p)
	}
	return named
}
