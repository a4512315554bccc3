package store

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Milliseconds returns d as the databases keep durations: a number that people can read. It loses nothing below 104 days.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// FromMilliseconds is the inverse of Milliseconds.
func FromMilliseconds(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}

// stepJSON is a probe.Step as it is kept. The view check_steps of each database reads name, latency_ms, http_status,
// class, code and message: they are always there.
type stepJSON struct {
	Name       string     `json:"name"`
	Method     string     `json:"method,omitempty"`
	StartMS    float64    `json:"start_ms"`
	LatencyMS  float64    `json:"latency_ms"`
	Phases     phasesJSON `json:"phases,omitzero"`
	HTTPStatus int        `json:"http_status"`
	Class      string     `json:"class"`
	Code       int        `json:"code"`
	Message    string     `json:"message"`
	BytesIn    int64      `json:"bytes_in"`
	BytesOut   int64      `json:"bytes_out"`
}

type phasesJSON struct {
	DNSMS       float64 `json:"dns_ms,omitempty"`
	ConnectMS   float64 `json:"connect_ms,omitempty"`
	TLSMS       float64 `json:"tls_ms,omitempty"`
	FirstByteMS float64 `json:"first_byte_ms,omitempty"`
	BodyMS      float64 `json:"body_ms,omitempty"`
}

type warningJSON struct {
	Step    string `json:"step,omitempty"`
	Class   string `json:"class"`
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// EncodeResult returns the parts of a result that databases keep as JSON. It never fails for a check that TidyChecks
// returned.
func EncodeResult(r probe.Result) (steps, warnings, facts []byte, err error) {
	stepForms := make([]stepJSON, 0, len(r.Steps))
	for _, s := range r.Steps {
		stepForms = append(stepForms, stepForm(s))
	}
	warningForms := make([]warningJSON, 0, len(r.Warnings))
	for _, w := range r.Warnings {
		warningForms = append(warningForms, warningJSON{w.Step, string(w.Class), w.Code, w.Message})
	}
	if steps, err = json.Marshal(stepForms); err != nil {
		return nil, nil, nil, fmt.Errorf("write steps: %w", err)
	}
	if warnings, err = json.Marshal(warningForms); err != nil {
		return nil, nil, nil, fmt.Errorf("write warnings: %w", err)
	}
	if facts, err = json.Marshal(r.Facts); err != nil {
		return nil, nil, nil, fmt.Errorf("write facts: %w", err)
	}
	return steps, warnings, facts, nil
}

// DecodeResult fills in the parts of r that EncodeResult wrote.
func DecodeResult(r *probe.Result, steps, warnings, facts []byte) error {
	var stepForms []stepJSON
	if err := json.Unmarshal(steps, &stepForms); err != nil {
		return fmt.Errorf("read steps: %w", err)
	}
	var warningForms []warningJSON
	if err := json.Unmarshal(warnings, &warningForms); err != nil {
		return fmt.Errorf("read warnings: %w", err)
	}
	if err := json.Unmarshal(facts, &r.Facts); err != nil {
		return fmt.Errorf("read facts: %w", err)
	}
	for _, s := range stepForms {
		r.Steps = append(r.Steps, s.step())
	}
	for _, w := range warningForms {
		r.Warnings = append(r.Warnings, probe.Warning{Step: w.Step, Class: probe.Class(w.Class), Code: w.Code, Message: w.Message})
	}
	return nil
}

func stepForm(s probe.Step) stepJSON {
	return stepJSON{
		Name:      s.Name,
		Method:    s.Method,
		StartMS:   Milliseconds(s.Start),
		LatencyMS: Milliseconds(s.Latency),
		Phases: phasesJSON{
			DNSMS:       Milliseconds(s.Phases.DNS),
			ConnectMS:   Milliseconds(s.Phases.Connect),
			TLSMS:       Milliseconds(s.Phases.TLS),
			FirstByteMS: Milliseconds(s.Phases.FirstByte),
			BodyMS:      Milliseconds(s.Phases.Body),
		},
		HTTPStatus: s.HTTPStatus,
		Class:      string(s.Class),
		Code:       s.Code,
		Message:    s.Message,
		BytesIn:    s.BytesIn,
		BytesOut:   s.BytesOut,
	}
}

func (s stepJSON) step() probe.Step {
	return probe.Step{
		Name:    s.Name,
		Method:  s.Method,
		Start:   FromMilliseconds(s.StartMS),
		Latency: FromMilliseconds(s.LatencyMS),
		Phases: probe.Phases{
			DNS:       FromMilliseconds(s.Phases.DNSMS),
			Connect:   FromMilliseconds(s.Phases.ConnectMS),
			TLS:       FromMilliseconds(s.Phases.TLSMS),
			FirstByte: FromMilliseconds(s.Phases.FirstByteMS),
			Body:      FromMilliseconds(s.Phases.BodyMS),
		},
		HTTPStatus: s.HTTPStatus,
		Class:      probe.Class(s.Class),
		Code:       s.Code,
		Message:    s.Message,
		BytesIn:    s.BytesIn,
		BytesOut:   s.BytesOut,
	}
}

// evidenceJSON is what a State holds that no query asks for.
type evidenceJSON struct {
	Streak      Streak         `json:"streak,omitzero"`
	Down        Streak         `json:"down,omitzero"`
	Failure     *probe.Failure `json:"failure,omitempty"`
	Kind        probe.Kind     `json:"kind,omitempty"`
	Era         probe.Era      `json:"era,omitempty"`
	Height      *uint64        `json:"height,omitempty"` // a hostile node can name one that no SQL integer holds
	HeightSince time.Time      `json:"height_since,omitzero"`
	LastVerdict probe.Verdict  `json:"last_verdict,omitempty"`
	LastMS      float64        `json:"last_ms,omitempty"`

	Memory       probe.Memory    `json:"memory,omitzero"`
	Contracts    []KnownContract `json:"contracts,omitempty"`
	Suspect      *KnownContract  `json:"suspect,omitempty"`
	TranscriptAt time.Time       `json:"transcript_at,omitzero"`
	ContractTold Told            `json:"contract_told,omitzero"`
}

// EncodeEvidence returns the parts of a state that databases keep as JSON: all but Status, Since, LastCheckID and
// LastCheckAt.
func EncodeEvidence(s State) ([]byte, error) {
	evidence, err := json.Marshal(evidenceJSON{
		s.Streak, s.Down, s.Failure, s.Kind, s.Era, s.Height, s.HeightSince, s.LastVerdict, Milliseconds(s.LastDuration), s.Memory, s.Contracts, s.Suspect, s.TranscriptAt,
		s.ContractTold,
	})
	if err != nil {
		return nil, fmt.Errorf("write state: %w", err)
	}
	return evidence, nil
}

// DecodeEvidence fills in the parts of s that EncodeEvidence wrote.
func DecodeEvidence(s *State, evidence []byte) error {
	var e evidenceJSON
	if err := json.Unmarshal(evidence, &e); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	s.Streak, s.Down, s.Failure = e.Streak, e.Down, e.Failure
	s.Kind, s.Era, s.Height, s.HeightSince = e.Kind, e.Era, e.Height, e.HeightSince
	s.LastVerdict, s.LastDuration = e.LastVerdict, FromMilliseconds(e.LastMS)
	s.Memory, s.Contracts, s.Suspect, s.TranscriptAt = e.Memory, e.Contracts, e.Suspect, e.TranscriptAt
	s.ContractTold = e.ContractTold
	return nil
}
