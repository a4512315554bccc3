package probe_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestExpectOfResults(t *testing.T) {
	for name, tc := range map[string]struct {
		expect probe.Expect
		result string
		want   string // part of what is wrong; empty: it holds
	}{
		"nothing expected":           {probe.Expect{}, `null`, ""},
		"a string":                   {probe.Expect{Type: "string"}, `"0x1"`, ""},
		"null is a type":             {probe.Expect{Type: "null"}, `null`, ""},
		"null in place of an object": {probe.Expect{Type: "object"}, `null`, "the result is null: null, expected an object"},
		"a number for a string":      {probe.Expect{Type: "string"}, `17`, "the result is a number: 17, expected a string"},
		"1.0 is an integer":          {probe.Expect{Type: "integer"}, `1.0`, ""},
		"1e2 is an integer":          {probe.Expect{Type: "integer"}, `1e2`, ""},
		"1.5 is none":                {probe.Expect{Type: "integer"}, `1.5`, "expected an integer"},
		"1.5 is a number":            {probe.Expect{Type: "number"}, `1.5`, ""},

		"equal by value":                  {probe.Expect{Equals: raw(`1`)}, `1.0`, ""},
		"whatever the order":              {probe.Expect{Equals: raw(`{"a":1,"b":[null,"x"]}`)}, ` { "b" : [null,"\u0078"], "a":10e-1 } `, ""},
		"another value":                   {probe.Expect{Equals: raw(`{"a":1}`)}, `{"a":2}`, `the result is {"a":2}, expected {"a":1}`},
		"a member more":                   {probe.Expect{Equals: raw(`{"a":1}`)}, `{"a":1,"b":1}`, "expected"},
		"another member":                  {probe.Expect{Equals: raw(`{"a":null}`)}, `{"b":null}`, "expected"},
		"a list in another order":         {probe.Expect{Equals: raw(`[1,2]`)}, `[2,1]`, "expected"},
		"a text is no number":             {probe.Expect{Equals: raw(`1`)}, `"1"`, "expected 1"},
		"null is not false":               {probe.Expect{Equals: raw(`null`)}, `false`, "expected null"},
		"big integers exactly":            {probe.Expect{Equals: raw(`9007199254740993`)}, `9007199254740992`, "expected"},
		"big integers of any spelling":    {probe.Expect{Equals: raw(`123456789012345678901234567890`)}, `1.2345678901234567890123456789e29`, ""},
		"an exponent that fills a memory": {probe.Expect{Equals: raw(`1e999999999`)}, `1e999999998`, "expected"},

		"a regex in a string":     {probe.Expect{Regex: `^0x[0-9a-f]+$`}, `"0x1f"`, ""},
		"a regex that fails":      {probe.Expect{Regex: `^0x`}, `"17"`, "the result is \"17\", which does not match ^0x"},
		"a regex sees characters": {probe.Expect{Regex: `^é$`}, `"\u00e9"`, ""},
		"a regex in an object":    {probe.Expect{Regex: `"ok": ?true`}, `{"ok":true}`, ""},

		"at least":                 {probe.Expect{Min: raw(`10`)}, `10`, ""},
		"less":                     {probe.Expect{Min: raw(`10`)}, `9.99`, "the result is 9.99, expected at least 10"},
		"more":                     {probe.Expect{Max: raw(`"0x10"`)}, `"0x11"`, `the result is "0x11", expected at most "0x10"`},
		"hex against decimal":      {probe.Expect{Min: raw(`255`), Max: raw(`"255"`)}, `"0xFF"`, ""},
		"a decimal string":         {probe.Expect{Min: raw(`20000000`)}, `"20831387"`, ""},
		"beyond 64 bits":           {probe.Expect{Min: raw(`18446744073709551617`)}, `"0x10000000000000000"`, "expected at least"},
		"negative":                 {probe.Expect{Min: raw(`-2`), Max: raw(`-1`)}, `-1.5`, ""},
		"below negative":           {probe.Expect{Min: raw(`-2`)}, `-3`, "expected at least -2"},
		"an enormous exponent":     {probe.Expect{Max: raw(`1e400000000`)}, `1e400000001`, "expected at most"},
		"an exponent beyond int64": {probe.Expect{Max: raw(`1`)}, `1e99999999999999999999`, "expected a number"},
		"no number":                {probe.Expect{Max: raw(`1`)}, `{}`, "the result is {}, expected a number"},
		"no hex number":            {probe.Expect{Max: raw(`1`)}, `"0x-1"`, "expected a number"},

		"a path":                      {probe.Expect{Path: "$.sync.height", Min: raw(`5`)}, `{"sync":{"height":"6"}}`, ""},
		"a path alone":                {probe.Expect{Path: "$.a"}, `{"a":null}`, ""},
		"nothing at a path":           {probe.Expect{Path: "$.a.b"}, `{"a":{"B":1}}`, `nothing at $.a.b in {"a":{"B":1}}`},
		"a path below a number":       {probe.Expect{Path: "$.a"}, `7`, "nothing at $.a in 7"},
		"what is at a path is named":  {probe.Expect{Path: "$.a", Equals: raw(`1`)}, `{"a":2}`, "$.a is 2, expected 1"},
		"every value must hold":       {probe.Expect{Path: "$[*].ok", Equals: raw(`true`)}, `[{"ok":true},{"ok":false}]`, "$[*].ok (value 2 of 2) is false"},
		"every value holds":           {probe.Expect{Path: "$..ok", Equals: raw(`true`)}, `[{"ok":true},{"x":{"ok":true}}]`, ""},
		"big integers at a path":      {probe.Expect{Path: "$.n", Equals: raw(`9007199254740993`)}, `{"n":9007199254740993}`, ""},
		"a filter":                    {probe.Expect{Path: `$.peers[?@.height > 5 && @.up == true].id`, Type: "string"}, `{"peers":[{"height":6,"up":true,"id":"x"},{"height":1,"id":1}]}`, ""},
		"a filter that compares":      {probe.Expect{Path: `$.list[?@.id == $.current].ok`, Equals: raw(`true`)}, `{"current":2,"list":[{"id":1,"ok":false},{"id":2,"ok":true}]}`, ""},
		"match of what is not there":  {probe.Expect{Path: `$[?match(@.name, "a.*")].v`, Equals: raw(`1`)}, `[{"v":2},{"name":"abc","v":1},{"name":7}]`, ""},
		"members come in their order": {probe.Expect{Path: "$.*", Max: raw(`1`)}, `{"b":2,"a":1,"c":3}`, "$.* (value 2 of 3) is 2"},

		"CEL":                        {probe.Expect{CEL: `result.peers > 3 && latency < duration("1s") && status == 200`}, `{"peers":4}`, ""},
		"CEL that is false":          {probe.Expect{CEL: `result.peers > 3`}, `{"peers":3}`, `result.peers > 3 is false; the result is {"peers":3}`},
		"CEL on a missing member":    {probe.Expect{CEL: `result.peers > 3`}, `{}`, "result.peers > 3 cannot be evaluated: no such key: peers"},
		"CEL on latency":             {probe.Expect{CEL: `latency < duration("20ms")`}, `1`, "is false"},
		"CEL has exact integers":     {probe.Expect{CEL: `result == 9007199254740993`}, `9007199254740993`, ""},
		"CEL has doubles":            {probe.Expect{CEL: `result > 1.4 && result < 2`}, `1.5`, ""},
		"CEL compares across types":  {probe.Expect{CEL: `result == 1`}, `1.0`, ""},
		"CEL beyond 64 bits":         {probe.Expect{CEL: `result > 1e18`}, `123456789012345678901234567890`, ""},
		"CEL that is no boolean":     {probe.Expect{CEL: `result`}, `1`, "neither true nor false"},
		"CEL over lists":             {probe.Expect{CEL: `result.exists(x, x.name == "a") && size(result) == 2`}, `[{"name":"b"},{"name":"a"}]`, ""},
		"no error beside a result":   {probe.Expect{CEL: `error == null`}, `1`, ""},
		"CEL and a path":             {probe.Expect{CEL: `status == 200`, Path: "$.a", Type: "string"}, `{"a":1}`, "$.a is a number"},
		"CEL that would use up time": {probe.Expect{CEL: `result.all(a, result.all(b, result.all(c, a+b+c >= 0)))`}, "[" + strings.Repeat("0,", 2000) + "0]", "cannot be evaluated: operation "},

		"a path that would use up time":     {probe.Expect{Path: "$..*..*..*"}, strings.Repeat("[", 900) + strings.Repeat("]", 900), "too many steps"},
		"a filter that would use up time":   {probe.Expect{Path: "$[?count($..*) > 0]"}, "[" + strings.Repeat("0,", 9000) + "0]", "too many steps"},
		"selectors that would use up time":  {probe.Expect{Path: "$" + strings.Repeat("[*,*]", 100)}, strings.Repeat("[", 200) + strings.Repeat("]", 200), "too many steps"},
		"a regex that would use up time":    {probe.Expect{Regex: `(x{100}){10}y`}, `"` + strings.Repeat("x", 1<<20) + `"`, "too large to be searched"},
		"a result too large to be taken in": {probe.Expect{Path: "$.a"}, `"` + strings.Repeat("x", 2<<20) + `"`, "too large to be looked into"},
		"large, and only its type matters":  {probe.Expect{Type: "string"}, `"` + strings.Repeat("x", 2<<20) + `"`, ""},
	} {
		got := tc.expect.CheckResult(tc.result, 30*time.Millisecond, 200)
		if got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if len(got) > probe.MaxMessage {
			t.Errorf("%s: a message of %d bytes", name, len(got))
		}
	}
}

func TestExpectOfErrors(t *testing.T) {
	for _, tc := range []struct {
		cel   string
		takes bool
		want  string
	}{
		{`error.code == -32001`, true, ""},
		{`error.code == -32002`, true, "error.code == -32002 is false; the error is -32001 Task not found"},
		{`error.code == -32001 && error.data.id == "x" && result == null`, true, ""},
		{`error.message.contains("not found")`, true, ""},
		{`error == null`, true, "is false"},
		{`error != null && error.code == -32001`, true, ""},
		{`status == 0`, false, ""},
	} {
		e := probe.Expect{CEL: tc.cel}
		if got := e.TakesErrors(); got != tc.takes {
			t.Errorf("%s takes errors: %v", tc.cel, got)
		}
		if got := e.CheckError(-32001, "Task not found", `{"id":"x"}`); got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %q, want %q", tc.cel, got, tc.want)
		}
	}
	if got := (probe.Expect{CEL: "error.code == 1", Type: "string"}).CheckError(1, "x", ""); !strings.Contains(got, "in place of a result") {
		t.Errorf("a type expected of an error: %q", got)
	}
}

func TestExpectProblems(t *testing.T) {
	problem := func(field, message string) probe.Problem {
		return probe.Problem{Field: "expect." + field, Message: message}
	}
	for name, tc := range map[string]struct {
		expect probe.Expect
		want   []probe.Problem
	}{
		"all is well": {probe.Expect{Path: "$.a[0]", Type: "integer", Equals: raw(`1`), Regex: "^1", Min: raw(`"0x1"`), Max: raw(`1`), CEL: "result.a[0] == 1"}, nil},
		"every mistake at once": {
			probe.Expect{Path: "a.b", Type: "int", Equals: raw(`{`), Regex: "(", Min: raw(`"low"`), Max: raw(`{}`), CEL: "resul == 1"},
			[]probe.Problem{
				problem("path", "is not a JSONPath (RFC 9535) that can be used: unexpected identifier at position 1"),
				problem("type", `unknown type "int": use one of null, boolean, integer, number, string, array, object`),
				problem("equals", "is not JSON"),
				problem("regex", "cannot be read as RE2: missing closing ): `(`"),
				problem("min", `must be a number, or a string that holds one like "0x1f" or "12"`),
				problem("max", `must be a number, or a string that holds one like "0x1f" or "12"`),
				problem("cel", "line 1, column 1: undeclared reference to 'resul' (did you mean 'result'?)"),
			},
		},
		"a range upside down":    {probe.Expect{Min: raw(`2`), Max: raw(`"0x1"`)}, []probe.Problem{problem("max", "is less than min")}},
		"CEL that is no boolean": {probe.Expect{CEL: "status + 1"}, []probe.Problem{problem("cel", "must be true or false, but is of type int")}},
		"CEL that does not parse": {probe.Expect{CEL: "result ==\n  )"}, []probe.Problem{
			problem("cel", "line 2, column 3: Syntax error: mismatched input ')'")}},
		"a regex from the answer": {probe.Expect{Path: "$[?match(@.a, @.b)]"}, []probe.Problem{
			problem("path", "is not a JSONPath (RFC 9535) that can be used: match() and search() take a regex written as a literal only")}},
		"too large": {
			probe.Expect{Path: strings.Repeat("x", 2000), Equals: raw(strings.Repeat(" ", 70_000)), Regex: strings.Repeat("x", 2000), CEL: strings.Repeat("x", 5000)},
			[]probe.Problem{
				problem("path", "is larger than 1024 bytes"), problem("equals", "is larger than 65536 bytes"),
				problem("regex", "is larger than 1024 bytes"), problem("cel", "is larger than 4096 bytes"),
			},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.expect.Problems()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Whatever is expected and whatever comes, the answer is one line that fits a message, and it comes soon.
func FuzzExpect(f *testing.F) {
	for _, seed := range []probe.Expect{
		{Path: "$..a[?@.b == 1]", Type: "integer", CEL: "result.all(x, x > 1)"},
		{Path: "$[?match(@.a, 'x')]", Equals: raw(`[1e2]`), Regex: "a|b"},
		{Min: raw(`"0x1"`), Max: raw(`1e5`), CEL: "error.code == 1"},
	} {
		f.Add(seed.Path, seed.Type, string(seed.Equals), seed.Regex, string(seed.Min), string(seed.Max), seed.CEL, `{"a":[1,"0x2",{"b":null}]}`)
	}
	f.Fuzz(func(t *testing.T, path, kind, equals, regex, low, high, cel, result string) {
		if !json.Valid([]byte(result)) {
			return // check is only ever given what was found to be JSON
		}
		e := probe.Expect{Path: path, Type: kind, Equals: raw(equals), Regex: regex, Min: raw(low), Max: raw(high), CEL: cel}
		if e.Problems() != nil {
			return
		}
		begin := time.Now()
		wrong := e.CheckResult(result, time.Second, 200) + e.CheckError(1, "x", result)
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("took %s", took)
		}
		if len(wrong) > 4*probe.MaxMessage {
			t.Errorf("%d bytes: %s", len(wrong), wrong)
		}
	})
}

func BenchmarkExpectCEL(b *testing.B) {
	e := probe.Expect{CEL: `result.peers > 3 && latency < duration("1s")`}
	for b.Loop() {
		if got := e.CheckResult(`{"peers":4}`, time.Millisecond, 200); got != "" {
			b.Fatal(got)
		}
	}
}

// A compiled expression is kept because of this.
func BenchmarkExpectCELCompile(b *testing.B) {
	n := 0
	for b.Loop() {
		n++
		e := probe.Expect{CEL: fmt.Sprintf(`result.peers > %d && latency < duration("1s")`, n)}
		if problems := e.Problems(); problems != nil {
			b.Fatal(problems)
		}
	}
}
