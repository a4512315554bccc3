package probe_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

func TestExtract(t *testing.T) {
	at := func(s string) time.Time {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			panic(err)
		}
		return t
	}
	header := `"0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c"`
	for _, tc := range []struct {
		spec, raw string
		want      probe.Extracted
	}{
		{":hex", `"0x1a"`, probe.Extracted{Number: "26"}},
		{":hex", `"0x0"`, probe.Extracted{Number: "0"}},
		{":hex", `"0x01"`, probe.Extracted{Problem: `not a hex number without leading zeros: "0x01"`}},
		{":hex", `26`, probe.Extracted{Problem: "not a hex number: 26"}},
		{":hex", `null`, probe.Extracted{Problem: "not a hex number: null"}},
		{":hex", `"0xc72dd9d5e883ec72dd9d5e883e"`, probe.Extracted{Number: "15780594512836631659283444828222"}},
		{":hexish", `"0x001a"`, probe.Extracted{Number: "26"}},
		{":hexish", `"1a"`, probe.Extracted{Number: "26"}},
		{":int", `9007199254740993`, probe.Extracted{Number: "9007199254740993"}},
		{":int", `1e3`, probe.Extracted{Problem: "not an integer: 1e3"}},
		{":int", `7.0`, probe.Extracted{Problem: "not an integer: 7.0"}},
		{":int", `"7"`, probe.Extracted{Problem: `not an integer: "7"`}},
		{":decimal", `"12345678901234567890123"`, probe.Extracted{Number: "12345678901234567890123"}},
		{":decimal", `7`, probe.Extracted{Problem: "not a decimal number in a string: 7"}},
		{":decimal", `""`, probe.Extracted{Problem: `not a decimal number in a string: ""`}},
		{":number", `"0x1a"`, probe.Extracted{Number: "26"}},
		{":number", `"26"`, probe.Extracted{Number: "26"}},
		{":number", `26`, probe.Extracted{Number: "26"}},
		{":origin", `"origin"`, probe.Extracted{Number: "0"}},
		{":origin", `"other"`, probe.Extracted{Problem: `not an integer or "origin": "other"`}},
		{"a.b:int", `{"a":{"b":7}}`, probe.Extracted{Number: "7"}},
		{"a.b:int", `{"A":{"b":7}}`, probe.Extracted{Problem: "missing: no a.b"}},
		{"a.b:int", `{"a":{"b":null}}`, probe.Extracted{Problem: "missing: no a.b"}},
		{"a.b:int", `{"a":[7]}`, probe.Extracted{Problem: "missing: no a.b"}},
		{"a.1.b:int", `{"a":[{},{"b":7}]}`, probe.Extracted{Number: "7"}},
		{"a.1.b:int", `{"a":[{}]}`, probe.Extracted{Problem: "missing: no a.1.b"}},
		{"a|b:int", `{"b":7}`, probe.Extracted{Number: "7"}},
		{"Cids.0./:text", `{"Cids":[{"/":"bafy"}]}`, probe.Extracted{Text: "bafy"}},
		{":text", `"a"`, probe.Extracted{Text: "a"}},
		{":text", `7`, probe.Extracted{Problem: "not text: 7"}},
		{":hex-s", `"0x65f00000"`, probe.Extracted{Time: time.Unix(0x65f00000, 0)}},
		{":s", `1710000000`, probe.Extracted{Time: at("2024-03-09T16:00:00Z")}},
		{":s", `"1710000000"`, probe.Extracted{Time: at("2024-03-09T16:00:00Z")}},
		{":s", `10`, probe.Extracted{}},
		{":s", `99999999999999999999`, probe.Extracted{Problem: "not a time: 99999999999999999999"}},
		{":ms", `1710000000123`, probe.Extracted{Time: at("2024-03-09T16:00:00.123Z")}},
		{":us", `"1710000000123456"`, probe.Extracted{Time: at("2024-03-09T16:00:00.123456Z")}},
		{":ns", `1710000000123456789`, probe.Extracted{Time: at("2024-03-09T16:00:00.123456789Z")}},
		{":rfc3339", `"2024-03-09T16:00:00.123456789Z"`, probe.Extracted{Time: at("2024-03-09T16:00:00.123456789Z")}},
		{":rfc3339", `"yesterday"`, probe.Extracted{Problem: `not a time: "yesterday"`}},
		{":ripple", `763315200`, probe.Extracted{Time: at("2024-03-09T16:00:00Z")}},
		{":header-hash", header, probe.Extracted{Text: bitcoinGenesis}},
		{":header-parent", header, probe.Extracted{Text: strings.Repeat("0", 64)}},
		{":header-time", header, probe.Extracted{Time: at("2009-01-03T18:15:05Z")}},
		{":header-hash", `"00"`, probe.Extracted{Problem: `not a block header: "00"`}},
		{":bool", `true`, probe.Extracted{}},
		{":bool", `1`, probe.Extracted{Problem: "not true or false: 1"}},
		{":object", `{}`, probe.Extracted{}},
		{":object", `[]`, probe.Extracted{Problem: "not an object: []"}},
		{"a", `{}`, probe.Extracted{Problem: `"a" has no known encoding`}},
		{"a:roman", `{}`, probe.Extracted{Problem: `"a:roman" has no known encoding`}},
	} {
		got := probe.Extract(tc.spec, []byte(tc.raw))
		if got.Number != tc.want.Number || got.Text != tc.want.Text || got.Problem != tc.want.Problem || !got.Time.Equal(tc.want.Time) {
			t.Errorf("%s in %s: %+v, want %+v", tc.spec, tc.raw, got, tc.want)
		}
	}
}

// FuzzExtract reads what presets want to know from anything that is JSON, as answers are by the time they are read.
func FuzzExtract(f *testing.F) {
	for _, seed := range []string{
		`"0x1a"`, `26`, `"origin"`, `null`, `[]`, `false`, `"ok"`,
		`{"number":"0x1","hash":"0x2","parentHash":"0x3","timestamp":"0x65f00000"}`,
		`{"blocks":1,"headers":2,"time":1710000000,"initialblockdownload":true}`,
		`{"sync_info":{"latest_block_height":"1","latest_block_time":"2024-03-09T16:00:00Z","catching_up":true},"node_info":{"network":"x"}}`,
		`{"currentBlock":"0x1","highestBlock":"0x2"}`,
		`{"Cids":[{"/":"b"}],"Blocks":[{"Timestamp":1}],"Height":1}`,
		`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"x","result":{"number":"0x1"}}}`,
		`{"result":{"status":"error","error":"tooBusy","error_code":9}}`,
		`{"ok":true,"result":{"last":{"seqno":1}}}`,
		`{"code":-32005,"message":"behind","data":{"numSlotsBehind":1e400}}`,
		`{"height":1,"hex":"` + strings.Repeat("00", 80) + `"}`,
		`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		begun := time.Now()
		first := probe.ExtractAll(raw)
		if second := probe.ExtractAll(raw); first != second {
			t.Errorf("%q: found %d values, then %d", raw, first, second)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%d bytes took %v", len(raw), took)
		}
	})
}
