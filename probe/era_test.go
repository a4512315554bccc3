package probe_test

import (
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// A server of both eras that is in trouble for a moment is asked in the modern one again, and only when it is silent there
// twice in a row is it taken for one of handshakes.
func TestAModernServerIsNotForgottenForOneSilence(t *testing.T) {
	t.Parallel()
	troubled := probetest.MCP(t, probetest.DiscoverQuirk(probetest.DiscoverUnavailable))
	healthy := probetest.MCP(t)
	target := probe.Target{Kind: probe.KindMCP, Timeout: 5 * time.Second, Era: probe.EraModern}
	ask := func(url string) probe.Result {
		t.Helper()
		target.URL = url
		r := local().Probe(t.Context(), target)
		if r.Verdict != probe.Up {
			t.Fatalf("%s %+v", r.Verdict, r.Failure)
		}
		target.Era, target.Memory = r.Era, r.Memory
		return r
	}
	for range 2 { // a silence that ends leaves no trace
		r := ask(troubled.URL)
		if r.Era != probe.EraModern || r.Facts.Era != probe.EraLegacy || len(r.Warnings) != 1 || r.Warnings[0].Step != "server/discover" {
			t.Errorf("silent once: era %q, spoke %q, warnings %+v", r.Era, r.Facts.Era, r.Warnings)
		}
		if r := ask(healthy.URL); r.Era != probe.EraModern || r.Memory.Mute {
			t.Errorf("healthy again: era %q, %+v", r.Era, r.Memory)
		}
	}
	ask(troubled.URL)
	if r := ask(troubled.URL); r.Era != probe.EraLegacy || r.Memory.Mute || len(r.Warnings) != 0 {
		t.Errorf("silent twice: era %q, %+v, warnings %+v", r.Era, r.Memory, r.Warnings)
	}
}
