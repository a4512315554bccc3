package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/labstack/echo/v4"
	"golang.org/x/oauth2"

	"github.com/rollcallhq/rollcall/store"
)

// OIDC is a provider of identities whose people may log in (OpenID Connect Core 1.0).
type OIDC struct {
	Issuer       string // URL, as the provider writes it
	ClientID     string
	ClientSecret string // empty for a public client, which PKCE alone protects
	// Role is what somebody may do who logs in for the first time; empty: RoleViewer.
	Role store.Role
	// Domains are those of the e-mail addresses that may log in, which the provider must have verified; nil: everybody whom the
	// provider knows.
	Domains []string
}

func (o *OIDC) mistakes() []error {
	var errs []error
	if !strings.HasPrefix(o.Issuer, "https://") && !strings.HasPrefix(o.Issuer, "http://") {
		errs = append(errs, errors.New("OIDC.Issuer must be a URL like https://accounts.example.com"))
	}
	if o.ClientID == "" {
		errs = append(errs, errors.New("OIDC.ClientID is missing"))
	}
	if o.Role != "" && !o.Role.May(store.RoleViewer) {
		errs = append(errs, errors.New("OIDC.Role must be viewer, editor or admin"))
	}
	return errs
}

// provider is the provider of identities, found out about when somebody first wants to log in by it: one that is away must not
// keep the service from starting.
type provider struct {
	cfg    *OIDC
	client *http.Client

	asking chan struct{}  // has room for the one that asks
	found  *oidc.Provider // guarded by asking; nil until it answered
}

// Bounds of a conversation with the provider.
const (
	oidcPatience = 10 * time.Second
	maxOIDCBody  = 1 << 20
)

func newProvider(cfg *OIDC) *provider {
	if cfg == nil {
		return nil
	}
	return &provider{cfg: cfg, client: &http.Client{Timeout: oidcPatience, Transport: boundedBodies{http.DefaultTransport}}, asking: make(chan struct{}, 1)}
}

// boundedBodies cuts answers that are longer than any of a provider's.
type boundedBodies struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = boundedBody{io.LimitReader(resp.Body, maxOIDCBody), resp.Body}
	return resp, nil
}

type boundedBody struct {
	io.Reader
	io.Closer
}

// discover returns what the provider says of itself.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, error) {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.found != nil {
		return p.found, nil
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.cfg.Issuer)
	if err != nil {
		return nil, err
	}
	p.found = found
	return found, nil
}

func (p *provider) oauth(found *oidc.Provider, callback string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: callback,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}
}

// trip is what the browser keeps while somebody is at the provider. Only our own host gets it back, and no script reads it.
type trip struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	Next     string `json:"next"`
	Link     []byte `json:"link,omitempty"` // proof that it is to link an identity to who is logged in; see linkProof
}

const (
	tripCookie = "rollcall_oidc"
	tripLife   = 10 * time.Minute

	oidcPath     = "/login/oidc"
	oidcCallback = "/login/oidc/callback"
)

func randomText() string {
	var b [32]byte
	rand.Read(b[:]) //nolint:errcheck // crypto/rand.Read never returns an error
	return base64.RawURLEncoding.EncodeToString(b[:])
}

var (
	errNoOIDC   = fault(http.StatusNotFound, "Not found", "This service has no provider of identities: log in with a password.")
	errOIDCTrip = fault(http.StatusBadRequest, "Login failed", "This login was not begun here, or took too long. Try again.")
	errOIDCSaid = fault(http.StatusForbidden, "Login failed", "The provider of identities did not confirm who you are. Try again.")
	errOIDCWho  = fault(http.StatusForbidden, "Not allowed", "Your e-mail address is not one that may log in here. Ask an admin for an invitation.")
)

func oidcAway(err error) error {
	return &problem{
		Status: http.StatusBadGateway, Title: "Provider of identities unavailable",
		Detail: "It does not answer as it should. Log in with a password, or try again in a moment.", cause: err,
	}
}

// startOIDC sends somebody to the provider of identities: authorization code with PKCE (RFC 7636), state and nonce.
func (s *Server) startOIDC(c echo.Context) error {
	if s.provider == nil {
		return errNoOIDC
	}
	ready, err := s.isSetUp(c.Request().Context())
	if err != nil {
		return err
	}
	if !ready {
		return seeOther(c, "/setup", "") // the first member is an admin, by the setup link
	}
	to, err := s.depart(c, trip{State: randomText(), Next: safeNext(c.QueryParam("next"))})
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, to)
}

// depart returns where the provider asks somebody who they are, and has the browser keep what it takes to come back.
func (s *Server) depart(c echo.Context, t trip) (to string, err error) {
	ctx, cancel := context.WithTimeout(c.Request().Context(), oidcPatience)
	defer cancel()
	found, err := s.provider.discover(ctx)
	if err != nil {
		return "", oidcAway(err)
	}
	t.Nonce, t.Verifier = randomText(), oauth2.GenerateVerifier()
	text, err := json.Marshal(t)
	if err != nil {
		return "", internal(err)
	}
	s.putCookie(c, tripCookie, base64.RawURLEncoding.EncodeToString(text), int(tripLife/time.Second))
	return s.provider.oauth(found, s.baseURL(c)+oidcCallback).
		AuthCodeURL(t.State, oidc.Nonce(t.Nonce), oauth2.S256ChallengeOption(t.Verifier)), nil
}

// trip returns what the browser kept while somebody was at the provider.
func (s *Server) trip(c echo.Context) (t trip, ok bool) {
	cookie, err := c.Cookie(s.hostCookie(c, tripCookie))
	if err != nil {
		return t, false
	}
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || json.Unmarshal(text, &t) != nil {
		return t, false
	}
	return t, t.State != "" && t.Nonce != "" && t.Verifier != ""
}

// endOIDC takes somebody back from the provider.
func (s *Server) endOIDC(c echo.Context) error {
	if s.provider == nil {
		return errNoOIDC
	}
	t, ok := s.trip(c)
	s.putCookie(c, tripCookie, "", -1)
	if !ok || subtle.ConstantTimeCompare([]byte(t.State), []byte(c.QueryParam("state"))) != 1 {
		return errOIDCTrip
	}
	code := c.QueryParam("code")
	if code == "" || c.QueryParam("error") != "" {
		return errOIDCSaid
	}
	if wait := s.logins.addrs.take(neighbourhood(c.RealIP())); wait > 0 {
		return tooManyLogins(wait)
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), oidcPatience)
	defer cancel()
	who, err := s.provider.identify(ctx, s.baseURL(c)+oidcCallback, code, t)
	if err != nil {
		return err
	}
	if len(t.Link) > 0 {
		return s.endLink(c, t, who)
	}
	u, err := s.memberOf(c, who)
	if err != nil {
		return err
	}
	return s.letIn(c, u, safeNext(t.Next))
}

// startLink returns where somebody who is logged in goes on to link their identity to their account. It takes their password: a
// session alone may be a borrowed browser, and an identity is a way in for good.
func (s *Server) startLink(c echo.Context, u store.User, old string) (to string, err error) {
	if s.provider == nil {
		return "", errNoOIDC
	}
	if u.Issuer != "" {
		return "", errLinked
	}
	if err := s.knowsPassword(c, u, old); err != nil {
		return "", err
	}
	state := randomText()
	return s.depart(c, trip{State: state, Link: s.linkProof(c, state)})
}

// linkProof is what only we can make of a trip for the session that asks: whoever comes back with it in the same session left to
// link an identity. Nobody's browser can be made to link that of somebody else.
func (s *Server) linkProof(c echo.Context, state string) []byte {
	return s.halfSeal(fmt.Appendf(nil, "link %s %x", state, currentSession(c)))
}

// endLink adds to who is logged in the identity that the provider says they have.
func (s *Server) endLink(c echo.Context, t trip, who identity) error {
	u, ok, err := s.visitor(c)
	if err != nil {
		return err
	}
	if !ok || !hmac.Equal(t.Link, s.linkProof(c, t.State)) {
		return errOIDCTrip
	}
	actAs(c, u.Name, store.ActorMember)
	_, err = s.cfg.Store.UpdateUser(c.Request().Context(), u.ID, func(u *store.User) error {
		if u.Issuer != "" {
			return errLinked
		}
		u.Issuer, u.Subject = who.issuer, who.Subject
		return nil
	})
	if conflict, ok := errors.AsType[store.Conflict](err); ok && conflict.Field == "subject" {
		err = store.Conflict{Field: "identity", Message: "is that of another member"}
	}
	if err != nil {
		return s.accountProblem(c, err, "identity")
	}
	return seeOther(c, "/account", "saved")
}

// unlink takes their identity from somebody who has a password as well.
func (s *Server) unlink(c echo.Context, u store.User, old string) error {
	if err := s.knowsPassword(c, u, old); err != nil {
		return err
	}
	_, err := s.cfg.Store.UpdateUser(c.Request().Context(), u.ID, func(u *store.User) error {
		if u.PasswordHash == "" {
			return store.Conflict{Field: "identity", Message: "is your only way in: ask an admin for a link that sets a password"}
		}
		u.Issuer, u.Subject = "", ""
		return nil
	})
	return err
}

var errLinked error = store.Conflict{Field: "identity", Message: "is linked already: unlink that one first"}

// identity is who the provider says somebody is.
type identity struct {
	Subject       string `json:"sub"`
	Name          string `json:"name"`
	Username      string `json:"preferred_username"`
	Email         string `json:"email"`
	EmailVerified flag   `json:"email_verified"`

	issuer string
}

// flag is true or false, which some providers write as text.
type flag bool

func (f *flag) UnmarshalJSON(data []byte) error {
	*f = string(data) == "true" || string(data) == `"true"`
	return nil
}

// identify asks the provider who came back with a code.
func (p *provider) identify(ctx context.Context, callback, code string, t trip) (identity, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return identity{}, oidcAway(err)
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.oauth(found, callback).Exchange(ctx, code, oauth2.VerifierOption(t.Verifier))
	if err != nil {
		return identity{}, refusedBy("exchange the code", err)
	}
	raw, _ := token.Extra("id_token").(string)
	signed, err := found.VerifierContext(ctx, &oidc.Config{ClientID: p.cfg.ClientID}).Verify(ctx, raw)
	if err != nil {
		return identity{}, refusedBy("verify the id token", err)
	}
	if subtle.ConstantTimeCompare([]byte(signed.Nonce), []byte(t.Nonce)) != 1 {
		return identity{}, refusedBy("verify the id token", errors.New("it has another nonce"))
	}
	who := identity{}
	if err := signed.Claims(&who); err != nil {
		return identity{}, refusedBy("read the id token", err)
	}
	who.Subject, who.issuer = signed.Subject, signed.Issuer
	if len(who.Subject) == 0 || len(who.Subject) > maxSubject || !isText(who.Subject) {
		return identity{}, refusedBy("read the id token", errors.New("its subject is no identifier"))
	}
	if !p.allows(who) {
		return identity{}, errOIDCWho
	}
	return who, nil
}

// maxSubject is what OpenID Connect Core 1.0 §2 allows, in bytes.
const maxSubject = 255

// refusedBy keeps for the log alone why a login did not come about.
func refusedBy(what string, err error) error {
	p := *errOIDCSaid
	p.cause = fmt.Errorf("%s: %w", what, err)
	return &p
}

// allows reports whether somebody whom the provider knows may log in here.
func (p *provider) allows(who identity) bool {
	if len(p.cfg.Domains) == 0 {
		return true
	}
	_, domain, found := strings.Cut(who.Email, "@")
	return found && bool(who.EmailVerified) && slices.ContainsFunc(p.cfg.Domains, func(d string) bool { return strings.EqualFold(d, domain) })
}

// memberOf returns the member that somebody is, made the first time. They are known by the provider and its subject alone: an
// e-mail address may be another one's tomorrow, and a name is anybody's.
func (s *Server) memberOf(c echo.Context, who identity) (store.User, error) {
	ctx := c.Request().Context()
	u, err := s.cfg.Store.UserByIdentity(ctx, who.issuer, who.Subject)
	if err == nil && u.DisabledAt != nil {
		return u, errDisabled
	}
	if !errors.Is(err, store.ErrNotFound) {
		return u, err
	}
	role := s.cfg.OIDC.Role
	if role == "" {
		role = store.RoleViewer
	}
	base := who.called()
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s %d", base, n)
		}
		actAs(c, name, store.ActorMember)
		u, err := s.cfg.Store.CreateUser(c.Request().Context(), store.User{Name: name, Role: role, Issuer: who.issuer, Subject: who.Subject})
		conflict, taken := errors.AsType[store.Conflict](err)
		if !taken || n == maxNamesakes {
			return u, err
		}
		if conflict.Field == "subject" { // they came twice at once
			return s.cfg.Store.UserByIdentity(ctx, who.issuer, who.Subject)
		}
	}
}

// maxNamesakes bounds how many members of the same name are counted up.
const maxNamesakes = 100

// called returns what a new member is to be called: what the provider calls them, made fit to be a name.
func (who identity) called() string {
	for _, name := range []string{who.Username, who.Name, who.Email} {
		name = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, cleaned(name))), " ")
		if name = strings.TrimSpace(clipRunes(name, maxUserName-4)); name != "" {
			return name
		}
	}
	return "somebody"
}
