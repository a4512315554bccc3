package probetest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// HTTPSSE starts an MCP server over the transport of 2024-11-05, with three tools: a GET of /sse is an event stream whose
// first event names where messages are posted, answers come on the stream. The GET goes by the step "sse". It speaks
// 2025-11-25 and older, as such servers do.
func HTTPSSE(t testing.TB, faults ...Fault) *Server {
	t.Helper()
	return newServer(t, "/sse", (*exchange).answerHTTPSSE, faults)
}

// Endpoint makes an HTTP+SSE server name another place to post to. Every $id in it becomes the id of the stream.
func Endpoint(where string) Fault { return func(b *behaviour) { b.endpoint = where } }

// FirstEvent makes an HTTP+SSE server send a text in place of its endpoint event.
func FirstEvent(text string) Fault { return func(b *behaviour) { b.firstEvent = text } }

// PostStreams makes an HTTP+SSE server answer a POST to the stream's address like a GET.
func PostStreams() Fault { return func(b *behaviour) { b.postStreams = true } }

// ChangedFirst makes an HTTP+SSE server say that its tools have changed before it answers any request.
func ChangedFirst() Fault { return func(b *behaviour) { b.changedFirst = true } }

// InBodyAt makes an HTTP+SSE server answer in the body of the POST, and not on the stream.
func InBodyAt(step string) Fault { return colour(step, func(x *exchange) { x.to = nil }) }

// StreamEndsAt makes an HTTP+SSE server take the message and end the event stream in place of an answer.
func StreamEndsAt(step string) Fault {
	return replace(step, func(x *exchange) {
		if x.to != nil {
			close(x.to.end)
		}
		x.plain(http.StatusAccepted, "text/plain", "Accepted")
		x.send()
	})
}

// feed is an event stream of an HTTP+SSE server that is open.
type feed struct {
	events chan []byte
	end    chan struct{} // closed by a fault that ends the stream
}

func (x *exchange) answerHTTPSSE() {
	x.b.noSession = true // the stream is the session
	path := x.r.URL.Path
	switch {
	case path == "/sse" && (x.HTTPMethod == http.MethodGet || x.b.postStreams):
		x.feeds = true
	case path == "/sse":
		x.header.Set("Allow", "GET")
		x.plain(http.StatusMethodNotAllowed, "text/plain", "Method Not Allowed")
	case path != "/message":
		x.plain(http.StatusNotFound, "text/html; charset=utf-8", "<html><title>Error</title><pre>Cannot "+x.HTTPMethod+" "+path+"</pre></html>")
	case !x.accepted():
	default:
		feed := x.s.feed(x.r.URL.Query().Get("sessionId"))
		if feed == nil {
			x.plain(http.StatusNotFound, "text/plain", "Session not found")
			return
		}
		x.answerLegacy()
		x.to = feed
	}
}

func (s *Server) feed(id string) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.feeds[id]
}

// Feeds returns the number of event streams of an HTTP+SSE server that are open.
func (s *Server) Feeds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds)
}

// sendFeed is an event stream until one side ends it.
func (x *exchange) sendFeed() {
	f := &feed{events: make(chan []byte, 16), end: make(chan struct{})}
	x.s.mu.Lock()
	x.s.fed++
	id := fmt.Sprintf("stream-%d", x.s.fed)
	x.s.feeds[id] = f
	x.s.mu.Unlock()
	defer func() {
		x.s.mu.Lock()
		defer x.s.mu.Unlock()
		delete(x.s.feeds, id)
	}()
	endpoint := "/message?sessionId=$id"
	if x.b.endpoint != "" {
		endpoint = x.b.endpoint
	}
	first := "event: endpoint\ndata: " + strings.ReplaceAll(endpoint, "$id", id) + "\n\n"
	if x.b.firstEvent != "" {
		first = x.b.firstEvent
	}
	x.stream = true
	x.head("text/event-stream", -1)
	x.write([]byte(first))
	for {
		select {
		case event := <-f.events:
			x.write(event)
		case <-f.end:
			return
		case <-x.r.Context().Done():
			return
		case <-x.run.over:
			return
		}
	}
}

// sendOver sends the answer, if there is one, on the event stream, and takes the message.
func (x *exchange) sendOver(f *feed) {
	var events []byte
	if x.b.changedFirst && x.ID != nil {
		events = event([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
	}
	if x.payload != nil || x.raw != nil {
		events = append(events, event(x.message())...)
	}
	if events != nil {
		select {
		case f.events <- events:
		case <-x.r.Context().Done():
		case <-x.run.over:
		}
	}
	x.plain(http.StatusAccepted, "text/plain", "Accepted")
	x.send()
}
