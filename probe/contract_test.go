package probe_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestContract(t *testing.T) {
	const (
		a = `{"name":"a", "title":"A", "description":"Does a.", "inputSchema":{"type":"object","properties":{"y":{},"x":{"minimum":1.0}}},
			"outputSchema":{"type":"object"}, "annotations":{"readOnlyHint":true}, "execution":{}, "icons":[{"src":"x"}], "_meta":{"a":1}, "more":7}`
		b = `{"name":"b","inputSchema":{"type":"object"}}`
	)
	const want = `[{"annotations":{"readOnlyHint":true},"description":"Does a.","execution":{},"inputSchema":{"properties":{"x":{"minimum":1},"y":{}},"type":"object"},` +
		`"name":"a","outputSchema":{"type":"object"},"title":"A"},{"inputSchema":{"type":"object"},"name":"b"}]`
	sum := sha256.Sum256([]byte(want))
	hash := "sha256:" + hex.EncodeToString(sum[:])
	for name, tools := range map[string][]string{
		"in order":          {a, b},
		"in another order":  {b, a},
		"with other icons":  {strings.Replace(a, `"src":"x"`, `"src":"y"`, 1), b},
		"with other spaces": {strings.ReplaceAll(a, ", ", "\n,\t"), b},
		"in other spelling": {strings.NewReplacer("1.0", "10e-1", "Does", `\u0044oes`).Replace(a), b},
	} {
		for _, era := range []probetest.Fault{probetest.ModernOnly(), probetest.LegacyOnly()} {
			s := probetest.MCP(t, era, probetest.ToolList(tools...))
			r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL})
			if r.Verdict != probe.Up || r.Contract == nil {
				t.Fatalf("%s: %s %+v, contract %v", name, r.Verdict, r.Failure, r.Contract)
			}
			if got := string(r.Contract.Tools); got != want || r.Contract.Hash != hash || r.Facts.Contract != hash || r.Contract.Key != string(r.Era)+"/public" {
				t.Errorf("%s: key %s, hash %s, fact %s\n got %s\nwant %s", name, r.Contract.Key, r.Contract.Hash, r.Facts.Contract, got, want)
			}
		}
	}
}

func TestContractSpansAllPages(t *testing.T) {
	one := probetest.MCP(t, probetest.Tools(20))
	many := probetest.MCP(t, probetest.LegacyOnly(), probetest.Tools(20), probetest.PageSize(3))
	a, b := ask(t, probe.Target{Kind: probe.KindMCP, URL: one.URL}), ask(t, probe.Target{Kind: probe.KindMCP, URL: many.URL})
	if a.Contract == nil || b.Contract == nil || a.Contract.Hash != b.Contract.Hash {
		t.Errorf("one page %+v, seven pages %+v", a.Contract, b.Contract)
	}
	var tools []struct{ Name string }
	if err := json.Unmarshal(a.Contract.Tools, &tools); err != nil || len(tools) != 20 {
		t.Errorf("%d tools, %v", len(tools), err)
	}
}

// A server that no longer declares tools has taken all of them away, as one with an empty list has.
func TestNoToolsAreAContractToo(t *testing.T) {
	for name, fault := range map[string]probetest.Fault{"an empty list": probetest.Tools(0), "none declared": probetest.NoTools()} {
		r := ask(t, probe.Target{Kind: probe.KindMCP, URL: probetest.MCP(t, fault).URL})
		if r.Verdict != probe.Up || r.Contract == nil || string(r.Contract.Tools) != "[]" || r.Facts.Contract != r.Contract.Hash {
			t.Errorf("%s: %s %+v, contract %+v", name, r.Verdict, r.Failure, r.Contract)
		}
	}
}

// Both SDKs take these lists without a word.
func TestListsThatAreNone(t *testing.T) {
	for _, members := range []string{``, `,"tools":null`, `,"tools":{}`, `,"tools":"a"`} {
		for _, era := range []probetest.Fault{probetest.ModernOnly(), probetest.LegacyOnly()} {
			result := `{"resultType":"complete","ttlMs":0,"cacheScope":"public"` + members + `}`
			s := probetest.MCP(t, era, probetest.ResultAt("tools/list", result))
			r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL})
			if r.Verdict != probe.Degraded || r.Failure.Class != probe.ClassSchemaInvalid || r.Failure.Message != "the result has no list of tools" {
				t.Errorf("%s: %s %+v", result, r.Verdict, r.Failure)
			}
		}
	}
}

// What was not read to its end says nothing of what is gone.
func TestNoContractOfHalfAList(t *testing.T) {
	result := func(members string) probetest.Fault {
		return probetest.ResultAt("tools/list", `{"resultType":"complete","ttlMs":0,"cacheScope":"public",`+members+`}`)
	}
	for name, fault := range map[string]probetest.Fault{
		"a cursor loop":             probetest.CursorLoop(),
		"a list without end":        result(`"tools":[],"nextCursor":7`),
		"too many tools":            result(`"tools":[{}` + strings.Repeat(`,{}`, 10_000) + `]`),
		"no list":                   result(`"tools":null`),
		"an object for a list":      result(`"tools":{}`),
		"a tool that is none":       result(`"tools":[null]`),
		"a tool of too many levels": result(`"tools":[{"name":"a","inputSchema":{"type":"object","x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}]`),
		"megabytes of tools":        result(`"tools":[{"name":"a","description":"` + strings.Repeat("x", 5<<20) + `","inputSchema":{"type":"object"}}]`),
		"an error":                  probetest.RPCErrorAt("tools/list", 200, -32603, "Internal error"),
		"tools declared by mistake": probetest.RPCErrorAt("tools/list", 404, -32601, "Method not found"),
	} {
		s := probetest.MCP(t, fault)
		r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Memory: probe.Memory{SoundTools: "kept"}})
		if r.Contract != nil || r.Facts.Contract != "" || r.Memory.SoundTools != "kept" {
			t.Errorf("%s: %+v, fact %q, memory %+v", name, r.Contract, r.Facts.Contract, r.Memory)
		}
	}
}

func TestTooManyPagesMakeNoContract(t *testing.T) {
	s := probetest.MCP(t, probetest.Tools(60), probetest.PageSize(1))
	if r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL}); r.Contract != nil || r.Failure.Class != probe.ClassPageLimit {
		t.Errorf("%+v, %+v", r.Failure, r.Contract)
	}
}

func TestContractKeysTellCredentialsApart(t *testing.T) {
	const secret = "pin1"
	targets := map[string]probe.Target{
		"none":               {},
		"a header":           {Headers: []probe.Header{{Name: "Authorization", Value: "Bearer " + secret}}},
		"another value":      {Headers: []probe.Header{{Name: "Authorization", Value: "Bearer other"}}},
		"another header":     {Headers: []probe.Header{{Name: "X-Token", Value: "Bearer " + secret}}},
		"two headers":        {Headers: []probe.Header{{Name: "X-Token", Value: "Bear"}, {Name: "X-Token", Value: "er " + secret}}},
		"a key in the URL":   {URL: "https://example.com/mcp?api_key=" + secret},
		"OAuth":              {Options: probe.Options{OAuth: &probe.OAuth{ClientID: "a", ClientSecret: secret}}},
		"another client":     {Options: probe.Options{OAuth: &probe.OAuth{ClientID: "b", ClientSecret: secret}}},
		"a certificate":      {Options: probe.Options{TLS: probe.TLS{ClientCert: "PEM"}}},
		"in the environment": {Command: &probe.Command{Env: []probe.Header{{Name: "API_KEY", Value: secret}}}},
	}
	seen := map[string]string{}
	for name, target := range targets {
		key := target.ContractKey(probe.EraModern)
		if other, taken := seen[key]; taken {
			t.Errorf("%s and %s have the key %s", name, other, key)
		}
		seen[key] = name
		if !strings.HasPrefix(key, "modern/") || strings.Contains(key, secret) {
			t.Errorf("%s: %s", name, key)
		}
	}
	same := probe.Target{Headers: []probe.Header{{Name: "authorization", Value: "Bearer " + secret}, {Name: "X-Trace", Value: "7"}}}
	if got, want := same.ContractKey(probe.EraLegacy), "legacy/"+strings.TrimPrefix(targets["a header"].ContractKey(probe.EraModern), "modern/"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	rotated := probe.Target{Options: probe.Options{OAuth: &probe.OAuth{ClientID: "a", ClientSecret: "other"}}}
	if rotated.ContractKey(probe.EraModern) != targets["OAuth"].ContractKey(probe.EraModern) {
		t.Error("another secret of the same client makes another key")
	}
}

// A server may say our secret back in its tools, which are kept and shown.
func TestContractHoldsNoSecret(t *testing.T) {
	const secret = "SuperSecretToken"
	escaped := ""
	for _, c := range secret {
		escaped += fmt.Sprintf(`\u%04x`, c)
	}
	for name, echo := range map[string]string{
		"as it is":          secret,
		"escaped":           escaped,
		"split by nothings": strings.Join(strings.Split(secret, ""), "\u200b"),
		"in the middle":     "the key " + secret + " is known",
	} {
		tool := `{"name":"t","description":"` + echo + `","inputSchema":{"type":"object","properties":{"` + echo + `":{"default":"` + echo + `"}}}}`
		s := probetest.MCP(t, probetest.ToolList(tool))
		r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Headers: []probe.Header{{Name: "X-Api-Key", Value: secret, Secret: true}}})
		if r.Contract == nil {
			t.Fatalf("%s: %s, %+v", name, r.Verdict, r.Failure)
		}
		if shown := visible(string(r.Contract.Tools)); strings.Contains(shown, "SecretToken") || !json.Valid(r.Contract.Tools) {
			t.Errorf("%s: the secret shows in %s", name, shown)
		}
	}
}

func TestBrokenToolsAreNamed(t *testing.T) {
	s := probetest.MCP(t, probetest.ToolList(
		`{"name":"good","inputSchema":{"type":"object"}}`,
		`{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"strin"}}}}`,
		`{"name":"twice","inputSchema":{"type":"object"}}`, `{"name":"twice","inputSchema":{"type":"object"}}`,
		`{"name":"typeless","inputSchema":{"type":"string"}}`,
		`{"name":"outless","inputSchema":{"type":"object"},"outputSchema":null}`,
	))
	r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL})
	want := `4 of 6 tools are invalid: bad has an invalid inputSchema: "strin" at /properties/a/type is not JSON Schema 2020-12; twice comes twice; ` +
		`typeless has no inputSchema of type "object"; outless has an outputSchema that is no schema`
	if r.Verdict != probe.Degraded || r.Failure.Class != probe.ClassSchemaInvalid || r.Failure.Message != want || *r.Facts.Tools != 6 {
		t.Errorf("%s %+v\nwant %s", r.Verdict, r.Failure, want)
	}
	if r.Contract == nil || r.Memory.SoundTools != "" {
		t.Errorf("contract %v, memory %+v", r.Contract, r.Memory)
	}
}

// A list that was found sound is not judged again, until it is another one.
func TestSoundToolsAreRemembered(t *testing.T) {
	sound := typicalTools(3)
	s := probetest.MCP(t, probetest.ToolList(sound...))
	target := probe.Target{Kind: probe.KindMCP, URL: s.URL}
	first := ask(t, target)
	if first.Verdict != probe.Up || !strings.HasSuffix(first.Memory.SoundTools, first.Contract.Hash) {
		t.Fatalf("%s, memory %+v, contract %+v", first.Verdict, first.Memory, first.Contract)
	}
	target.Memory = first.Memory
	if again := ask(t, target); again.Memory.SoundTools != first.Memory.SoundTools || again.Verdict != probe.Up {
		t.Errorf("%s, memory %+v", again.Verdict, again.Memory)
	}
	s.SetFaults(probetest.ToolList(append(slices.Clone(sound), `{"name":"bad","inputSchema":{"type":"object","required":7}}`)...))
	if broken := ask(t, target); broken.Verdict != probe.Degraded || broken.Memory.SoundTools != "" {
		t.Errorf("%s, memory %+v", broken.Verdict, broken.Memory)
	}
	s.SetFaults(probetest.LegacyOnly(), probetest.ToolList(sound...))
	target.Era = ""
	if other := ask(t, target); other.Memory.SoundTools == first.Memory.SoundTools {
		t.Errorf("another version is judged by other rules: memory %+v", other.Memory)
	}
}

func TestWhatIsTooLargeToJudgeIsAWarning(t *testing.T) {
	large := `{"name":"large","description":"` + strings.Repeat("x", 300<<10) + `","inputSchema":{"type":"object","required":7}}`
	s := probetest.MCP(t, probetest.ToolList(large))
	r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL})
	if r.Verdict != probe.Up || warningLine(r.Warnings) != "tools/list schema_invalid" || r.Contract == nil || r.Memory.SoundTools != "" {
		t.Errorf("%s %+v, warnings %+v, memory %+v", r.Verdict, r.Failure, r.Warnings, r.Memory)
	}
	if !bytes.Contains(r.Contract.Tools, []byte(`"large"`)) {
		t.Error("it is not in the contract")
	}
}
