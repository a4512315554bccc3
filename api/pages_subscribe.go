package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// askPatience bounds how long a question may take on its way. A mail server may make us wait, a challenge waits for its answer.
const askPatience = time.Minute

// subscribeForm returns the form that asks for a subscription; nil where none can be had. sub is what is chosen so far.
func (s *Server) subscribeForm(v site, shown []store.Overview, sub store.Subscription) *web.SubscribeForm {
	by := s.subscribable()
	if len(by) == 0 {
		return nil
	}
	f := &web.SubscribeForm{Action: v.path(subscribePart), About: subscribeAbout(v, shown, sub)}
	for _, t := range by {
		label := typeWords(t)
		if t == store.ChannelSlack {
			label = "Slack webhook"
		}
		f.Types = append(f.Types, web.Tick{Value: string(t), Label: label, On: len(f.Types) == 0})
	}
	return f
}

// subscribeAbout returns the part of a form that says what a subscription is about.
func subscribeAbout(v site, shown []store.Overview, sub store.Subscription) web.SubscribeAbout {
	about := web.SubscribeAbout{All: sub.All}
	for _, o := range shown {
		chosen := slices.Contains(sub.Endpoints, o.ID)
		if !chosen && len(about.Endpoints) >= maxPicks {
			continue
		}
		about.Endpoints = append(about.Endpoints, web.PickOption{Slug: o.Slug, Name: o.Name, Chosen: chosen})
	}
	for _, tag := range offeredTags(v, shown) {
		about.Tags = append(about.Tags, web.Tick{Value: tag, Label: tag, On: slices.Contains(sub.Tags, tag)})
	}
	return about
}

// offered returns the endpoints of a page, which somebody can subscribe to, by name.
func (s *Server) offered(ctx context.Context, v site) ([]store.Overview, error) {
	if v.page == nil {
		p, err := s.public(ctx)
		return p.endpoints, err
	}
	p, err := s.publicOn(ctx, *v.page)
	return p.endpoints, err
}

// offeredTags returns the tags by which somebody can subscribe: on pages of their own, tags are nobody's business.
func offeredTags(v site, shown []store.Overview) []string {
	if v.page != nil {
		return nil
	}
	return tagsOf(shown)
}

// pageSubscribe is the form alone, with one endpoint chosen if the query names one. An endpoint that goes by the name of this page
// is shown in its place.
func (s *Server) pageSubscribe(c echo.Context) error {
	err := s.statusEndpoint(c, strings.TrimPrefix(subscribePart, "/"))
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return s.subscribePage(c)
}

// pageSiteSubscribe is the form of a page alone.
func (s *Server) pageSiteSubscribe(c echo.Context) error { return s.subscribePage(c) }

func (s *Server) subscribePage(c echo.Context) error {
	v := s.siteOf(c)
	shown, err := s.offered(c.Request().Context(), v)
	if err != nil {
		return err
	}
	sub := store.Subscription{All: true}
	if at := slices.IndexFunc(shown, func(o store.Overview) bool { return o.Slug == c.QueryParam("endpoint") }); at >= 0 {
		sub.All, sub.Endpoints = false, []string{shown[at].ID}
	}
	form := s.subscribeForm(v, shown, sub)
	if form == nil {
		return s.unsubscribable(c)
	}
	return s.publicPage(c, web.SubscribePage{Frame: s.frame(c, "/status"), Form: *form})
}

// unsubscribable says that nobody can subscribe here: nobody is there to ask, or the links of messages would lead nowhere.
func (s *Server) unsubscribable(c echo.Context) error {
	return s.render(c, http.StatusNotFound, web.SubscribeSaidPage{
		Frame: s.frame(c, "/status"), Title: "Subscribing is not available here",
		Text: "This service does not send messages to the public. Its feeds, which the status page leads to, tell of incidents as well.",
	})
}

// doSubscribe takes a wish and sends a question. What it answers does not depend on who is subscribed already.
func (s *Server) doSubscribe(c echo.Context) error {
	by := s.subscribable()
	if len(by) == 0 {
		return s.unsubscribable(c)
	}
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx, v := c.Request().Context(), s.siteOf(c)
	shown, err := s.offered(ctx, v)
	if err != nil {
		return err
	}
	w := wish{
		Type: f.text("type"), Address: f.text("address"), Secret: f.text("signing_secret"),
		All: f.ticked("all"), Endpoints: f.texts("endpoints"), Tags: f.texts("tags"),
	}
	sub, err := w.subscription(by, v, shown)
	if err != nil {
		return s.subscribeAgain(c, w, shown, sub, err)
	}
	times, wait := s.asking.take(c.RealIP(), sub)
	if wait > 0 {
		return s.subscribeAgain(c, w, shown, sub, tooManyAsked(wait))
	}
	if err := s.roomFor(ctx, sub); err != nil {
		return s.subscribeAgain(c, w, shown, sub, err)
	}
	sub, secret, err := s.enlist(ctx, sub)
	if err != nil {
		return err
	}
	return s.answerAsked(c, w, shown, sub, secret, times)
}

// answerAsked sends the question and says so. A mail is sent once the answer is on its way: how long it takes would tell whether
// there was one to send.
func (s *Server) answerAsked(c echo.Context, w wish, shown []store.Overview, sub store.Subscription, secret string, times int) error {
	answer := askedPage(store.ChannelType(w.Type))
	answer.Frame = s.frame(c, "/status")
	if store.ChannelType(w.Type) == store.ChannelEmail {
		c.Response().Header().Set("Connection", "close") // nothing else should wait for us on it
		if err := s.render(c, http.StatusOK, answer); err != nil {
			return err
		}
		_ = http.NewResponseController(c.Response()).Flush() // one who has left is asked all the same
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), askPatience)
		defer cancel()
		s.noteUnasked(ctx, sub, s.question(ctx, s.siteOf(c).page, sub, secret, times))
		return nil
	}
	outlast(c, askPatience+promptness)
	ctx, cancel := context.WithTimeout(c.Request().Context(), askPatience)
	defer cancel()
	if err := s.question(ctx, s.siteOf(c).page, sub, secret, times); err != nil {
		s.noteUnasked(ctx, sub, err)
		if p := problemOf(err); p.Status == http.StatusConflict { // others were confirmed while we asked
			return s.subscribeAgain(c, w, shown, sub, err)
		}
		refused := fault(http.StatusUnprocessableEntity, "Not subscribed", "That did not work: nobody there answered as they should.")
		return s.subscribeAgain(c, w, shown, sub, refused)
	}
	return s.render(c, http.StatusOK, answer)
}

func (s *Server) noteUnasked(ctx context.Context, sub store.Subscription, err error) {
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "subscriber was not asked", "subscription", sub.ID, "type", sub.Channel.Type, "error", err)
	}
}

// askedPage says what follows.
func askedPage(t store.ChannelType) web.SubscribeSaidPage {
	switch t {
	case store.ChannelEmail:
		return web.SubscribeSaidPage{Title: "Look at your mail",
			Text: "A mail is on its way to you. Open the link in it within two days and confirm: nothing else is sent before. " +
				"If it does not come, look among unwanted mail."}
	case store.ChannelSlack:
		return web.SubscribeSaidPage{Title: "Look at Slack",
			Text: "A message is on its way there. Open the link in it within two days and confirm: nothing else is sent before."}
	}
	return web.SubscribeSaidPage{Title: "Subscribed",
		Text: "The receiver has answered our challenge. What it was sent says how to change the subscription and how to end it."}
}

// subscribeAgain shows the form as it was filled in, with what is wrong.
func (s *Server) subscribeAgain(c echo.Context, w wish, shown []store.Overview, sub store.Subscription, err error) error {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		return err
	}
	setRetryAfter(c, p)
	form := s.subscribeForm(s.siteOf(c), shown, sub)
	form.Address, form.Secret, form.Problems = w.Address, w.Secret, addressed(problemsOf(p))
	for i := range form.Types {
		form.Types[i].On = form.Types[i].Value == w.Type
	}
	return s.render(c, p.Status, web.SubscribePage{Frame: s.frame(c, "/status"), Form: *form})
}

// withToken answers to links that hold a token. Without one, the path is that of an endpoint of the built-in page like any other.
func (s *Server) withToken(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.QueryParam("token") == "" && s.siteOf(c).page == nil {
			return s.statusEndpoint(c, strings.TrimPrefix(c.Path(), "/status/"))
		}
		hush(c)
		return next(c)
	}
}

// hush keeps the address of a page, which holds a token, from everybody that the page leads to.
func hush(c echo.Context) {
	c.Response().Header().Set("Referrer-Policy", "no-referrer")
	c.Response().Header().Set("Cache-Control", "no-store")
}

// readLink reads the form behind a link: its token stands in the form or, where a program follows the link, in the query.
func readLink(c echo.Context) (form, string, error) {
	hush(c)
	f, err := readForm(c)
	if err != nil {
		return form{}, "", err
	}
	if token := f.text("token"); token != "" {
		return f, token, nil
	}
	return f, c.QueryParam("token"), nil
}

// orDead answers err, and where a token is of nothing, with a page that says the same whatever it was once of.
func (s *Server) orDead(c echo.Context, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return s.render(c, http.StatusNotFound, web.SubscribeSaidPage{
		Frame: s.frame(c, "/status"), Private: true, Title: "This link does not work",
		Text: "It was used already, a later one has replaced it, or it is too old. If you want to be told of incidents, subscribe again.",
	})
}

// pageConfirm shows a button: programs that look at mails open the links in them, and none of them means it.
func (s *Server) pageConfirm(c echo.Context) error {
	token, v := c.QueryParam("token"), s.siteOf(c)
	sub, err := s.confirmable(c.Request().Context(), v, token)
	if err != nil {
		return s.orDead(c, err)
	}
	return s.render(c, http.StatusOK, web.SubscribeActPage{
		Frame: s.frame(c, "/status"), Title: "Do you want to be told of incidents?", Where: whereWords(sub),
		Action: v.path(confirmPart), Token: token, Button: "Yes, subscribe",
		Text: "If you did not ask for it, close this page: nothing is sent to you.",
	})
}

func (s *Server) doConfirm(c echo.Context) error {
	_, token, err := readLink(c)
	if err != nil {
		return err
	}
	ctx, v := c.Request().Context(), s.siteOf(c)
	sub, err := s.confirmable(ctx, v, token)
	if err == nil {
		err = s.confirm(ctx, sub.ID, store.HashSecret(token))
	}
	if err != nil {
		return s.orDead(c, err)
	}
	return s.render(c, http.StatusOK, web.SubscribeSaidPage{
		Frame: s.frame(c, "/status"), Private: true, Title: "Subscribed",
		Text:   "You are told when something happens. Every message says how to end it.",
		Manage: linkURL(v.root, managePart, linkToken(s.cfg.LinkKey, "manage", sub.ID)),
	})
}

func (s *Server) pageManage(c echo.Context) error {
	return s.managePage(c, http.StatusOK, c.QueryParam("token"), nil, nil)
}

// managePage shows a subscription to whoever has its link; typed is what it was to be about.
func (s *Server) managePage(c echo.Context, status int, token string, typed *store.Subscription, problems web.Problems) error {
	ctx, v := c.Request().Context(), s.siteOf(c)
	sub, err := s.managed(ctx, v, token)
	if err != nil {
		return s.orDead(c, err)
	}
	page := web.SubscribeManagePage{
		Frame: s.frame(c, "/status"), Action: v.path(managePart), Token: token, Type: typeWords(sub.Channel.Type), Where: whereWords(sub),
		Waiting: sub.ConfirmedAt == nil, Broken: sub.Channel.BrokenAt, Shut: v.shut, Problems: problems,
	}
	if v.shut { // whoever has the link has not given the password of the page, whose endpoints it would list
		return s.render(c, status, page)
	}
	shown, err := s.offered(ctx, v)
	if err != nil {
		return err
	}
	if typed != nil {
		sub = *typed
	}
	page.About = subscribeAbout(v, shown, sub)
	return s.render(c, status, page)
}

func (s *Server) doManage(c echo.Context) error {
	f, token, err := readLink(c)
	if err != nil {
		return err
	}
	ctx, v := c.Request().Context(), s.siteOf(c)
	sub, err := s.managed(ctx, v, token)
	if err != nil {
		return s.orDead(c, err)
	}
	switch f.text("action") {
	case "end":
		if err := s.end(ctx, sub.ID); err != nil {
			return err
		}
		return s.endedPage(c)
	case "save":
		if v.shut {
			return s.managePage(c, http.StatusForbidden, token, nil, nil)
		}
		return s.changeAbout(c, sub, f, token)
	}
	return errNoAction
}

func (s *Server) changeAbout(c echo.Context, sub store.Subscription, f form, token string) error {
	ctx, v := c.Request().Context(), s.siteOf(c)
	shown, err := s.offered(ctx, v)
	if err != nil {
		return err
	}
	w := wish{All: f.ticked("all"), Endpoints: f.texts("endpoints"), Tags: f.texts("tags")}
	if mistakes := w.about(&sub, v, shown); len(mistakes) > 0 {
		return s.managePage(c, http.StatusUnprocessableEntity, token, &sub, mistakes)
	}
	_, err = s.cfg.Store.UpdateSubscription(ctx, sub.ID, func(x *store.Subscription) error {
		x.All, x.Endpoints, x.Tags = sub.All, sub.Endpoints, sub.Tags
		return nil
	})
	if err != nil {
		return s.orDead(c, err)
	}
	return c.Redirect(http.StatusSeeOther, v.path(managePart)+"?"+url.Values{"token": {token}, "done": {"saved"}}.Encode())
}

func (s *Server) pageUnsubscribe(c echo.Context) error {
	token := c.QueryParam("token")
	id, ok := s.linked("unsubscribe", token)
	if !ok {
		return s.orDead(c, store.ErrNotFound)
	}
	page := web.SubscribeActPage{
		Frame: s.frame(c, "/status"), Title: "End this subscription?", Action: s.siteOf(c).path(unsubscribePart), Token: token, Button: "Unsubscribe",
		Text: "Nothing more is sent to you then.",
	}
	switch sub, err := s.cfg.Store.Subscription(c.Request().Context(), id); {
	case err == nil:
		page.Where = whereWords(sub)
	case !errors.Is(err, store.ErrNotFound): // one that has ended may be ended again
		return err
	}
	return s.render(c, http.StatusOK, page)
}

// doUnsubscribe ends a subscription, as RFC 8058 has it: whoever has the link needs no login, no cookie and no second step, and
// one that has ended already has ended.
func (s *Server) doUnsubscribe(c echo.Context) error {
	_, token, err := readLink(c)
	if err != nil {
		return err
	}
	id, ok := s.linked("unsubscribe", token)
	if !ok {
		return s.orDead(c, store.ErrNotFound)
	}
	if err := s.end(c.Request().Context(), id); err != nil {
		return err
	}
	return s.endedPage(c)
}

func (s *Server) endedPage(c echo.Context) error {
	return s.render(c, http.StatusOK, web.SubscribeSaidPage{
		Frame: s.frame(c, "/status"), Private: true, Title: "Unsubscribed", Text: "Nothing more is sent to you.",
	})
}
