package probe_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// What an endpoint asks of its own accord names the step of our answer in the transcript.
func TestRequestsOfTheEndpointInATranscript(t *testing.T) {
	t.Parallel()
	const key = "opensesame-123456"
	long := strings.Repeat("long", 10_000)
	asked := `{"jsonrpc":"2.0","id":1,"method":"` + key + `"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"` + long + `"}` + "\n"
	s := probetest.WebSocket(t, probetest.EVM(t), probetest.Before("eth_blockNumber", asked))
	r := local().Probe(t.Context(), probe.Target{
		Kind: probe.KindJSONRPC, Method: "eth_blockNumber", URL: s.URL, Transcript: true,
		Headers: []probe.Header{{Name: "X-Api-Key", Value: key, Secret: true}},
	})
	check(t, r, want{verdict: probe.Up, steps: "eth_blockNumber", warnings: []string{"eth_blockNumber framing"}})
	var steps []string
	for _, m := range r.Transcript {
		if len(m.Step) > 200 {
			t.Fatalf("a step with a name of %d bytes", len(m.Step))
		}
		if m.Sent {
			steps = append(steps, m.Step[:min(len(m.Step), 4)])
		}
	}
	if diff := cmp.Diff([]string{"eth_", "eth_", "…", "long"}, steps); diff != "" {
		t.Errorf("steps of what was sent (-want +got):\n%s", diff)
	}
	if text, err := json.Marshal(r); err != nil || strings.Contains(string(text), key) {
		t.Errorf("the result holds the key, or cannot be written: %v", err)
	}
}

func TestATranscriptIsBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		message string
		n       int
	}{
		"many messages":  {`{"jsonrpc":"2.0","method":"n"}`, 5000},
		"large messages": {`{"jsonrpc":"2.0","method":"n","params":["` + strings.Repeat("x", 60_000) + `"]}`, 150},
	} {
		s := probetest.Socket(t, probetest.EVM(t), probetest.Before("eth_blockNumber", strings.Repeat(tc.message+"\n", tc.n)))
		r := local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "eth_blockNumber", URL: s.URL, Transcript: true})
		check(t, r, want{verdict: probe.Up, steps: "eth_blockNumber"})
		size := 0
		for _, m := range r.Transcript {
			size += len(m.Body)
		}
		if n := len(r.Transcript); n < 50 || n > 1000 || size > 5<<20 {
			t.Errorf("%s: %d messages of %d bytes are kept", name, n, size)
		}
	}
}

// A frame full of tiny messages is one that makes no sense, and not millions of them.
func TestAFrameOfTooManyMessages(t *testing.T) {
	t.Parallel()
	s := probetest.WebSocket(t, probetest.EVM(t), probetest.Before("eth_blockNumber", strings.Repeat("{}", 1001)))
	r := local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "eth_blockNumber", URL: s.URL})
	check(t, r, want{verdict: probe.Down, step: "eth_blockNumber", class: probe.ClassInvalidJSON, steps: "eth_blockNumber!invalid_json"})
}
