package api

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// sessionLength is how long a login lasts.
const sessionLength = 30 * 24 * time.Hour

// wantToken lets a request through that carries a good bearer token, or the session of the dashboard.
func (s *Server) wantToken(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if secret, ok := bearer(c.Request()); ok {
			by, err := s.checkToken(c.Request().Context(), secret)
			if err != nil {
				if p, refused := errors.AsType[*problem](err); refused && p.Status == http.StatusUnauthorized {
					c.Response().Header().Set("WWW-Authenticate", `Bearer realm="rollcall", error="invalid_token"`)
				}
				return err
			}
			if err := by.reach(c.Path()); err != nil {
				return err
			}
			c.Set(keyToken, by)
			return next(c)
		}
		_, ok, err := s.visitor(c)
		if err != nil {
			return err
		}
		if !ok {
			c.Response().Header().Set("WWW-Authenticate", `Bearer realm="rollcall"`)
			return fault(http.StatusUnauthorized, "Unauthorized", "Send a token as `Authorization: Bearer …`; make one with `rollcall token create`.")
		}
		return next(c)
	}
}

// bearer returns the token of a request. Another scheme is none of ours: a proxy in front may use it.
func bearer(r *http.Request) (secret string, ok bool) {
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(secret), true
}

// bearing is what the token of a request lets it do.
type bearing struct {
	store.Token
	name string // of the token in the words of people
}

// reach refuses a token that is bound to other parts of the API than the one that a route belongs to.
func (b bearing) reach(path string) error {
	part := scopeOf(path)
	if b.Reaches(part) {
		return nil
	}
	return fault(http.StatusForbidden, "Not allowed", "This token does not reach %s: its scopes are %s.", path, scopeWords(b.Scopes))
}

// scopeOf returns the part of the API that a route belongs to; empty for one that no scope reaches.
func scopeOf(path string) store.Scope {
	noun, rest, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/"), "/")
	switch noun {
	case "endpoints":
		if strings.Contains(rest, "/check") {
			return store.ScopeChecks
		}
		return store.ScopeEndpoints
	case "check":
		return store.ScopeChecks
	case "notices":
		return store.ScopeChannels
	case "tokens", "audit", "members", "invitations":
		return store.ScopeMembers
	}
	if part := store.Scope(noun); slices.Contains(store.Scopes, part) {
		return part
	}
	return ""
}

func scopeWords(scopes []store.Scope) string {
	words := make([]string, 0, len(scopes))
	for _, s := range scopes {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

// checkToken returns what a good token lets its bearer do.
func (s *Server) checkToken(ctx context.Context, secret string) (bearing, error) {
	hash := store.HashSecret(secret)
	if s.cfg.AdminToken != "" && subtle.ConstantTimeCompare(hash, store.HashSecret(s.cfg.AdminToken)) == 1 {
		return bearing{store.Token{Role: store.RoleAdmin}, "the admin token"}, nil
	}
	t, err := s.cfg.Store.UseToken(ctx, hash, time.Now())
	if errors.Is(err, store.ErrNotFound) {
		return bearing{}, fault(http.StatusUnauthorized, "Unauthorized", "This token is not known here, was revoked, or has expired.")
	}
	return bearing{t, "token " + t.Name}, err
}

const keyToken = "token"

// caller names who asks, as the author of what they do: a user, or a token.
func (s *Server) caller(c echo.Context) string {
	if by, ok := c.Get(keyToken).(bearing); ok {
		return by.name
	}
	u, _ := s.user(c)
	return u.Name
}

// role returns what whoever asks may do: the role of the token, else of who is logged in; empty for nobody.
func (s *Server) role(c echo.Context) store.Role {
	if by, ok := c.Get(keyToken).(bearing); ok {
		return by.Role
	}
	u, _ := s.user(c)
	return u.Role
}

// wantRole lets through those who may do what takes a role. Whoever gets here is known, and what they change is theirs.
func (s *Server) wantRole(needed store.Role, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !s.role(c).May(needed) {
			return mayNot(needed)
		}
		kind := store.ActorMember
		if c.Get(keyToken) != nil {
			kind = store.ActorToken
		}
		actAs(c, s.caller(c), kind)
		return next(c)
	}
}

// actAs has what a request changes logged as somebody's.
func actAs(c echo.Context, name string, kind store.ActorKind) {
	actor := store.Actor{Name: name, Kind: kind, Address: c.RealIP()}
	if a, ok := c.Get(keyAllowance).(*allowance); ok {
		a.whole = store.WithActor(a.whole, actor) // from which the context is made anew
	}
	r := c.Request()
	c.SetRequest(r.WithContext(store.WithActor(r.Context(), actor)))
}

// mayNot refuses somebody whose role is not enough, and says whose would be.
func mayNot(needed store.Role) error {
	who := "Only admins may do this"
	if needed != store.RoleAdmin {
		who = "This takes the role " + string(needed)
	}
	return fault(http.StatusForbidden, "Not allowed", "%s. An admin can give you the role, on the page Members.", who)
}

// member returns the user who asks; false for a token, whoever may be logged in beside it.
func (s *Server) member(c echo.Context) (store.User, bool) {
	if c.Get(keyToken) != nil {
		return store.User{}, false
	}
	return s.user(c)
}

// wantSession lets a visitor through who is logged in. Others are sent to the login page, or, while nobody can log in
// yet, to the page that explains the setup link.
func (s *Server) wantSession(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		_, ok, err := s.visitor(c)
		if err != nil {
			return err
		}
		if ok {
			return next(c)
		}
		ready, err := s.isSetUp(c.Request().Context())
		if err != nil {
			return err
		}
		if !ready {
			return c.Redirect(http.StatusSeeOther, "/setup")
		}
		return c.Redirect(http.StatusSeeOther, loginPath(c.Request()))
	}
}

// isSetUp reports whether there is a user.
func (s *Server) isSetUp(ctx context.Context) (bool, error) {
	if s.hasUser.Load() {
		return true, nil
	}
	n, err := s.cfg.Store.UserCount(ctx)
	if err != nil {
		return false, err
	}
	if n > 0 {
		s.hasUser.Store(true)
	}
	return n > 0, nil
}

// loginPath is the login page that leads back to what r asked for.
func loginPath(r *http.Request) string {
	next := r.URL.EscapedPath()
	if safe(r.Method) && r.URL.RawQuery != "" {
		next += "?" + r.URL.RawQuery
	}
	if next = safeNext(next); next == "/" || next == "/logout" {
		return "/login"
	}
	return "/login?" + url.Values{"next": {next}}.Encode()
}

// safeNext returns raw if it is a path of this site, and "/" otherwise: where a login leads to is a stranger's word.
func safeNext(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Scheme != "", u.Host != "", u.Opaque != "",
		!strings.HasPrefix(raw, "/"), strings.HasPrefix(raw, "//"),
		strings.Contains(raw, `\`), // browsers read it as a slash
		strings.ContainsFunc(raw, unicode.IsControl), len(raw) > 2000:
		return "/"
	}
	return raw
}

// user returns who is logged in; false for a visitor who is not, and when that cannot be found out.
func (s *Server) user(c echo.Context) (store.User, bool) {
	u, ok, err := s.visitor(c)
	return u, ok && err == nil
}

// visit is what visitor found out, kept for the rest of a request.
type visit struct {
	user     store.User
	session  store.Session
	loggedIn bool
}

const keyVisit = "visit"

// visitor finds out who is logged in by the cookie of a request.
func (s *Server) visitor(c echo.Context) (store.User, bool, error) {
	if v, known := c.Get(keyVisit).(visit); known {
		return v.user, v.loggedIn, nil
	}
	var v visit
	if secret, ok := s.sessionCookie(c); ok {
		session, u, err := s.cfg.Store.Session(c.Request().Context(), store.HashSecret(secret), time.Now())
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.User{}, false, err
		}
		if v = (visit{u, session, err == nil}); v.loggedIn {
			s.seen(c, session)
		}
	}
	c.Set(keyVisit, v)
	return v.user, v.loggedIn, nil
}

// seen notes that a session is in use, once a minute at most. Nobody waits for more than that, or fails because of it.
func (s *Server) seen(c echo.Context, session store.Session) {
	now := time.Now()
	if now.Sub(session.LastSeenAt) < store.SeenEvery {
		return
	}
	ctx := c.Request().Context()
	if err := s.cfg.Store.SeeSession(ctx, session.TokenHash, now.Truncate(time.Minute)); err != nil {
		s.cfg.Log.DebugContext(ctx, "session not noted as seen", "error", err)
	}
}

// startSession logs u in: the browser gets a fresh secret, the store its hash. A session the browser had before ends.
func (s *Server) startSession(c echo.Context, u store.User) error {
	ctx := c.Request().Context()
	if old, ok := s.sessionCookie(c); ok {
		if err := s.cfg.Store.DeleteSession(ctx, store.HashSecret(old)); err != nil {
			return err
		}
	}
	secret, hash := store.NewSecret("")
	now := time.Now()
	session := store.Session{
		TokenHash: hash,
		UserID:    u.ID,
		Address:   c.RealIP(),
		UserAgent: cleaned(c.Request().UserAgent()),
		CreatedAt: now,
		ExpiresAt: now.Add(sessionLength),
	}
	if err := s.cfg.Store.CreateSession(ctx, session); err != nil {
		return err
	}
	s.setCookie(c, secret, int(sessionLength/time.Second))
	c.Set(keyVisit, visit{u, session, true})
	return nil
}

// endSession logs the visitor out, on the server and in the browser.
func (s *Server) endSession(c echo.Context) error {
	if secret, ok := s.sessionCookie(c); ok {
		if err := s.cfg.Store.DeleteSession(c.Request().Context(), store.HashSecret(secret)); err != nil {
			return err
		}
	}
	s.setCookie(c, "", -1)
	c.Set(keyVisit, visit{})
	return nil
}

// cookieName is what the session is kept under. Over TLS its prefix makes browsers refuse one that another host of the
// same domain, or anybody in the middle, has set.
func (s *Server) cookieName(c echo.Context) string { return s.hostCookie(c, "rollcall_session") }

func (s *Server) hostCookie(c echo.Context, name string) string {
	if s.https(c) {
		return "__Host-" + name
	}
	return name
}

func (s *Server) sessionCookie(c echo.Context) (secret string, ok bool) {
	cookie, err := c.Cookie(s.cookieName(c))
	if err != nil || cookie.Value == "" {
		return "", false
	}
	return cookie.Value, true
}

func (s *Server) setCookie(c echo.Context, value string, maxAge int) {
	s.putCookie(c, "rollcall_session", value, maxAge)
}

// putCookie gives a browser a cookie that no script reads; a maxAge of -1 takes it back.
func (s *Server) putCookie(c echo.Context, name, value string, maxAge int) {
	c.SetCookie(&http.Cookie{
		Name:     s.hostCookie(c, name),
		Value:    value,
		Path:     "/",
		MaxAge:   maxAge,
		HttpOnly: true,
		Secure:   s.https(c),
		SameSite: http.SameSiteLaxMode,
	})
}

// Bounds of a password. NIST SP 800-63B asks for eight characters at least where a second factor stands behind the
// password; none does here.
const (
	minPassword = 12
	maxPassword = 1000
	maxUserName = 100
)

// authenticate returns the user whose name and password these are. addr is who tries. Its errors are fit for that
// person: they do not say which of the two was wrong.
func (s *Server) authenticate(ctx context.Context, name, password, addr string) (store.User, error) {
	name = strings.TrimSpace(name)
	if name == "" || password == "" || len(name) > 4*maxUserName || len(password) > maxPassword || !isText(name) {
		return store.User{}, errWrongPassword
	}
	who := store.Fold(name)
	if wait := s.logins.wait(addr, who); wait > 0 {
		return store.User{}, tooManyLogins(wait)
	}
	u, err := s.cfg.Store.UserByName(ctx, name)
	unknown := errors.Is(err, store.ErrNotFound)
	if err != nil && !unknown {
		return store.User{}, err
	}
	hash := u.PasswordHash
	if unknown || hash == "" {
		hash = nobodysHash
	}
	matches := false
	if err := s.whenThereIsRoom(ctx, func() { matches = VerifyPassword(hash, password) }); err != nil {
		return store.User{}, err
	}
	if unknown || !matches {
		s.cfg.Log.WarnContext(ctx, "login refused", "addr", addr)
		return store.User{}, errWrongPassword
	}
	if u.DisabledAt != nil {
		return store.User{}, errDisabled
	}
	s.logins.remember(addr, who)
	return u, nil
}

var errWrongPassword = fault(http.StatusUnauthorized, "Login failed", "The name or the password is wrong.")

// errDisabled is said to those only who proved who they are.
var errDisabled = fault(http.StatusForbidden, "Account disabled", "This account is disabled. An admin can enable it again.")

func tooManyLogins(wait time.Duration) error {
	p := fault(http.StatusTooManyRequests, "Too many attempts", "Wait %s before you try again.", max(time.Second, wait.Round(time.Second)))
	p.retryAfter = wait
	return p
}

// whenThereIsRoom hashes a password as soon as not too many others are being hashed.
func (s *Server) whenThereIsRoom(ctx context.Context, hash func()) error {
	ctx, cancel := context.WithTimeout(ctx, hashingPatience)
	defer cancel()
	select {
	case s.logins.hashing <- struct{}{}:
		defer func() { <-s.logins.hashing }()
		hash()
		return nil
	case <-ctx.Done():
		return &problem{
			Status: http.StatusServiceUnavailable, Title: "Busy",
			Detail: "Too many people are logging in at once. Try again in a moment.", retryAfter: hashingPatience,
		}
	}
}

const hashingPatience = 5 * time.Second

// finishSetup spends the setup link on the first user. Attempts are not counted: nobody guesses the 256 bits of a link,
// and a count would let strangers keep out who holds it.
func (s *Server) finishSetup(c echo.Context, secret, name, password string) (store.User, error) {
	ctx := c.Request().Context()
	if mistakes := userMistakes(name, password); len(mistakes) > 0 {
		return store.User{}, store.Invalid{Problems: mistakes}
	}
	hash := store.HashSecret(secret)
	good, err := s.cfg.Store.HasSetupToken(ctx, hash)
	if err != nil {
		return store.User{}, err
	}
	if !good {
		return store.User{}, s.setupSpent()
	}
	u := store.User{Name: name, Role: store.RoleAdmin}
	if err := s.whenThereIsRoom(ctx, func() { u.PasswordHash = HashPassword(password) }); err != nil {
		return store.User{}, err
	}
	actAs(c, name, store.ActorMember)
	u, err = s.cfg.Store.CreateFirstUser(c.Request().Context(), hash, u)
	if errors.Is(err, store.ErrNotFound) {
		return store.User{}, s.setupSpent()
	}
	return u, err
}

func (s *Server) setupSpent() *problem {
	again := "Restart the service to get a fresh link."
	if s.cfg.AdminToken != "" {
		again = "Start the service once without ROLLCALL_ADMIN_TOKEN to get a fresh link."
	}
	return fault(http.StatusForbidden, "Setup link not valid",
		"This setup link was used already, or a later one has replaced it. %s", again)
}

func userMistakes(name, password string) []probe.Problem {
	var mistakes []probe.Problem
	add := func(field, format string, args ...any) {
		mistakes = append(mistakes, probe.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case strings.TrimSpace(name) == "":
		add("name", "is required")
	case strings.TrimSpace(name) != name:
		add("name", "begins or ends with white space")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		add("name", "holds control characters")
	case utf8.RuneCountInString(name) > maxUserName:
		add("name", "is longer than %d characters", maxUserName)
	}
	switch {
	case utf8.RuneCountInString(password) < minPassword:
		add("password", "must have at least %d characters", minPassword)
	case len(password) > maxPassword:
		add("password", "is longer than %d bytes", maxPassword)
	}
	return mistakes
}
