package probe_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestStreamsAreTakenUpWhereTheyEnded(t *testing.T) {
	t.Parallel()
	up, down := probe.Up, probe.Down
	legacy := probe.EraLegacy
	failed := "initialize initialized tools/list!sse_no_response close"
	for name, tc := range map[string]struct {
		fault  probetest.Fault
		within time.Duration
		want   want
	}{
		"after the time that the server names": {probetest.ResumeAt("tools/list", 30*time.Millisecond, 1), 0, want{verdict: up, era: legacy, tools: 3, steps: shortSteps}},
		"more than once":                       {probetest.ResumeAt("tools/list", time.Millisecond, 3), 0, want{verdict: up, era: legacy, tools: 3, steps: shortSteps}},
		"the handshake, too":                   {probetest.ResumeAt("initialize", time.Millisecond, 1), 0, want{verdict: up, era: legacy, tools: 3, steps: shortSteps}},
		"after a second when no time is named": {probetest.ResumeAt("tools/list", 0, 1), 0, want{verdict: up, era: legacy, tools: 3, steps: shortSteps}},
		"not for ever": {probetest.ResumeAt("tools/list", time.Millisecond, 100), 0,
			want{verdict: down, step: "tools/list", class: probe.ClassSSENoResponse, code: 200, message: "ended without an answer", era: legacy, steps: failed}},
		"not when the check is over by then": {probetest.ResumeAt("tools/list", time.Minute, 1), 5 * time.Second,
			want{verdict: down, step: "tools/list", class: probe.ClassSSENoResponse, code: 200, message: "asked for 1 min more", era: legacy, steps: failed}},
		"not when the server knows nothing of it": {probetest.StreamTextAt("tools/list", "id: x\nretry: 1\n\n"), 0,
			want{verdict: down, step: "tools/list", class: probe.ClassSSENoResponse, code: 200, message: "could not be taken up again: 404 Not Found", era: legacy, steps: failed}},
		"not without an id": {probetest.StreamTextAt("tools/list", "retry: 1\ndata:\n\n"), 0,
			want{verdict: down, step: "tools/list", class: probe.ClassSSENoResponse, code: 200, era: legacy, steps: failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := probetest.MCP(t, probetest.LegacyOnly(), tc.fault)
			check(t, ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: legacy, Timeout: tc.within}), tc.want)
		})
	}
}

func TestWhatATakenUpStreamIsAskedFor(t *testing.T) {
	t.Parallel()
	const wait = 60 * time.Millisecond
	s := probetest.MCP(t, probetest.LegacyOnly(), probetest.ResumeAt("tools/list", wait, 1))
	r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraLegacy})
	for _, req := range s.Requests() {
		if req.Step != "sse" {
			continue
		}
		got := []string{req.HTTPMethod, req.Header.Get("Accept"), req.Header.Get("Last-Event-Id"), req.Header.Get("Mcp-Session-Id"), req.Header.Get("Mcp-Protocol-Version")}
		if diff := cmp.Diff([]string{"GET", "text/event-stream", "event-1", "session-1", "2025-11-25"}, got); diff != "" {
			t.Errorf("the GET (-want +got):\n%s", diff)
		}
	}
	for _, step := range r.Steps {
		if step.Name == "tools/list" && (step.Latency < wait || step.BytesIn < 200) {
			t.Errorf("tools/list took %s and %d bytes, want the wait of %s and all bytes in it", step.Latency, step.BytesIn, wait)
		}
	}
	if want := "initialize initialized tools/list sse close"; cmp.Diff(want, join(s.Steps())) != "" {
		t.Errorf("the server was asked %q, want %q", join(s.Steps()), want)
	}
}

// In the modern era a stream without an answer is a request that is lost.
func TestModernStreamsAreNotTakenUp(t *testing.T) {
	t.Parallel()
	s := probetest.MCP(t, probetest.ModernOnly(), probetest.ResumeAt("tools/list", time.Millisecond, 1))
	check(t, ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL}),
		want{verdict: probe.Down, step: "tools/list", class: probe.ClassSSENoResponse, code: 200, era: probe.EraModern, steps: "server/discover tools/list!sse_no_response"})
}
