package store

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Transcript is the conversation of a check as it is kept: bounded, compressed JSON. Nil means that there is none.
type Transcript []byte

// Bounds of a transcript.
const (
	// maxSpoken is how much text of one check goes into its transcript, and maxTranscript how large that may be compressed:
	// text that does not compress is bounded by the second.
	maxSpoken     = 1 << 20
	maxTranscript = 256 << 10
	// maxMessages is how many messages of one check go into its transcript.
	maxMessages = 500
	// maxStep is how long the name of a step may be, in bytes.
	maxStep = 200
	// MaxBadTranscripts is how many transcripts of failed checks are kept of an endpoint at a location, the newest ones.
	MaxBadTranscripts = 100
	// goodEvery is how long the transcript of a good check stands before a newer one takes its place.
	goodEvery = 10 * time.Minute
)

// messageJSON is a probe.Message as it is kept.
type messageJSON struct {
	Step    string `json:"step"`
	Sent    bool   `json:"sent,omitempty"`
	At      int64  `json:"at_us"`
	Head    string `json:"head,omitempty"`
	Body    string `json:"body,omitempty"`
	Clipped bool   `json:"clipped,omitempty"`
}

// NewTranscript returns the transcript of messages. Where there is too much of them, bodies end early and say so; those
// that come last give way first.
func NewTranscript(messages []probe.Message) Transcript {
	if len(messages) == 0 {
		return nil
	}
	for room := maxSpoken; room > 0; room /= 2 {
		text, err := json.Marshal(clipMessages(messages, room))
		if err != nil {
			return nil // not reached: strings always have a JSON form
		}
		if t := squeeze(text); len(t) <= maxTranscript {
			return t
		}
	}
	return nil // not reached: without text what is left is small
}

// clipMessages returns messages with at most room bytes of text, not counting what each has besides.
func clipMessages(messages []probe.Message, room int) []messageJSON {
	kept := make([]messageJSON, 0, min(len(messages), maxMessages))
	for _, m := range messages[:min(len(messages), maxMessages)] {
		step, _ := clipBytes(CleanText(m.Step), maxStep)
		form := messageJSON{Step: step, Sent: m.Sent, At: m.At.Microseconds(), Clipped: m.Clipped}
		var cut bool
		if form.Head, cut = clipBytes(m.Head, room); cut {
			form.Clipped = true
		}
		room -= len(form.Head)
		if form.Body, cut = clipBytes(m.Body, room); cut {
			form.Clipped = true
		}
		room -= len(form.Body)
		kept = append(kept, form)
	}
	return kept
}

// clipBytes returns at most n bytes of s without half a character at the end, and whether there was more.
func clipBytes(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	return strings.ToValidUTF8(s[:max(0, n)], ""), true
}

// Messages returns what NewTranscript was given, as far as it was kept.
func (t Transcript) Messages() ([]probe.Message, error) {
	if len(t) == 0 {
		return nil, nil
	}
	text, err := Expand(t)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	var forms []messageJSON
	if err := json.Unmarshal(text, &forms); err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	messages := make([]probe.Message, 0, len(forms))
	for _, f := range forms {
		messages = append(messages, probe.Message{
			Step: f.Step, Sent: f.Sent, At: time.Duration(f.At) * time.Microsecond, Head: f.Head, Body: f.Body, Clipped: f.Clipped,
		})
	}
	return messages, nil
}

// KeptTranscript is a transcript to be kept with its check.
type KeptTranscript struct {
	CheckID     string
	EndpointID  string
	Location    string
	ScheduledAt time.Time
	Good        bool // it takes the place of the last good one from its location
	At          time.Time
	Body        Transcript
}

// observeTranscript says whether the transcript of c is worth keeping: that of a check that was not up always, and of one that
// somebody asked for, that of any other good one once in a while, to be compared with.
func (s State) observeTranscript(c Check) (State, *KeptTranscript) {
	if len(c.Transcript) == 0 {
		return s, nil
	}
	kept := &KeptTranscript{
		CheckID: c.ID, EndpointID: c.EndpointID, Location: c.Location, ScheduledAt: c.ScheduledAt,
		Good: c.Result.Verdict == probe.Up, At: c.Result.StartedAt, Body: c.Transcript,
	}
	if !kept.Good {
		return s, kept
	}
	if !c.Asked && !s.WantsTranscript(c.Result) {
		return s, nil
	}
	s.TranscriptAt = c.Result.StartedAt
	return s, kept
}

// WantsTranscript reports whether the transcript of a check with this result would be kept when nobody asked for it.
func (s State) WantsTranscript(r probe.Result) bool {
	return r.Verdict != probe.Up || s.TranscriptAt.IsZero() || r.StartedAt.Sub(s.TranscriptAt) >= goodEvery
}

// writers are reused: one takes most of a megabyte to make.
var writers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// squeeze returns text compressed.
func squeeze(text []byte) []byte {
	var b bytes.Buffer
	w := writers.Get().(*gzip.Writer) //nolint:errcheck,forcetypeassert // nothing else is put in
	defer writers.Put(w)
	w.Reset(&b)
	_, _ = w.Write(text) // a bytes.Buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// maxExpanded is more than anything that squeeze was given.
const maxExpanded = 16 << 20

// Expand gives back what was compressed for the database; nil for nothing.
func Expand(squeezed []byte) ([]byte, error) {
	if len(squeezed) == 0 {
		return nil, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(squeezed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxExpanded+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxExpanded {
		return nil, fmt.Errorf("more than %d bytes were compressed", maxExpanded)
	}
	return text, r.Close()
}
