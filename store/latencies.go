package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	ddstore "github.com/DataDog/sketches-go/ddsketch/store"

	"github.com/rollcallhq/rollcall/probe"
)

// Latencies are mergeable sketches of the latencies of good checks: of whole checks under the empty name, and of each
// step under its own. Quantiles are right to sketchAccuracy. The zero value is empty and ready for use.
type Latencies struct{ bySteps map[string]*ddsketch.DDSketch }

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
	if l.bySteps == nil {
		l.bySteps = map[string]*ddsketch.DDSketch{}
	}
	s := l.bySteps[step]
	if s == nil {
		if len(l.bySteps) >= maxSketches {
			return
		}
		s = newSketch()
		l.bySteps[step] = s
	}
	// Add fails for values outside what the mapping can index only; a duration in milliseconds never is.
	_ = s.Add(max(0, d.Seconds()*1000))
}

// Merge takes in all of m.
func (l *Latencies) Merge(m Latencies) error {
	for step, s := range m.bySteps {
		if l.bySteps == nil {
			l.bySteps = map[string]*ddsketch.DDSketch{}
		}
		if l.bySteps[step] == nil {
			l.bySteps[step] = newSketch()
		}
		if err := l.bySteps[step].MergeWith(s); err != nil {
			return fmt.Errorf("merge latencies of step %q: %w", step, err)
		}
	}
	return nil
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
	s := l.bySteps[step]
	if s == nil || s.IsEmpty() {
		return nil
	}
	values, err := s.GetValuesAtQuantiles(qs)
	if err != nil {
		return nil
	}
	return values
}

// MarshalBinary encodes l for a database column.
func (l Latencies) MarshalBinary() ([]byte, error) {
	encoded := make(map[string][]byte, len(l.bySteps))
	for step, s := range l.bySteps {
		var b []byte
		s.Encode(&b, true) // the mapping is known: sketchMapping
		encoded[step] = b
	}
	return json.Marshal(encoded)
}

// UnmarshalBinary reads what MarshalBinary wrote; no bytes at all are an empty value.
func (l *Latencies) UnmarshalBinary(data []byte) error {
	l.bySteps = nil
	if len(data) == 0 {
		return nil
	}
	var encoded map[string][]byte
	if err := json.Unmarshal(data, &encoded); err != nil {
		return fmt.Errorf("read latencies: %w", err)
	}
	l.bySteps = make(map[string]*ddsketch.DDSketch, len(encoded))
	for step, b := range encoded {
		s, err := ddsketch.DecodeDDSketch(b, ddstore.SparseStoreConstructor, sketchMapping)
		if err != nil {
			return fmt.Errorf("read latencies of step %q: %w", step, err)
		}
		l.bySteps[step] = s
	}
	return nil
}
