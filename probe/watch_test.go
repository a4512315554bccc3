package probe_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestWhoWatchesIsToldOfEveryStepInTurn(t *testing.T) {
	for name, s := range map[string]*probetest.Server{
		"modern":            probetest.MCP(t),
		"legacy":            probetest.MCP(t, probetest.LegacyOnly()),
		"a step goes wrong": probetest.MCP(t, probetest.LegacyOnly(), probetest.RPCErrorAt("tools/list", 200, -32603, "Internal error")),
	} {
		t.Run(name, func(t *testing.T) {
			var begun, ended []string
			var told []probe.Step
			r := ask(t, probe.Target{Kind: probe.KindAuto, URL: s.URL, Watch: func(at int, step probe.Step, over bool) {
				switch {
				case !over && (at != len(begun) || at != len(ended) || step.Latency != 0):
					t.Errorf("step %d begins as %+v after %d have begun and %d ended", at, step, len(begun), len(ended))
				case over && at != len(ended):
					t.Errorf("step %d ends after %d others", at, len(ended))
				}
				if over {
					ended, told = append(ended, step.Name), append(told, step)
				} else {
					begun = append(begun, step.Name)
				}
			}})
			if diff := gocmp.Diff(told, r.Steps); diff != "" || len(told) == 0 {
				t.Errorf("what was told differs from the result (-told +result):\n%s", diff)
			}
			if diff := gocmp.Diff(begun, ended); diff != "" {
				t.Errorf("begun and ended differ:\n%s", diff)
			}
		})
	}
}

func TestNobodyIsToldOfATargetThatIsNotAsked(t *testing.T) {
	r := ask(t, probe.Target{Kind: probe.KindAuto, URL: "gopher://x", Watch: func(int, probe.Step, bool) {
		t.Error("a step was told")
	}})
	if r.Failure == nil || r.Failure.Class != probe.ClassProbeError {
		t.Errorf("got %+v", r.Failure)
	}
}
