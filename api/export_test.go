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

// What tests look into from outside.
var (
	SafeNextForTest = safeNext
	BadgesForTest   = []string{badgeGreen, badgeOlive, badgeAmber, badgeRed, badgeBlue, badgeGrey, badgeLabel}
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

// DrawBadgeForTest draws a badge in the n-th style.
func DrawBadgeForTest(label, message string, n uint8) []byte {
	return badge{label, message, badgeGrey}.draw(styles[int(n)%len(styles)])
}

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
