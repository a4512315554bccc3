// Package api shows and edits what Rollcall knows: the REST API, the public status API and badges, and the dashboard
// (whose pages api/web renders). It knows no database driver, no scheduler and no sender: what it needs of them comes in
// as functions in Config.
package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Config is everything the server needs. All members are required unless they say otherwise.
type Config struct {
	Store store.Store
	// Pages is what public pages, badges, feeds, status answers and charts are read from, such as a read replica; nil means
	// Store. Where it fails, Store is asked.
	Pages    store.Store
	Log      *slog.Logger
	Registry *prometheus.Registry // what /metrics shows; the server registers its own collectors on it
	Location string               // where this instance probes from
	Version  string

	// PublicURL is where people reach this service, without a trailing slash; empty means "as the request says".
	PublicURL string
	// AdminToken is a bearer token with the admin role; empty means that there is none.
	AdminToken string
	// TrustedProxies are the addresses whose X-Forwarded-For is believed; none by default.
	TrustedProxies []netip.Prefix

	// KeepPublic is how long what the public is told may be kept before the database is asked again, 5 s at most, and the index of the
	// overview, 1 s at most. What this server
	// itself changes is told at once. Zero: nothing is kept.
	KeepPublic time.Duration

	// Probe asks a target once and keeps nothing.
	Probe func(ctx context.Context, t probe.Target) probe.Result
	// CheckNow probes an endpoint at once and records the check. store.ErrNotFound when there is no such endpoint.
	CheckNow func(ctx context.Context, slug string) (store.Check, error)
	// Changed is called after an endpoint was registered, changed or removed, so that the schedule follows at once.
	Changed func(ctx context.Context, endpointID, slug string)
	// Period reads a schedule and says how long it leaves between two checks at least; its error is fit for a user.
	Period func(schedule string) (time.Duration, error)
	// Due reads a schedule and returns what counts the times at which an endpoint with it is due in [from, to), for the share
	// of them that was measured. Nil means that Period tells.
	Due func(schedule, endpointID string) (count func(from, to time.Time) int)
	// TestChannel sends a test message and reports, without secrets, why it did not arrive.
	TestChannel func(ctx context.Context, c store.Channel) error
	// CheckTemplate reports what is wrong with the template of a channel, in words for who wrote it. Nil: nothing ever is.
	CheckTemplate func(text string) error
	// PreviewTemplate returns what a template makes of a made-up message of some kind, such as "opened". Its error is fit for
	// who wrote the template. Nil: templates cannot be previewed.
	PreviewTemplate func(text, kind string) (string, error)
	// WebhookSchema is the JSON Schema of what webhooks are sent. Nil: there is nothing at its address.
	WebhookSchema []byte
	// Noticed is called after something that may have left notices to be sent, so that they go at once. Nil: they go when the
	// dispatcher looks next.
	Noticed func()
	// Windows returns when a maintenance is under way between two times, in order: whole stretches, each with its beginning and
	// its end. Nil: only those of one that happens once are known.
	Windows func(m store.Maintenance, from, until time.Time) [][2]time.Time
	// PlansChanged is called after a maintenance was planned, changed or removed, so that the judge follows at once. Nil: it
	// follows when it looks next.
	PlansChanged func(ctx context.Context)
	// Objectives says how an endpoint fares against each of its objectives, in their order. Nil: nobody has worked it out.
	Objectives func(ctx context.Context, e store.Endpoint) ([]ObjectiveState, error)
	// SlackAction and SlackCommand answer what Slack sends: a click on a button, and /rollcall. They are given the headers and
	// the body as they came, of which one byte more than MaxSlackBody at most, and check the signature. Nil: there is nothing at
	// these addresses.
	SlackAction, SlackCommand func(ctx context.Context, header http.Header, body []byte) (status int, contentType string, reply []byte)
	// AskSubscriber asks whether somebody wants a subscription that was asked for on a status page, nil for the built-in one, in a
	// mail or a message in Slack that holds confirmURL. That is empty where s is confirmed already: the message says so, and leads to manageURL. It is
	// empty for a webhook as well: nil means that its receiver answered a challenge, which holds manageURL and confirms the
	// subscription. Nil: nobody from the public can subscribe; nor without a PublicURL, which the links need.
	AskSubscriber func(ctx context.Context, s store.Subscription, page *store.StatusPage, confirmURL, manageURL string) error
	// SubscribeBy are the types of channels that AskSubscriber knows how to ask through. Nil: email, webhook and slack.
	SubscribeBy []store.ChannelType
	// SubscriptionCaps bound the subscriptions of the public; zero means store.DefaultSubscriptionCaps.
	SubscriptionCaps store.SubscriptionCaps
	// LinkKey is what tokens of links in messages to subscribers are made with, 32 bytes at least. It stays the same for as long
	// as those links are to work. Required with AskSubscriber.
	LinkKey []byte
	// ProveDomain reports whether the TXT record of the domain of a status page is there: nil when it is. Its error says, in words
	// for whoever set it, what is there instead. Nil: no page can have a domain, nor without a PublicURL.
	ProveDomain func(ctx context.Context, p store.StatusPage) error
	// OIDC is a provider of identities by which people may log in, beside passwords. Nil: there is none.
	OIDC *OIDC
	// Settings are those with which the service was started, for admins to look at.
	Settings []Setting
	// Backlog reports how many checks wait, in memory or in the spool, because the database is away.
	Backlog func() int
}

// Server answers everything Rollcall is asked over HTTP. It is safe for concurrent use.
type Server struct {
	cfg      Config
	read     reader // for whoever only looks
	started  time.Time
	echo     *echo.Echo
	origins  *http.CrossOriginProtection
	metrics  *metrics
	badges   *badgeMemory
	logins   *logins
	halfKey  []byte    // seals what a browser keeps between password and code
	provider *provider // of identities; nil: none
	uptimes  uptimes
	choices  choices
	asking   *askLimits
	live     *live
	kept     *kept // of what the public is told
	lines    *kept // of what the overview is made of
	sites    sites
	// sitePasswords bound how often somebody may try the password of a status page, and siteKey signs that it was right.
	sitePasswords *logins
	siteKey       []byte

	trying chan struct{}   // one place for each probe that is asked for and not kept
	pages  map[string]bool // by route: whether its errors are shown as a page

	pictures *pictures // badges that are drawn

	local bool // whoever calls holds the database itself, and may set commands

	hasUser atomic.Bool // once true, true for good: users are never removed
}

// maxTrying bounds how many one-off probes run at once: each may hold a connection for minutes.
const maxTrying = 16

// New returns a server that is ready to be asked. It reports everything that is wrong with cfg at once.
func New(cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure the server: %w", err)
	}
	if cfg.SubscriptionCaps == (store.SubscriptionCaps{}) {
		cfg.SubscriptionCaps = store.DefaultSubscriptionCaps
	}
	s := &Server{
		cfg:      cfg,
		read:     readerOf(cfg),
		started:  time.Now(),
		echo:     echo.New(),
		origins:  http.NewCrossOriginProtection(),
		logins:   newLogins(),
		halfKey:  halfKeyOf(cfg.LinkKey),
		provider: newProvider(cfg.OIDC),
		asking:   newAskLimits(),
		live:     newLive(cfg.Store.Logins),
		kept:     newKept(cfg.KeepPublic, maxKept),
		lines:    newKept(min(cfg.KeepPublic, keepLines), maxLines),

		sitePasswords: newLogins(),
		siteKey:       newSiteKey(cfg.LinkKey),

		trying: make(chan struct{}, maxTrying),
		pages:  map[string]bool{},
	}
	s.cfg.Store = attentive{cfg.Store, s.live.expel}
	for _, path := range slackPaths { // signed by Slack, and nothing that a browser sends
		s.origins.AddInsecureBypassPattern("POST " + path)
	}
	for _, part := range linkParts {
		for _, page := range []string{"/status", "/p/{slug}"} {
			s.origins.AddInsecureBypassPattern("POST " + page + part)
		}
	}
	if cfg.PublicURL != "" {
		if err := s.origins.AddTrustedOrigin(cfg.PublicURL); err != nil {
			return nil, fmt.Errorf("public URL: %w", err)
		}
	}
	var err error
	if s.metrics, err = newMetrics(cfg.Registry); err != nil {
		return nil, err
	}
	s.rememberBadges()
	s.echo.IPExtractor = clientAddress(cfg.TrustedProxies)
	s.echo.HTTPErrorHandler = s.fail
	s.echo.Logger.SetOutput(io.Discard) // errors reach our own log through fail
	s.install()
	return s, nil
}

// Handler returns what an http.Server serves. Timeouts and shutdown are the caller's; handlers that must outlast a
// write timeout extend their own deadline.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// validate returns every mistake in c, joined.
func (c Config) validate() error {
	var errs []error
	missing := func(name string, absent bool) {
		if absent {
			errs = append(errs, errors.New(name+" is missing"))
		}
	}
	missing("Store", c.Store == nil)
	missing("Log", c.Log == nil)
	missing("Registry", c.Registry == nil)
	missing("Location", c.Location == "")
	missing("Probe", c.Probe == nil)
	missing("CheckNow", c.CheckNow == nil)
	missing("Changed", c.Changed == nil)
	missing("Period", c.Period == nil)
	missing("TestChannel", c.TestChannel == nil)
	missing("Backlog", c.Backlog == nil)
	if c.KeepPublic < 0 || c.KeepPublic > maxKeepPublic {
		errs = append(errs, fmt.Errorf("KeepPublic must be %s at most", maxKeepPublic))
	}
	if c.AskSubscriber != nil && len(c.LinkKey) < minLinkKey {
		errs = append(errs, fmt.Errorf("LinkKey must have %d bytes at least", minLinkKey))
	}
	if c.OIDC != nil {
		errs = append(errs, c.OIDC.mistakes()...)
	}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
			u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			errs = append(errs, errors.New("PublicURL must be like https://rollcall.example.com: scheme and host, nothing behind it"))
		}
	}
	return errors.Join(errs...)
}

// https reports whether the visitor reached us over TLS, as far as we may believe what we are told.
func (s *Server) https(c echo.Context) bool {
	r := c.Request()
	switch {
	case strings.HasPrefix(s.cfg.PublicURL, "https://"), r.TLS != nil:
		return true
	case s.fromProxy(r):
		return strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
	}
	return false
}

// fromProxy reports whether r was handed to us by a trusted proxy.
func (s *Server) fromProxy(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap()
	for _, p := range s.cfg.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// baseURL is where people reach this service, without a trailing slash.
func (s *Server) baseURL(c echo.Context) string {
	if s.cfg.PublicURL != "" {
		return s.cfg.PublicURL
	}
	scheme := "http"
	if s.https(c) {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: c.Request().Host}).String()
}
