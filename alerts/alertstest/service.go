package alertstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"unicode/utf16"
)

// Request is one that a Service got, accepted or not.
type Request struct {
	Method, Path, Query string
	Header              http.Header
	Body                []byte
	Status              int // of the answer
}

// Decode reads the body into v and fails the test when it is not JSON.
func (r Request) Decode(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.Body, v); err != nil {
		t.Fatalf("%s %s: %v in %s", r.Method, r.Path, err, r.Body)
	}
}

// Reply is what a Service answers.
type Reply struct {
	Status int
	Header map[string]string
	Body   string
}

// Service is the part that is the same in all servers of this package that speak like a service for alerts. It is safe for
// concurrent use.
type Service struct {
	server *httptest.Server

	mu       sync.Mutex
	requests []Request
	fault    *Reply
	faults   int // how many requests more it goes for; negative: all
}

// start begins to serve what handle answers to a request, until the test ends.
func start(t testing.TB, handle func(Request) Reply) *Service {
	s := &Service{}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		request := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header, Body: body}
		s.give(w, s.answer(request, handle))
	}))
	t.Cleanup(s.server.Close)
	return s
}

func (s *Service) answer(r Request, handle func(Request) Reply) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	var reply Reply
	if s.fault != nil && s.faults != 0 {
		reply = *s.fault
		s.faults--
	} else {
		reply = handle(r)
	}
	r.Status = reply.Status
	s.requests = append(s.requests, r)
	return reply
}

func (s *Service) give(w http.ResponseWriter, reply Reply) {
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(reply.Status)
	fmt.Fprint(w, reply.Body)
}

// URL is where the server is, without a slash at the end.
func (s *Service) URL() string { return s.server.URL }

// Requests returns everything that came so far, in order.
func (s *Service) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Accepted returns the requests that were answered with a success.
func (s *Service) Accepted() []Request {
	var accepted []Request
	for _, r := range s.Requests() {
		if r.Status >= 200 && r.Status <= 299 {
			accepted = append(accepted, r)
		}
	}
	return accepted
}

// Fail gives reply to the next n requests, or to all that come for a negative n.
func (s *Service) Fail(n int, reply Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.faults = &reply, n
}

// asJSON returns v as the body of a reply.
func asJSON(status int, v any) Reply {
	data, err := json.Marshal(v)
	if err != nil {
		return Reply{Status: http.StatusInternalServerError}
	}
	return Reply{Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: string(data)}
}

// length counts as the strictest of the services do, in UTF-16 code units.
func length(text string) int { return len(utf16.Encode([]rune(text))) }
