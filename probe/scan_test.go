package probe_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

var jsonSeeds = []string{
	`{"jsonrpc":"2.0","id":"a","result":{"a":[1,2,{}],"b":[]}}`, ` [ ] `, `{ }`, `[[],{},[{}]]`, `{"a":{"b":{}}, "c" : [ ]}`,
	`0`, `-0`, `-1.5e+10`, `1E400`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `NaN`, `0x1`,
	`"a\u00e9\n\"\\\/"`, `"\u12g4"`, `"\x"`, "\"\n\"", "\"\x7f\"", `"`, `"\`, `"\u12`,
	`true`, `tru`, `nulll`, `null`, `false`, `{`, `[`, `}`, `]`, `{]`, `[}`, `[1,]`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{1:1}`, `[1 2]`,
	`{"a":1}{}`, "\v1", "\ufeff1", `{"\u0069d":1}`, `{"a":1 "b":2}`, `[1}`, `{"a":[1}]`, ``, ` `,
	strings.Repeat("[", 9_999) + "{}" + strings.Repeat("]", 9_999),
	strings.Repeat("[", 10_000) + "{}" + strings.Repeat("]", 10_000),
	strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000),
	strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001),
}

func TestScan(t *testing.T) {
	for _, in := range jsonSeeds {
		if got, want := probe.ValidJSON([]byte(in)), json.Valid([]byte(in)); got != want {
			t.Errorf("%.60q: valid %v, want %v", in, got, want)
		}
		sameMembers(t, []byte(in))
	}
	if probe.ValidJSON([]byte("\"\xff\"")) {
		t.Error("a string that is not UTF-8 is valid")
	}
}

// The scanner and encoding/json agree on what JSON is, and on what is in an object.
func FuzzScan(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if got, want := probe.ValidJSON(in), json.Valid(in) && utf8.Valid(in); got != want {
			t.Errorf("%q: valid %v, want %v", in, got, want)
		}
		sameMembers(t, in)
	})
}

// sameMembers compares what is read of an object or array with what encoding/json's tokens say.
func sameMembers(t *testing.T, in []byte) {
	t.Helper()
	if !utf8.Valid(in) {
		return
	}
	members, ok := probe.ReadObject(in)
	trimmed := bytes.TrimLeft(in, " \t\r\n")
	if want := json.Valid(in) && bytes.HasPrefix(trimmed, []byte("{")); ok != want && len(members) < 20_000 {
		t.Fatalf("%.100q is an object: %v, want %v", in, ok, want)
	}
	var got, want []string
	switch {
	case ok:
		got, want = members, decoded(in, true)
	case json.Valid(in) && bytes.HasPrefix(trimmed, []byte("[")):
		got, _ = probe.ReadItems(in, len(in))
		want = decoded(in, false)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%.100q (-want +got):\n%s", in, diff)
	}
}

// decoded takes a valid object or array apart by encoding/json.
func decoded(in []byte, names bool) (parts []string) {
	decoder := json.NewDecoder(bytes.NewReader(in))
	_, _ = decoder.Token()
	for decoder.More() {
		if names {
			name, _ := decoder.Token()
			parts = append(parts, name.(string))
		}
		var value json.RawMessage
		_ = decoder.Decode(&value)
		parts = append(parts, string(value))
	}
	return parts
}

func BenchmarkEnvelope(b *testing.B) {
	tool := `{"name":"search","description":"finds what you look for \"here\"","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}}}`
	message := []byte(`{"jsonrpc":"2.0","id":"a","result":{"tools":[` + strings.TrimSuffix(strings.Repeat(tool+",", 1000), ",") + `]}}`)
	b.SetBytes(int64(len(message)))
	b.ReportAllocs()
	for b.Loop() {
		if _, class, words := probe.ReadEnvelope(message, true); class != "" {
			b.Fatal(words)
		}
	}
}
