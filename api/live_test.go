package api_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
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
	if data := l.next(); data != `{"status":true,"checks":false,"incidents":false}` {
		t.Errorf("heard %s", data)
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
