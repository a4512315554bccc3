package probe_test

import (
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// An expectation that is quick with every honest result must not take minutes with one that was made for it.
func TestExpectationsTakeNoTime(t *testing.T) {
	t.Parallel()
	const large = "(a{0,100}){0,9}b"
	long := `"` + strings.Repeat("a", 900_000) + `"`
	nested := strings.Repeat(`{"a":`, 4900) + "1" + strings.Repeat("}", 4900)
	for name, tc := range map[string]struct {
		expect probe.Expect
		result string
		says   string
	}{
		"a regex in CEL":            {probe.Expect{CEL: `result.matches("` + large + `")`}, long, "too large to be searched"},
		"a small regex in CEL":      {probe.Expect{CEL: `result.matches("b")`}, long, "is false"},
		"a regex for a long string": {probe.Expect{Path: `$[?search($.big, "` + large + `")]`}, `{"big":` + long + `,"b":1,"c":2,"d":3}`, "too many steps"},
		"a descent in a filter":     {probe.Expect{Path: `$..[?@..a]`}, nested, "too many steps"},
	} {
		t.Run(name, func(t *testing.T) {
			s := probetest.EVM(t, probetest.ResultAt("m", tc.result))
			r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: s.URL, Options: probe.Options{Expect: tc.expect}})
			if r.Failure == nil || r.Failure.Class != probe.ClassAssertionFailed || !strings.Contains(r.Failure.Message, tc.says) {
				t.Errorf("%s: %+v", r.Verdict, r.Failure)
			}
		})
	}
}

func TestRegexesInCELAreLiterals(t *testing.T) {
	for text, ok := range map[string]bool{
		`result.matches("^a+$")`:                     true,
		`[result].exists(x, x.matches("a"))`:         true,
		`result[0].matches(result[1])`:               false,
		`[result].exists(x, matches("a", x))`:        false,
		`result.matches("(") && result.matches("a")`: false,
	} {
		target := probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: "https://a.example", Options: probe.Options{Expect: probe.Expect{CEL: text}}}
		if problems := target.Validate(); (len(problems) == 0) != ok {
			t.Errorf("%s: %v", text, problems)
		}
	}
}
