package probe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
)

// The samples are those of RFC 8785: §3.2.2, §3.2.3 and appendix B.
func TestCanonicalJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`: `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		`{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
  "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}`: "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\"," +
			"\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		` { } `:                   `{}`,
		"[ ]\n":                   `[]`,
		` -0 `:                    `0`,
		`"\ud83d"`:                `"\ud83d"`, // half of a pair stays what it is
		`"\ude00\ud83d"`:          `"\ude00\ud83d"`,
		`{"\udc00":1,"\uffff":2}`: "{\"\\udc00\":1,\"\uffff\":2}",
		`{"b":{"d":1,"c":[{"z":0,"y":1}]},"a":2}`: `{"a":2,"b":{"c":[{"y":1,"z":0}],"d":1}}`,
		`"\b\f\t\n\r\u001f\u007f/"`:               "\"\\b\\f\\t\\n\\r\\u001f\u007f/\"",
		`1e400`:                                   `1e+9999`, // which no double can hold
		`-1e400`:                                  `-1e+9999`,
		`1e-400`:                                  `0`,
	} {
		got, repeated, err := probe.CanonicalJSON([]byte(in))
		if err != nil || repeated != "" || string(got) != want {
			t.Errorf("%s\n got %s %s %v\nwant %s", in, got, repeated, err, want)
		}
	}
}

func TestCanonicalNumbers(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x8000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		literal := strconv.FormatFloat(math.Float64frombits(bits), 'e', 25, 64)
		if got := probe.CanonicalNumber(literal); got != want {
			t.Errorf("%016x: got %s, want %s", bits, got, want)
		}
	}
}

func TestWhatHasNoCanonicalForm(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for in, fine := range map[string]bool{
		deep(100):          true,
		deep(102):          false,
		``:                 false,
		`{"a":1`:           false,
		`{"a":1} {}`:       false,
		`[1,]`:             false,
		"\"\xff\"":         false,
		"\"\xed\xa0\x80\"": false, // a surrogate that is not escaped
	} {
		if _, _, err := probe.CanonicalJSON([]byte(in)); (err == nil) != fine {
			t.Errorf("%.40q: error %v", in, err)
		}
	}
}

// Readers differ in which of the two they take: both are kept, and it is said.
func TestAMemberThatComesTwiceIsKeptAndNamed(t *testing.T) {
	got, repeated, err := probe.CanonicalJSON([]byte(`{"b":1,"a":2,"b":0}`))
	if want := `{"a":2,"b":1,"b":0}`; err != nil || string(got) != want || repeated != `"b"` {
		t.Errorf("got %s, repeated %s, %v; want %s", got, repeated, err, want)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`{"b":1,"a":[1e3,-0,0.1e-9,"\ud83d\ude00\ud83d"]}`, `{"a":{"a":1,"a":2},"":null}`, `[[[[]]]]`, `1e999`, `"\u0000"`, "{\"\uffff\":1,\"😀\":2}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, repeated, err := probe.CanonicalJSON(raw)
		if err != nil {
			return
		}
		twice, again, err := probe.CanonicalJSON(once)
		if err != nil || !bytes.Equal(once, twice) || repeated != again {
			t.Fatalf("%q becomes %q, and that %q (%v)", raw, once, twice, err)
		}
		if before, after := meaning(t, raw), meaning(t, once); !reflect.DeepEqual(before, after) {
			t.Fatalf("%q means %v, its form %q means %v", raw, before, once, after)
		}
	})
}

// meaning decodes JSON as far as its meaning goes: numbers as doubles.
func meaning(t *testing.T, raw []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return numbers(v)
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if f == 0 {
			f = 0 // without its sign
		}
		return fmt.Sprint(f, err != nil)
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = numbers(v[name])
		}
	}
	return v
}

// BenchmarkCanonicalJSON measures the form of a typical tool: what each tool costs each check.
func BenchmarkCanonicalJSON(b *testing.B) {
	tool := []byte(typicalTools(1)[0])
	b.SetBytes(int64(len(tool)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := probe.CanonicalJSON(tool); err != nil {
			b.Fatal(err)
		}
	}
}
