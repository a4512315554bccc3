package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// A page that tries an endpoint can ask for the conversation as it happens: the answer to its form is then a stream of
// server-sent events rather than a page.
//
//	step  {at, name, done, tone, latency, class, code, message}   a step begins, and once more when it has ended
//	page  "<!doctype html>…"                                      what a browser without scripts is answered, at the end
//
// The events are written by the goroutine that probes: there is no other.

// eventStream is the type of such an answer, and what asks for it.
const eventStream = "text/event-stream"

// lookPatience is how long a reader may take for an event. One that takes longer is told no more.
const lookPatience = 5 * time.Second

// look tells a browser of a conversation.
type look struct {
	c       echo.Context
	control *http.ResponseController
	begun   bool
	lost    bool // the reader has left, or is too slow
}

const keyLook = "look"

// lookAt has whoever sent a form told of a conversation, where they can follow it. It returns what is told of its steps, nil when
// nobody is; the page is to come by way of [Server.shown].
func lookAt(c echo.Context) func(at int, s probe.Step, ended bool) {
	if !strings.HasPrefix(c.Request().Header.Get(echo.HeaderAccept), eventStream) {
		return nil
	}
	l := &look{c: c, control: http.NewResponseController(c.Response())}
	c.Set(keyLook, l)
	return l.step
}

// shown answers with a page: as the last event of a stream where one has begun.
func (s *Server) shown(c echo.Context, status int, page web.Page) error {
	l, following := c.Get(keyLook).(*look)
	if !following || !l.begun {
		return s.render(c, status, page)
	}
	var b bytes.Buffer
	if err := web.Render(&b, page); err != nil {
		return internal(err)
	}
	l.send("page", b.String())
	return nil
}

// lookStep is a step as it is told.
type lookStep struct {
	At      int         `json:"at"`
	Name    string      `json:"name"`
	Done    bool        `json:"done"`
	Tone    string      `json:"tone,omitempty"` // how it ended: "up" or "pending", for it takes the whole conversation to say more
	Latency string      `json:"latency,omitempty"`
	Class   probe.Class `json:"class,omitempty"`
	Code    int         `json:"code,omitempty"`
	Message string      `json:"message,omitempty"`
}

// maxLookSteps bounds what a conversation is followed for: one that goes on for longer is seen whole at its end.
const maxLookSteps = 200

// step is what [probe.Target.Watch] takes.
func (l *look) step(at int, s probe.Step, ended bool) {
	if at >= maxLookSteps {
		return
	}
	told := lookStep{At: at, Name: clip(s.Name, maxShown), Done: ended}
	if ended {
		told.Tone, told.Latency = "up", web.Say("%s", web.Latency(s.Latency)).In(chosenLanguage(l.c.Request()))
		if s.Class != "" {
			told.Tone, told.Class, told.Code, told.Message = "pending", s.Class, s.Code, clip(s.Message, maxShown)
		}
	}
	l.send("step", told)
}

// send writes an event.
func (l *look) send(event string, v any) {
	if l.lost {
		return
	}
	data, err := json.Marshal(v)
	if err != nil {
		l.lost = true
		return
	}
	w := l.c.Response()
	if !l.begun {
		l.begun = true
		w.Header().Set(echo.HeaderContentType, eventStream)
		w.Header().Set("X-Accel-Buffering", "no") // a proxy that gathers answers would hold events back
		w.WriteHeader(http.StatusOK)
	}
	_ = l.control.SetWriteDeadline(time.Now().Add(lookPatience)) // a server without deadlines has none to set
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data); err != nil || l.control.Flush() != nil {
		l.lost = true
	}
}

// What is proposed of an endpoint that was tried.
const (
	proposeSlower  = 4                // times as long as it took counts as degraded
	proposeLeast   = time.Second      // but no less than this
	proposeSlow    = 5 * time.Second  // a conversation that takes longer is held less often
	proposeSeldom  = "@every 5m"      // as often
	proposePatient = 30 * time.Second // and given as long
)

// lookupPatience is how long a proposal waits for the database: what was seen must not be lost with it.
const lookupPatience = 2 * time.Second

// propose puts what a try has shown into the fields that nobody has touched, and says so.
func (s *Server) propose(ctx context.Context, f *web.EndpointForm, r probe.Result) (said []web.Said) {
	fresh := formOf(store.NewEndpoint())
	if name := r.Facts.ServerName; f.Name == "" && name != "" {
		e := store.Endpoint{Name: clip(strings.TrimSpace(name), maxProposedName)}
		hasty, cancel := context.WithTimeout(ctx, lookupPatience)
		taken, err := s.nameTaken(hasty, e)
		cancel()
		if err == nil && !taken && e.Name != "" { // else they find a name themselves
			f.Name = e.Name
			said = append(said, web.Say("It calls itself %s.", e.Name))
		}
	}
	healthy := r.Verdict == probe.Up || r.Failure != nil && r.Failure.Class == probe.ClassSlow
	slow := healthy && r.Duration > proposeSlow || r.RetryAfter > 0 || r.Failure != nil && r.Failure.Class == probe.ClassRateLimited
	if slow && f.Schedule == fresh.Schedule && f.Timeout == fresh.Timeout {
		f.Schedule, f.Timeout = proposeSeldom, durationText(proposePatient)
		said = append(said, web.Say("It takes its time: it is asked every 5 minutes, and has 30 seconds to answer."))
	}
	if timeout, err := time.ParseDuration(f.Timeout); err == nil && healthy && f.DegradedOver == fresh.DegradedOver {
		f.DegradedOver = durationText(niceOver(r.Duration, timeout))
		said = append(said, web.Say("It took %s: more than %s counts as degraded.", web.Latency(r.Duration), f.DegradedOver))
	}
	if at := r.Facts.TLSExpiresAt; at != nil {
		said = append(said, web.Say("Its certificate is good until %s; you hear of it before that ends.", web.Day(*at)))
	}
	return said
}

// maxProposedName bounds a name that a server proposes for itself, in bytes.
const maxProposedName = 60

// niceOver returns a round duration well above what a healthy answer took, and below the timeout where there is one.
func niceOver(took, timeout time.Duration) time.Duration {
	over := proposeLeast
	for _, seconds := range []int{2, 3, 5, 10, 15, 20, 30, 60} {
		if next := time.Duration(seconds) * time.Second; over < proposeSlower*took && next < timeout {
			over = next
		}
	}
	return over
}
