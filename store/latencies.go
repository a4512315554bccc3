package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	ddstore "github.com/DataDog/sketches-go/ddsketch/store"

	"github.com/rollcallhq/rollcall/probe"
)

// Latencies are mergeable sketches of the latencies of good checks: of whole checks under the empty name, and of each
// step under its own. Quantiles are right to sketchAccuracy. The zero value is empty and ready for use.
type Latencies struct{ bySteps map[string]*stepLatencies }

// stepLatencies is the sketch of a step, or, as long as nothing is added to it, what was read of one: of a year of them few
// are ever asked for.
type stepLatencies struct {
	sketch *ddsketch.DDSketch // nil while packed is what counts
	packed []byte
}

// sketchAccuracy is the relative error of a quantile: 1 %. maxSketches bounds the steps of one endpoint and hour.
const (
	sketchAccuracy = 0.01
	maxSketches    = 24
)

// sketchMapping is shared: a mapping never changes.
var sketchMapping = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(sketchAccuracy)
	if err != nil {
		panic(err) // sketchAccuracy is a constant between 0 and 1
	}
	return m
}()

func newSketch() *ddsketch.DDSketch {
	return ddsketch.NewDDSketchFromStoreProvider(sketchMapping, ddstore.SparseStoreConstructor)
}

// Add takes in the latencies of a check that found its endpoint up or degraded; others say nothing about speed.
func (l *Latencies) Add(r probe.Result) {
	if r.Verdict != probe.Up && r.Verdict != probe.Degraded {
		return
	}
	l.add("", r.Duration)
	for _, s := range r.Steps {
		if s.Class == "" && s.Name != "" {
			l.add(s.Name, s.Latency)
		}
	}
}

func (l *Latencies) add(step string, d time.Duration) {
	if l.bySteps[step] == nil && len(l.bySteps) >= maxSketches {
		return
	}
	s, err := l.own(step)
	if err != nil {
		return // what was read is spoilt: the latencies of an hour are not worth a check
	}
	// Add fails for values outside what the mapping can index only; a duration in milliseconds never is.
	_ = s.Add(max(0, d.Seconds()*1000))
}

// own returns the sketch of a step to be changed, which it makes when there is none.
func (l *Latencies) own(step string) (*ddsketch.DDSketch, error) {
	if l.bySteps == nil {
		l.bySteps = map[string]*stepLatencies{}
	}
	s := l.bySteps[step]
	if s == nil {
		s = &stepLatencies{sketch: newSketch()}
		l.bySteps[step] = s
	}
	sketch, err := s.unpack()
	if err != nil {
		return nil, fmt.Errorf("read latencies of step %q: %w", step, err)
	}
	*s = stepLatencies{sketch: sketch}
	return sketch, nil
}

// unpack returns the sketch. It changes nothing, so that many may read at once.
func (s *stepLatencies) unpack() (*ddsketch.DDSketch, error) {
	if s.sketch != nil {
		return s.sketch, nil
	}
	return ddsketch.DecodeDDSketch(s.packed, ddstore.SparseStoreConstructor, sketchMapping)
}

// Merge takes in all of m and shares nothing with it that changes.
func (l *Latencies) Merge(m Latencies) error {
	for step, given := range m.bySteps {
		if l.bySteps[step] == nil && given.sketch == nil {
			if l.bySteps == nil {
				l.bySteps = map[string]*stepLatencies{}
			}
			l.bySteps[step] = &stepLatencies{packed: given.packed}
			continue
		}
		if err := l.mergeStep(step, given); err != nil {
			return fmt.Errorf("merge latencies of step %q: %w", step, err)
		}
	}
	return nil
}

func (l *Latencies) mergeStep(step string, given *stepLatencies) error {
	s, err := l.own(step)
	if err != nil {
		return err
	}
	m, err := given.unpack()
	if err != nil {
		return err
	}
	return s.MergeWith(m)
}

// Steps lists the steps there are latencies of, in no order.
func (l Latencies) Steps() []string {
	var names []string
	for name := range l.bySteps {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Quantiles returns the latencies in milliseconds at each q of [0, 1] for a step, or for whole checks when step is
// empty; nil when nothing was measured.
func (l Latencies) Quantiles(step string, qs ...float64) []float64 {
	kept := l.bySteps[step]
	if kept == nil {
		return nil
	}
	s, err := kept.unpack()
	if err != nil || s.IsEmpty() {
		return nil
	}
	values, err := s.GetValuesAtQuantiles(qs)
	if err != nil {
		return nil
	}
	return values
}

// MarshalBinary encodes l for a database column: the name of each step and its sketch, both after their length.
func (l Latencies) MarshalBinary() ([]byte, error) {
	var out, buffer []byte
	for _, step := range slices.Sorted(maps.Keys(l.bySteps)) {
		s := l.bySteps[step]
		b := s.packed
		if s.sketch != nil {
			buffer = buffer[:0]
			s.sketch.Encode(&buffer, true) // the mapping is known: sketchMapping
			b = buffer
		}
		out = appendText(appendText(out, step), b)
	}
	return out, nil
}

// UnmarshalBinary reads what MarshalBinary wrote, also in its earlier form, JSON; no bytes at all are an empty value. It
// keeps data.
func (l *Latencies) UnmarshalBinary(data []byte) error {
	l.bySteps = nil
	if len(data) == 0 {
		return nil
	}
	l.bySteps = map[string]*stepLatencies{}
	if data[0] == '{' && json.Valid(data) {
		return l.unmarshalJSON(data)
	}
	r := unpacker{rest: data}
	for len(r.rest) > 0 && len(l.bySteps) <= maxSketches {
		step := string(r.text())
		l.bySteps[step] = &stepLatencies{packed: r.text()}
	}
	if r.err != nil {
		return fmt.Errorf("read latencies: %w", r.err)
	}
	return nil
}

func (l *Latencies) unmarshalJSON(data []byte) error {
	var encoded map[string][]byte
	if err := json.Unmarshal(data, &encoded); err != nil {
		return fmt.Errorf("read latencies: %w", err)
	}
	for step, b := range encoded {
		l.bySteps[step] = &stepLatencies{packed: b}
	}
	return nil
}
