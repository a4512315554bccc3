package store

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

type Packed struct {
	ShapeID            int32
	Verdict            byte
	Latencies, Numbers []byte
}

type stubShape struct {
	Kind, Era                string
	StartMS, DurMS, RetryMS  float64
	Failure                  *probe.Failure
	Steps, Warnings, FactsJS json.RawMessage
}

var stubCodes = map[probe.Verdict]byte{probe.Up: 'u', probe.Degraded: 'd', probe.Down: 'x', probe.Gated: 'g', probe.Unknown: '?'}

func VerdictCode(v probe.Verdict) byte { return stubCodes[v] }

func ShapeOf(r probe.Result) ([]byte, error) {
	s, w, f, err := EncodeResult(r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(stubShape{string(r.Kind), string(r.Era), float64(r.StartedAt.UnixMicro()), Milliseconds(r.Duration), Milliseconds(r.RetryAfter), r.Failure, s, w, f})
}

func Pack(r probe.Result, at time.Time) (Packed, error) {
	text, err := ShapeOf(r)
	if err != nil {
		return Packed{}, err
	}
	h := fnv.New32a()
	h.Write(text)
	p := Packed{ShapeID: int32(h.Sum32()), Verdict: VerdictCode(r.Verdict), Latencies: []byte{}}
	for _, s := range r.Steps {
		p.Latencies = binary.BigEndian.AppendUint32(p.Latencies, uint32(s.Latency.Microseconds()))
	}
	return p, nil
}

func Unpack(at time.Time, verdict byte, latencies, numbers, shape []byte) (probe.Result, error) {
	var s stubShape
	if err := json.Unmarshal(shape, &s); err != nil {
		return probe.Result{}, err
	}
	r := probe.Result{Kind: probe.Kind(s.Kind), Era: probe.Era(s.Era), StartedAt: time.UnixMicro(int64(s.StartMS)).UTC(), Duration: FromMilliseconds(s.DurMS), RetryAfter: FromMilliseconds(s.RetryMS), Failure: s.Failure}
	for v, c := range stubCodes {
		if c == verdict {
			r.Verdict = v
		}
	}
	return r, DecodeResult(&r, s.Steps, s.Warnings, s.FactsJS)
}
