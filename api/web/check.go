package web

import (
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// CheckPage shows one check with everything that was seen.
type CheckPage struct {
	Frame
	Slug, Name string // of the endpoint
	URL        string // likewise, redacted
	Location   string
	Scheduled  time.Time
	Check      Check
	Said       []probe.Message // the conversation, word for word; empty when it was not kept
	Kept       *CheckLink      // the good check from the same place whose conversation is, when this one's is not; nil when none is
}

// CheckLink leads to a check.
type CheckLink struct {
	Path string
	At   time.Time // when it started
}

// MostSaid is how many checks that were not up keep their conversations, the latest ones.
func (CheckPage) MostSaid() int { return store.MaxBadTranscripts }

func (CheckPage) template() string { return "check" }

// Turns is the conversation in the form in which it is shown.
func (p CheckPage) Turns() []Turn { return Conversation(p.Said, p.URL) }

// Check is one probe as pages show it, kept or only tried.
type Check struct {
	ID       string // empty when it was not kept
	Location string // that it was made from; empty where there is one only
	probe.Result
}

// CheckOf returns a check of what a probe saw.
func CheckOf(id string, r probe.Result) Check { return Check{ID: id, Result: r} }

// Speechless reports whether the check failed before a word was sent: there was no connection.
func (c Check) Speechless() bool {
	return c.Failure != nil && slices.Contains([]probe.Class{probe.ClassDNS, probe.ClassConnect, probe.ClassTLS}, c.Failure.Class) &&
		!slices.ContainsFunc(c.Steps, func(s probe.Step) bool { return s.BytesIn != 0 || s.HTTPStatus != 0 })
}

// Total is how long the conversation took, closing included: the length of its time line.
func (c Check) Total() time.Duration {
	total := c.Duration
	for _, s := range c.Steps {
		total = max(total, s.Start+s.Latency)
	}
	return total
}

// Decided reports whether a step is the one that decided a verdict other than up. Other steps may have failed without
// harm: a server of the legacy era refuses the question that only a modern one knows.
func (c Check) Decided(s probe.Step) bool { return c.Failure != nil && c.Failure.Step == s.Name }

// lineWidth is the width of a time line in the units of its picture.
const lineWidth = 1000

// Bars places a step's phases on the time line of its check.
func (c Check) Bars(s probe.Step) []PhaseBar {
	total := c.Total()
	if total <= 0 {
		return nil
	}
	scale := func(d time.Duration) float64 {
		return max(0, min(1, float64(d)/float64(total))) * lineWidth
	}
	phases := PhasesOf(s)
	bars := make([]PhaseBar, 0, len(phases)+1)
	at, end := s.Start, s.Start+s.Latency
	for _, p := range phases {
		length := min(p.Duration, end-at)
		bars = append(bars, PhaseBar{p.Name, scale(at), scale(length)})
		at += length
	}
	// What no phase accounts for: writing the request, waiting between the two.
	return append(bars, PhaseBar{"other", scale(at), max(2, scale(end-at))})
}

// PhaseBar is one stretch of a time line, in thousandths of it.
type PhaseBar struct {
	Phase    string // closed list; names the CSS class
	X, Width float64
}

// Phase is one part of a step's latency.
type Phase struct {
	Name     string // closed list
	Words    string
	Duration time.Duration
}

// PhasesOf lists the phases that a step went through, in order.
func PhasesOf(s probe.Step) []Phase {
	all := []Phase{
		{"dns", "DNS", s.Phases.DNS},
		{"connect", "connect", s.Phases.Connect},
		{"tls", "TLS", s.Phases.TLS},
		{"wait", "first byte", s.Phases.FirstByte},
		{"body", "body", s.Phases.Body},
	}
	var seen []Phase
	for _, p := range all {
		if p.Duration > 0 {
			seen = append(seen, p)
		}
	}
	return seen
}

// Phases makes PhasesOf callable from templates.
func (Check) Phases(s probe.Step) []Phase { return PhasesOf(s) }
