package api_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// listener hears a stream of events.
type listener struct {
	t      *testing.T
	answer *http.Response
	events chan string // the data of each; closed when the stream is over
}

func (r *rollcall) listen(path string, options ...option) *listener {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	r.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.http.URL+path, http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+adminToken)
	for _, o := range options {
		o(request)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { answer.Body.Close() })
	l := &listener{r.t, answer, make(chan string, 100)}
	go func() {
		defer close(l.events)
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				l.events <- data
			}
		}
	}()
	return l
}

// next returns the data of the next event, empty when the stream is over.
func (l *listener) next() string {
	l.t.Helper()
	select {
	case data := <-l.events:
		return data
	case <-time.After(20 * time.Second):
		l.t.Fatal("no event came")
		return ""
	}
}

// settle returns when a stream has looked at what there is: another check makes it say so.
func (r *rollcall) settle(l *listener, slug string) {
	r.t.Helper()
	r.seenFrom(slug, "default", healthy())
	if data := l.next(); !strings.Contains(data, `"checks":true`) {
		r.t.Fatalf("event %s, want one of checks", data)
	}
}

func TestAPageHearsWhatChanges(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example", "name": "a"}`)
	r.register(`{"url": "https://b.example", "name": "b"}`)
	l := r.listen("/events?e="+slug+"&e=nobody&at=0", r.loggedIn())
	if kind := l.answer.Header.Get("Content-Type"); l.answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("status %d, %s", l.answer.StatusCode, kind)
	}
	r.settle(l, slug)
	r.seenFrom(slug, "default", broken())
	data := l.next()
	for !strings.Contains(data, `"status":true`) {
		data = l.next()
	}
	r.seenFrom("b", "default", broken())
	for !strings.Contains(data, `"status":false,"checks":false,"incidents":true`) { // somebody else's incident
		data = l.next()
	}
	r.api.EndStreams()
	for data != "" {
		data = l.next()
	}
	r.get("/events", r.loggedIn()).want(http.StatusServiceUnavailable)
}

func TestStrangersHearOfPublicEndpointsOnly(t *testing.T) {
	r := start(t)
	public := r.register(`{"url": "https://a.example", "name": "a", "public": true}`)
	private := r.register(`{"url": "https://b.example", "name": "b"}`)
	r.get("/events?e="+public, nobody).want(http.StatusUnauthorized)

	l := r.listen("/status/feed.events?e="+public+"&e="+private+"&at=0", nobody)
	r.seenFrom(private, "default", broken())
	time.AfterFunc(3*time.Second, func() { r.api.EndStreams() })
	if data := l.next(); data != "" {
		t.Errorf("heard %s of a private endpoint", data)
	}
}

func TestStrangersHearTheStatusOfPublicEndpoints(t *testing.T) {
	r := start(t)
	public := r.register(`{"url": "https://a.example", "name": "a", "public": true}`)
	l := r.listen("/status/feed.events?e="+public+"&at=0", nobody)
	r.seenFrom(public, "default", probe.Result{Verdict: probe.Down, Failure: &probe.Failure{Class: probe.ClassTimeout}})
	l.wantStatus()
}

// Whoever asks only how a stream would begin is answered at once.
func TestTheHeadOfAStreamIsAllThereIs(t *testing.T) {
	r := start(t)
	for _, path := range []string{"/events", "/status/feed.events"} {
		got := r.ask("HEAD", path, "").want(http.StatusOK)
		if kind := got.header.Get("Content-Type"); kind != "text/event-stream" {
			t.Errorf("%s is %q", path, kind)
		}
	}
}

func TestStreamsFromOneAddressAreBounded(t *testing.T) {
	r := start(t)
	const most = 30
	for range most {
		if l := r.listen("/status/feed.events", nobody); l.answer.StatusCode != http.StatusOK {
			t.Fatalf("status %d", l.answer.StatusCode)
		}
	}
	r.get("/status/feed.events", nobody).want(http.StatusTooManyRequests)
}

// bobListens has bob log in beside Ada, and listen.
func bobListens(r *rollcall) (ada, bob browser, stream *listener) {
	r.t.Helper()
	ada = browser{"rollcall_session": r.login()}
	r.member("bob", store.RoleEditor)
	bob = r.loginAs("bob")
	return ada, bob, r.listen("/events", bob.option())
}

// wantOver fails unless a stream of events ends.
func (l *listener) wantOver() {
	l.t.Helper()
	for data := l.next(); data != ""; data = l.next() { // what was on its way
		l.t.Logf("heard %s", data)
	}
}

func TestAStreamEndsWithTheLoginBeforeWhoeverEndedItIsAnswered(t *testing.T) {
	for name, end := range map[string]func(r *rollcall, ada, bob browser){
		"logged out":       func(r *rollcall, _, bob browser) { bob.post(r, "/logout").want(http.StatusSeeOther) },
		"logged in anew":   func(r *rollcall, _, bob browser) { bob.post(r, "/login", "name", "bob", "password", password) },
		"password changed": func(r *rollcall, _, bob browser) { changePassword(r, bob) },
		"password set":     func(r *rollcall, ada, _ browser) { resetPassword(r, ada) },
		"disabled": func(r *rollcall, ada, _ browser) {
			ada.post(r, "/members", "action", "disable", "id", r.user("bob").ID)
		},
		"disabled by REST": func(r *rollcall, _, _ browser) {
			r.ask("PATCH", "/api/v1/members/"+r.user("bob").ID, `{"disabled": true}`)
		},
		"removed": func(r *rollcall, _, _ browser) { r.ask("DELETE", "/api/v1/members/"+r.user("bob").ID, "") },
		"session revoked": func(r *rollcall, _, bob browser) {
			r.loginAs("bob").post(r, "/account", "action", "end", "id", sessionID(bob))
		},
		"all others revoked": func(r *rollcall, _, _ browser) { r.loginAs("bob").post(r, "/account", "action", "end-others") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			ada, bob, stream := bobListens(r)
			slug := r.register(`{"url": "https://a.example"}`)
			adas := r.listen("/events?at=0&e="+slug, ada.option())
			if n := r.api.GuestsForTest(); stream.answer.StatusCode != http.StatusOK || n != 2 {
				t.Fatalf("status %d, %d streams, want two", stream.answer.StatusCode, n)
			}
			end(r, ada, bob)
			if n := r.api.GuestsForTest(); n != 1 {
				t.Errorf("%d streams are open, want Ada's", n)
			}
			stream.wantOver()
			r.seenFrom(slug, "default", broken())
			if data := adas.next(); data == "" {
				t.Error("Ada's has ended, too")
			}
		})
	}
}

func sessionID(b browser) string {
	return store.Session{TokenHash: store.HashSecret(b["rollcall_session"])}.ID()
}

func changePassword(r *rollcall, b browser) {
	b.post(r, "/account", "action", "password", "old", password, "password", "another good password").want(http.StatusSeeOther)
}

func resetPassword(r *rollcall, ada browser) {
	page := ada.post(r, "/members", "action", "reset", "id", r.user("bob").ID).want(http.StatusCreated)
	_, token, _ := strings.Cut(page.found(`value="(http[^"]*/join\?token=[^"]+)"`), "token=")
	browser{}.post(r, "/join", "token", token, "password", "another good password").want(http.StatusSeeOther)
}

func TestAStreamOfATokenEndsWithIt(t *testing.T) {
	r := start(t)
	secret, token := r.token("ci")
	soon := time.Now().Add(1500 * time.Millisecond)
	brief, hash := store.NewSecret("rct_")
	_, err := r.store.CreateToken(t.Context(), store.Token{Name: "brief", Hash: hash, Role: store.RoleViewer, ExpiresAt: &soon})
	if err != nil {
		t.Fatal(err)
	}
	revoked := r.listen("/events", header("Authorization", "Bearer "+secret))
	expires := r.listen("/events", header("Authorization", "Bearer "+brief))
	slug := r.register(`{"url": "https://a.example"}`)
	lasts := r.listen("/events?at=0&e=" + slug) // the token of the settings
	r.ask("DELETE", "/api/v1/tokens/"+token.ID, "").want(http.StatusNoContent)
	revoked.wantOver()
	expires.wantOver()
	r.seenFrom(slug, "default", broken())
	if data := lasts.next(); data == "" {
		t.Error("the stream of the token of the settings has ended, too")
	}
}

// What another instance does is seen in the database alone.
func TestAStreamEndsWithALoginThatAnotherInstanceEnds(t *testing.T) {
	r := start(t)
	_, _, stream := bobListens(r)
	if n, err := r.store.DeleteSessions(t.Context(), r.user("bob").ID, nil); err != nil || n == 0 {
		t.Fatalf("%d sessions, %v", n, err)
	}
	begun := time.Now()
	stream.wantOver()
	if took := time.Since(begun); took > 5*time.Second { // two, and some patience with a busy machine
		t.Errorf("it took %s", took)
	}
}

// wantStatus fails unless the next event says that a status has changed, and nothing of checks.
func (l *listener) wantStatus() {
	l.t.Helper()
	if data := l.next(); !strings.HasPrefix(data, `{"status":true,"checks":false,`) {
		l.t.Errorf("heard %q, want word of a status", data)
	}
}

func TestStrangersHearWhatIsSaidToThem(t *testing.T) {
	r := start(t, func(c *api.Config) { c.KeepPublic = 2 * time.Second })
	r.register(`{"url": "https://a.example", "name": "shown"}`)
	r.register(`{"url": "https://b.example", "name": "hidden"}`)
	r.page(`{"slug": "acme", "name": "ACME", "sections": [{"endpoints": ["shown"]}]}`)
	all, acme := r.listen("/status/feed.events", nobody), r.listen("/p/acme/feed.events", nobody)
	announce := func(title, endpoints string) (path string) {
		made := r.ask("POST", "/api/v1/incidents", `{"title": "`+title+`", "endpoints": [`+endpoints+`]}`).want(http.StatusCreated)
		return "/api/v1/incidents/" + made.object()["id"].(string) + "/acts"
	}
	wantIncidents := func(what string, l *listener) {
		t.Helper()
		if data := l.next(); data != `{"status":false,"checks":false,"incidents":true}` {
			t.Errorf("%s: heard %q, want word of an incident", what, data)
		}
	}
	announce("Inside", `"hidden"`) // which nobody is told of
	everywhere := announce("Everywhere", "")
	wantIncidents("on the built-in page", all)
	announce("There", `"shown"`)
	wantIncidents("on its own page", acme)
	r.ask("POST", everywhere, `{"act": "comment", "text": "Between us."}`).want(http.StatusOK)
	r.ask("POST", everywhere, `{"act": "comment", "text": "To everybody.", "public": true}`).want(http.StatusOK)
	wantIncidents("on the built-in page, once something was said", all)
	time.AfterFunc(4*time.Second, func() { r.api.EndStreams() })
	all.wantSilence()
	acme.wantSilence()
}

// wantSilence fails if anything is heard before the stream ends.
func (l *listener) wantSilence() {
	l.t.Helper()
	for data := l.next(); data != ""; data = l.next() {
		l.t.Errorf("heard %s of what is not shown there", data)
	}
}

func TestNamesThatAStrangerMakesUpTakeNoRoom(t *testing.T) {
	r := start(t)
	slug := r.register(`{"url": "https://a.example", "public": true}`)
	r.register(`{"url": "https://b.example", "name": "private"}`)
	r.listen("/status/feed.events?e=private&e=made-up&e="+slug, nobody)
	if n := r.api.WatchedForTest(); n != 1 {
		t.Errorf("%d endpoints are watched, want the public one", n)
	}
}

func TestAPageOfItsOwnHearsOfWhatItShows(t *testing.T) {
	r := start(t, withDomains("status.example"))
	named := r.register(`{"url": "https://a.example", "name": "named"}`)
	tagged := r.register(`{"url": "https://b.example", "name": "tagged", "tags": ["prod"]}`)
	private := r.register(`{"url": "https://c.example", "name": "private"}`)
	public := r.register(`{"url": "https://d.example", "name": "public", "public": true}`)
	r.page(`{"slug": "acme", "name": "ACME", "domain": "status.example", "sections": [{"endpoints": ["named"], "tags": ["prod"]}]}`)
	r.prove("acme").want(http.StatusSeeOther)
	every := "?e=" + strings.Join([]string{named, tagged, private, public}, "&e=")

	for path, options := range map[string][]option{
		"/p/acme":                   {nobody},
		"/p/acme/service/" + named:  {nobody},
		"/":                         {nobody, host("status.example")},
		"/service/" + tagged + "?x": {nobody, host("status.example")},
	} {
		page := r.get(path, options...).want(http.StatusOK)
		live := strings.ReplaceAll(page.found(` data-live="([^"]+)"`), "&amp;", "&")
		if l := r.listen(live, options...); l.answer.StatusCode != http.StatusOK || l.answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s listens at %s: status %d", path, live, l.answer.StatusCode)
		}
	}
	byPath, byDomain := r.listen("/p/acme/feed.events"+every, nobody), r.listen("/feed.events"+every, nobody, host("status.example"))
	for _, l := range []*listener{byPath, byDomain} {
		r.seenFrom(named, "default", healthy())
		l.wantStatus()
	}
	r.seenFrom(private, "default", healthy())
	r.seenFrom(public, "default", healthy())
	r.ask("PATCH", "/api/v1/endpoints/"+tagged, `{"tags": []}`).want(http.StatusOK)
	r.seenFrom(tagged, "default", healthy())
	time.AfterFunc(3*time.Second, func() { r.api.EndStreams() })
	byPath.wantSilence()
}

func TestThePasswordOfAPageIsThatOfItsStream(t *testing.T) {
	r := start(t, withDomains())
	slug := r.register(`{"url": "https://a.example"}`)
	r.page(`{"slug": "acme", "name": "ACME", "password": "correct horse", "sections": [{"endpoints": ["` + slug + `"]}]}`)
	events := "/p/acme/feed.events?at=0&e=" + slug
	r.get(events, nobody).want(http.StatusNotFound)
	r.get(events, r.loggedIn()).want(http.StatusNotFound)
	b := browser{}
	b.post(r, "/p/acme/password", "password", "correct horse").want(http.StatusSeeOther)
	l := r.listen(events, b.option())
	r.seenFrom(slug, "default", healthy())
	l.wantStatus()
	r.ask("PATCH", "/api/v1/pages/acme", `{"password": "another horse"}`).want(http.StatusOK)
	l.wantOver()
	r.get(events, b.option()).want(http.StatusNotFound)

	b.post(r, "/p/acme/password", "password", "another horse").want(http.StatusSeeOther)
	l = r.listen(events, b.option())
	r.ask("DELETE", "/api/v1/pages/acme", "").want(http.StatusNoContent)
	l.wantOver()
}
