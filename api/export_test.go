package api

import (
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// RouteForTest is one line of the table of routes, for tests that walk all of it.
type RouteForTest struct {
	Method string
	Path   string
	Access store.Role // the least that may call it; empty: anybody
	Page   bool
}

// RoutesForTest returns the table of routes.
func (s *Server) RoutesForTest() []RouteForTest {
	var routes []RouteForTest
	for _, r := range s.routes() {
		routes = append(routes, RouteForTest{r.method, r.path, r.access, r.page})
	}
	return routes
}

// ForgetForTest has the index read anew by whoever looks next.
func (s *Server) ForgetForTest() { s.lines.forget() }

// ScopeOfForTest is scopeOf.
var ScopeOfForTest = scopeOf

// StepForTest is the step that a code is of.
var StepForTest = stepOf

// What tests look into from outside.
var (
	SafeNextForTest = safeNext
)

// LoginsForTest bounds how often somebody may try a password.
type LoginsForTest struct{ l *logins }

// NewLoginsForTest returns the bounds of a fresh server.
func NewLoginsForTest() LoginsForTest { return LoginsForTest{newLogins()} }

// LoginsForTest returns the bounds of a server in use.
func (s *Server) LoginsForTest() LoginsForTest { return LoginsForTest{s.logins} }

// Remember notes a login.
func (t LoginsForTest) Remember(addr, name string) { t.l.remember(addr, name) }

// Wait takes an attempt and returns zero, or how long to wait before the next.
func (t LoginsForTest) Wait(addr, name string) time.Duration { return t.l.wait(addr, name) }

// Size returns how many budgets are remembered.
func (t LoginsForTest) Size() int { return len(t.l.addrs.byKey) + len(t.l.names.byKey) }

// Visits returns how many logins are remembered.
func (t LoginsForTest) Visits() int { return len(t.l.known.seen) }

// ReadBodyForTest reads data as the body of POST /api/v1/endpoints and returns the fields it complains of.
func ReadBodyForTest(data []byte) (fields []string, err error) {
	m, err := readObject(data)
	if err != nil {
		return nil, err
	}
	in := readEndpoint(m)
	m.rest()
	for _, p := range *m.mistakes {
		fields = append(fields, p.Field)
	}
	_, _ = in.onto(store.NewEndpoint())
	return fields, nil
}

// DrawBadgeForTest draws a badge in the n-th style and theme.
func DrawBadgeForTest(label, message string, n uint8) []byte {
	return badge{label, message, toneGrey}.draw(styles[int(n)%len(styles)], themes[int(n)/len(styles)%len(themes)])
}

// BadgePairsForTest are the colours of text on badges, each with what it stands on.
func BadgePairsForTest() [][2]string {
	pairs := [][2]string{{lightInk, lightLabel}, {darkText, darkLabel}}
	for _, t := range tones {
		pairs = append(pairs, [2]string{lightInk, t.light}, [2]string{darkInk, t.dark})
	}
	return pairs
}

// KnownBadgesForTest returns for how many kinds of facts badges are remembered, and how many are drawn and kept.
func (s *Server) KnownBadgesForTest() (facts, drawn int) {
	s.badges.mu.Lock()
	defer s.badges.mu.Unlock()
	s.pictures.mu.RLock()
	defer s.pictures.mu.RUnlock()
	return len(s.badges.known), len(s.pictures.newer) + len(s.pictures.older)
}

// What tests of badges go by.
const (
	BadgeFreshForTest = badgeFresh
	BadgeStaleForTest = badgeStale
	BadgeKeptForTest  = badgeKept
	MaxKnownForTest   = maxKnown
	MaxDrawnForTest   = 2 * maxPictures
)

// IncidentKindsForTest are the kinds that a list of incidents can be asked for.
var IncidentKindsForTest = incidentKinds

// MaxPicks is maxPicks.
const MaxPicks = maxPicks

// SameAddress is sameAddress.
var SameAddress = sameAddress

// OptionsForTest reads the options in a body, and once more what an answer would show of them, with the first ones kept.
func OptionsForTest(data []byte) (first, again probe.Options, ok bool) {
	m, err := readObject(data)
	if err != nil {
		return first, again, false
	}
	in := readTarget(m)
	first, mistakes := in.Options.onto(probe.Options{}, false)
	if len(*m.mistakes)+len(mistakes) > 0 {
		return first, again, false
	}
	again, mistakes = optionsInput(optionsDocument(first)).onto(first, false)
	return first, again, len(mistakes) == 0
}

// GuestsForTest returns how many streams are open that are for somebody who is logged in, or has a token.
func (s *Server) GuestsForTest() int { return len(s.live.present()) }

// WatchedForTest returns how many endpoints streams are open for.
func (s *Server) WatchedForTest() int {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	return len(s.live.watched)
}
