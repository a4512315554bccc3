package api

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Parts of status pages: where somebody from the public asks to be told, and where the links in what they are sent lead to.
const (
	subscribePart   = "/subscribe"
	confirmPart     = "/confirm"
	managePart      = "/subscription"
	unsubscribePart = "/unsubscribe"
)

// linkParts take a token in place of a login, and nothing else that a browser sends by itself: another site that makes somebody
// send a form there can only send a token that it knows.
var linkParts = []string{confirmPart, managePart, unsubscribePart}

// minLinkKey is the length, in bytes, of the hash that a link key goes into.
const minLinkKey = sha256.Size

// UnsubscribeURL returns the link that ends a subscription: with a POST at once, as RFC 8058 has it, in a browser after a click.
// key is Config.LinkKey, publicURL Config.PublicURL, and page what it was subscribed on, nil for the built-in page.
func UnsubscribeURL(key []byte, publicURL string, page *store.StatusPage, id string) string {
	return linkURL(pageURL(publicURL, page), unsubscribePart, linkToken(key, "unsubscribe", id))
}

// ManageURL returns the link that shows a subscription of the public, changes and ends it. Its parameters are those of
// UnsubscribeURL.
func ManageURL(key []byte, publicURL string, page *store.StatusPage, id string) string {
	return linkURL(pageURL(publicURL, page), managePart, linkToken(key, "manage", id))
}

// pageURL is the address of a status page, nil for the built-in one, where its subscribers find it.
func pageURL(publicURL string, page *store.StatusPage) string {
	if page == nil {
		return publicURL + "/status"
	}
	return page.URL(publicURL)
}

func linkURL(page, part, token string) string {
	return page + part + "?" + url.Values{"token": {token}}.Encode()
}

// linkToken returns the token of a link about a subscription. It follows from the key, so that every message can hold it and
// nothing of it is kept; it ends with the subscription.
func linkToken(key []byte, purpose, id string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(purpose + ":" + id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)) + "." + id
}

// maxLinkToken is longer than any of ours.
const maxLinkToken = 200

// linked returns the id of the subscription that a token is of; false for a token that we never made for this purpose.
func (s *Server) linked(purpose, token string) (id string, ok bool) {
	_, id, found := strings.Cut(token, ".")
	if !found || len(token) > maxLinkToken || len(s.cfg.LinkKey) < minLinkKey {
		return "", false
	}
	if !hmac.Equal([]byte(token), []byte(linkToken(s.cfg.LinkKey, purpose, id))) {
		return "", false
	}
	return id, true
}

// subscribable returns by what the public can subscribe; none where that cannot be offered. Without a public URL, links would
// follow the Host of a request, and whoever made that up would get the answer to our question.
func (s *Server) subscribable() []store.ChannelType {
	if s.cfg.AskSubscriber == nil || s.cfg.PublicURL == "" {
		return nil
	}
	if s.cfg.SubscribeBy == nil {
		return subscribed
	}
	return s.cfg.SubscribeBy
}

// askLimits keep strangers from having us send messages to those who never asked for any: so many questions for whoever asks, for
// each address, and on each page.
type askLimits struct {
	from *buckets // by neighbourhood: 10 in the first hour, then 5
	on   *buckets // by page: 300 in the first hour, then 150; a flood on one shuts no other
	told *buckets // by subscription: that it is one already is said once an hour
	to   *askedOf
}

func newAskLimits() *askLimits {
	return &askLimits{
		from: newBuckets(rate.Every(12*time.Minute), 5),
		on:   newBuckets(rate.Every(24*time.Second), 150),
		told: newBuckets(rate.Every(time.Hour), 1),
		to:   &askedOf{at: map[string][]time.Time{}},
	}
}

// take notes that somebody at addr asks for an address. It returns how often that address was asked for in a day, and zero or how
// long to wait. Whether the address is subscribed plays no part.
func (l *askLimits) take(addr string, sub store.Subscription) (times int, wait time.Duration) {
	if wait := l.from.take(neighbourhood(addr)); wait > 0 {
		return 0, wait
	}
	if wait := l.on.take(sub.PageID); wait > 0 {
		return 0, wait
	}
	return l.to.take(mailbox(sub), time.Now())
}

// mailbox is what one recipient can make addresses of: what stands behind a plus sign is theirs to choose.
func mailbox(sub store.Subscription) string {
	address := sub.Address()
	if at := strings.LastIndexByte(address, '@'); sub.Channel.Type == store.ChannelEmail && at > 0 {
		name, _, _ := strings.Cut(address[:at], "+")
		address = name + address[at:]
	}
	return string(store.AddressHash(address))
}

// askedOf counts questions by address, over the last askedSpan. It holds hashes: addresses are kept in one place only.
type askedOf struct {
	mu sync.Mutex
	at map[string][]time.Time // guarded by mu; oldest first
}

// How many questions an address gets, in what time.
const (
	maxAsked  = 3
	askedSpan = 24 * time.Hour
)

func (a *askedOf) take(key string, now time.Time) (times int, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	recent := slices.DeleteFunc(a.at[key], func(t time.Time) bool { return now.Sub(t) >= askedSpan })
	if len(recent) >= maxAsked {
		a.at[key] = recent
		return len(recent), recent[0].Add(askedSpan).Sub(now)
	}
	if len(recent) == 0 {
		a.makeRoomLocked(now)
	}
	a.at[key] = append(recent, now)
	return len(recent) + 1, 0
}

// makeRoomLocked forgets addresses as buckets do.
func (a *askedOf) makeRoomLocked(now time.Time) {
	if len(a.at) < maxBuckets {
		return
	}
	for key, times := range a.at {
		if now.Sub(times[len(times)-1]) >= askedSpan {
			delete(a.at, key)
		}
	}
	for key := range a.at {
		if len(a.at) <= maxBuckets*9/10 {
			return
		}
		delete(a.at, key)
	}
}

func tooManyAsked(wait time.Duration) error {
	p := fault(http.StatusTooManyRequests, "Too many questions",
		"Nothing was sent: so many were asked for that they could be a nuisance to somebody. Try again in %s.", roughly(wait))
	p.retryAfter = wait
	return p
}

// roughly says how long to wait, in minutes or hours, rounded up.
func roughly(d time.Duration) string {
	n, unit := int((d+time.Minute-1)/time.Minute), "minute"
	if n > 90 {
		n, unit = int((d+time.Hour-1)/time.Hour), "hour"
	}
	if n == 1 {
		return "a " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// wish is what somebody from the public wants to be told of, and where.
type wish struct {
	Type, Address, Secret string
	All                   bool
	Endpoints, Tags       []string // slugs, and tags
}

// about puts what the wish is about into sub, and returns what is wrong with it. Only what the page shows is there.
func (w wish) about(sub *store.Subscription, v site, shown []store.Overview) []probe.Problem {
	var mistakes []probe.Problem
	sub.All, sub.Endpoints, sub.Tags = w.All, nil, nil
	if w.All {
		return nil
	}
	for i, slug := range w.Endpoints[:min(len(w.Endpoints), store.MaxSubscribed+1)] {
		at := slices.IndexFunc(shown, func(o store.Overview) bool { return o.Slug == slug })
		if at < 0 {
			mistakes = append(mistakes, probe.Problem{Field: indexed("endpoints", i), Message: "is not there"})
		} else if !slices.Contains(sub.Endpoints, shown[at].ID) {
			sub.Endpoints = append(sub.Endpoints, shown[at].ID)
		}
	}
	known := offeredTags(v, shown)
	for i, tag := range w.Tags[:min(len(w.Tags), store.MaxSubscribed+1)] {
		if !slices.Contains(known, tag) {
			mistakes = append(mistakes, probe.Problem{Field: indexed("tags", i), Message: "is not there"})
		} else if !slices.Contains(sub.Tags, tag) {
			sub.Tags = append(sub.Tags, tag)
		}
	}
	if len(mistakes) == 0 && len(sub.Endpoints)+len(sub.Tags) == 0 {
		mistakes = append(mistakes, probe.Problem{Field: "endpoints", Message: "are required, or tags, unless it is everything"})
	}
	return mistakes
}

// tagsOf returns the tags of endpoints, in order.
func tagsOf(endpoints []store.Overview) []string {
	var tags []string
	for _, o := range endpoints {
		tags = append(tags, o.Tags...)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// maxMail is the longest address that mail is delivered to: RFC 5321 §4.5.3.1.3, without the angle brackets.
const maxMail = 254

// subscription returns what the wish comes to on a page, unconfirmed. Its error is store.Invalid with every mistake.
func (w wish) subscription(by []store.ChannelType, v site, shown []store.Overview) (store.Subscription, error) {
	sub := store.Subscription{PageID: v.subscribed(), Channel: store.Channel{Name: "Subscriber", Type: store.ChannelType(w.Type)}}
	mistakes := w.about(&sub, v, shown)
	wrong := func(field, message string) {
		mistakes = append(mistakes, probe.Problem{Field: field, Message: message})
	}
	switch {
	case !slices.Contains(by, sub.Channel.Type):
		wrong("type", "is not available here: choose another")
	case w.Address == "":
		wrong("address", "is required")
	case sub.Channel.Type == store.ChannelEmail:
		addresses, err := store.Recipients(w.Address)
		if err != nil || len(addresses) != 1 || len(addresses[0]) > maxMail || !faraway(addresses[0]) {
			wrong("address", "must be one email address")
			break
		}
		sub.Channel.Settings = map[string]string{"to": addresses[0]}
	default:
		sub.Channel.Secrets = map[string]string{"webhook_url": w.Address}
		if sub.Channel.Type == store.ChannelWebhook && w.Secret != "" {
			sub.Channel.Secrets["signing_secret"] = w.Secret
		}
	}
	if len(mistakes) == 0 {
		return sub, sub.Validate()
	}
	return sub, store.Invalid{Problems: mistakes}
}

// faraway reports whether an email address is of a domain of the internet: others are mailboxes on the mail server's own machine or
// network, which no stranger has us write to.
func faraway(address string) bool {
	_, domain, _ := strings.Cut(address, "@")
	return strings.Contains(strings.TrimSuffix(domain, "."), ".")
}

// enlist keeps a subscription that nobody has confirmed, and returns it with the secret that confirms it. One that waits already
// is as it is wanted last, and links sent before do not work any more. One that is confirmed stays as it is, whoever asks: it
// comes without a secret.
func (s *Server) enlist(ctx context.Context, sub store.Subscription) (kept store.Subscription, secret string, err error) {
	for range 3 {
		kept, secret, err = s.tryEnlist(ctx, sub)
		_, taken := errors.AsType[store.Conflict](err) // by another request for the same address, at the same time
		if !taken && !errors.Is(err, store.ErrNotFound) {
			break
		}
	}
	return kept, secret, err
}

func (s *Server) tryEnlist(ctx context.Context, sub store.Subscription) (store.Subscription, string, error) {
	secret, hash := store.NewSecret("")
	sub.ConfirmHash = hash
	found, err := s.cfg.Store.Subscriptions(ctx, store.SubscriptionFilter{PageID: &sub.PageID, Address: sub.Address(), Limit: 1})
	if err != nil {
		return store.Subscription{}, "", err
	}
	if len(found.Items) == 0 {
		kept, err := s.cfg.Store.CreateSubscription(ctx, sub)
		return kept, secret, err
	}
	was := found.Items[0]
	if was.ConfirmedAt == nil && time.Since(was.CreatedAt) >= askedSpan { // so that it is not let go of before it can be confirmed
		if err := s.cfg.Store.DeleteSubscription(ctx, was.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Subscription{}, "", err
		}
		kept, err := s.cfg.Store.CreateSubscription(ctx, sub)
		return kept, secret, err
	}
	kept, err := s.cfg.Store.UpdateSubscription(ctx, was.ID, func(x *store.Subscription) error {
		if x.ConfirmedAt != nil {
			return nil
		}
		x.All, x.Endpoints, x.Tags, x.ConfirmHash = sub.All, sub.Endpoints, sub.Tags, sub.ConfirmHash
		x.Channel.Type, x.Channel.Settings, x.Channel.Secrets = sub.Channel.Type, sub.Channel.Settings, sub.Channel.Secrets
		return nil
	})
	if kept.ConfirmedAt != nil {
		secret = ""
	}
	return kept, secret, err
}

// spent reports whether the questions of a subscription were asked before this program started, which counted them no further.
func (s *Server) spent(sub store.Subscription, times int) bool {
	return times > 1 && sub.CreatedAt.Before(s.started) && time.Since(sub.CreatedAt) < askedSpan
}

// question sends what has to be sent about a subscription that was asked for on a page; times says how often that was in a day. Of
// a webhook, it confirms the subscription when the receiver has answered.
func (s *Server) question(ctx context.Context, page *store.StatusPage, sub store.Subscription, secret string, times int) error {
	confirmURL := ""
	switch {
	case sub.ConfirmedAt != nil:
		if s.asking.told.take(sub.ID) > 0 {
			return nil
		}
	case sub.Channel.Type != store.ChannelWebhook && s.spent(sub, times):
		return nil
	case sub.Channel.Type != store.ChannelWebhook:
		confirmURL = linkURL(pageURL(s.cfg.PublicURL, page), confirmPart, secret)
	}
	err := s.cfg.AskSubscriber(ctx, sub, page, confirmURL, ManageURL(s.cfg.LinkKey, s.cfg.PublicURL, page, sub.ID))
	if err != nil || sub.ConfirmedAt != nil || sub.Channel.Type != store.ChannelWebhook {
		return err
	}
	return s.confirm(ctx, sub.ID, store.HashSecret(secret))
}

// confirm makes a subscription one that is delivered to, and spends the secret with this hash. store.ErrNotFound when it is not
// the current one, a problem for people when there is no room for it.
func (s *Server) confirm(ctx context.Context, id string, hash []byte) error {
	_, err := s.cfg.Store.ConfirmSubscription(ctx, id, hash, s.cfg.SubscriptionCaps)
	return noRoom(err)
}

// roomFor returns a problem for people when there is no room for a subscription, so that nobody is asked in vain.
func (s *Server) roomFor(ctx context.Context, sub store.Subscription) error {
	crowd, err := s.cfg.Store.Crowd(ctx, sub)
	if err != nil {
		return err
	}
	return noRoom(s.cfg.SubscriptionCaps.Refuse(sub, crowd))
}

// noRoom words for people that there is no room for another subscription. Other errors stay as they are.
func noRoom(err error) error {
	switch {
	case errors.Is(err, store.ErrFull):
		return fault(http.StatusConflict, "No room for another subscription",
			"As many have subscribed in this way as there is room for. Follow the feed instead, or tell the people who run this service.")
	case errors.Is(err, store.ErrFullThere):
		return fault(http.StatusConflict, "No room for another subscription there",
			"That server, or Slack workspace, is sent as many subscriptions as it may have. End one of them first: each message says how.")
	}
	return err
}

// confirmable returns the subscription on a page that a secret confirms; store.ErrNotFound when it confirms none.
func (s *Server) confirmable(ctx context.Context, v site, secret string) (store.Subscription, error) {
	if secret == "" || len(secret) > maxLinkToken {
		return store.Subscription{}, store.ErrNotFound
	}
	hash := store.HashSecret(secret)
	sub, err := s.cfg.Store.SubscriptionByToken(ctx, hash)
	if err == nil && (!sub.Confirms(hash) || sub.PageID != v.subscribed()) {
		err = store.ErrNotFound
	}
	return sub, err
}

// managed returns the subscription on a page that a token of a link to manage it is of; store.ErrNotFound when there is none.
func (s *Server) managed(ctx context.Context, v site, token string) (store.Subscription, error) {
	id, ok := s.linked("manage", token)
	if !ok {
		return store.Subscription{}, store.ErrNotFound
	}
	sub, err := s.cfg.Store.Subscription(ctx, id)
	if err == nil && (!sub.Public() || sub.PageID != v.subscribed()) {
		err = store.ErrNotFound
	}
	return sub, err
}

// end removes a subscription. That it is gone already is as good.
func (s *Server) end(ctx context.Context, id string) error {
	if err := s.cfg.Store.DeleteSubscription(ctx, id); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// whereWords says where a subscription is sent to, as far as a page may show it: the URL of a webhook is a secret.
func whereWords(sub store.Subscription) string {
	if sub.Channel.Type == store.ChannelEmail {
		return sub.Channel.Value("to")
	}
	u, err := url.Parse(sub.Address())
	if err != nil {
		return ""
	}
	return cmp.Or(u.Hostname(), typeWords(sub.Channel.Type))
}
