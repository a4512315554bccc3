package api

// RouteForTest is one line of the table of routes, for tests that walk all of it.
type RouteForTest struct {
	Method string
	Path   string
	Access string // "public", "session" or "token"
	Page   bool
}

// RoutesForTest returns the table of routes.
func (s *Server) RoutesForTest() []RouteForTest {
	names := map[access]string{public: "public", session: "session", token: "token"}
	var routes []RouteForTest
	for _, r := range s.routes() {
		routes = append(routes, RouteForTest{r.method, r.path, names[r.access], r.page})
	}
	return routes
}

// What tests look into from outside.
var (
	SafeNextForTest = safeNext
	BadgesForTest   = []string{badgeGreen, badgeOlive, badgeAmber, badgeRed, badgeBlue, badgeGrey, badgeLabel}
)
