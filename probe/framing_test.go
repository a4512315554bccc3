package probe_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rollcallhq/rollcall/probe"
)

func TestSplitter(t *testing.T) {
	type frames = probe.Frames
	of := func(messages ...string) []string { return messages }
	const limit = 200
	for name, tc := range map[string]struct {
		in      string
		lenient bool
		want    frames
	}{
		"nothing":                       {"", false, frames{End: "EOF"}},
		"blank lines only":              {"\n\r\n \t\n", false, frames{End: "EOF"}},
		"one per line":                  {"{\"a\":1}\n{\"b\":2}\n", false, frames{Messages: of(`{"a":1}`, `{"b":2}`), End: "EOF"}},
		"carriage returns, blank lines": {"\r\n{}\r\n\r\n{}", false, frames{Messages: of("{}", "{}"), End: "EOF"}},
		"concatenated":                  {`{"a":{}}{"b":[{}]}[{"c":1},{"d":2}]{}`, false, frames{Messages: of(`{"a":{}}`, `{"b":[{}]}`, `[{"c":1},{"d":2}]`, "{}"), End: "EOF"}},
		"brackets in strings":           {`{"a":"}\"]{"}{"b\\":"\\"}`, false, frames{Messages: of(`{"a":"}\"]{"}`, `{"b\\":"\\"}`), End: "EOF"}},
		"over several lines":            {"{\n  \"a\": [1,\n 2]\n}\n{}", false, frames{Messages: of("{\n  \"a\": [1,\n 2]\n}", "{}"), End: "EOF"}},
		"scalars":                       {`{"a":-1.5e+3,"b":true,"c":null}`, false, frames{Messages: of(`{"a":-1.5e+3,"b":true,"c":null}`), End: "EOF"}},
		"an empty array":                {"[ ]", false, frames{Messages: of("[ ]"), End: "EOF"}},
		"a byte order mark":             {"\xEF\xBB\xBF{}\n", false, frames{Messages: of("{}"), Oddities: of("a byte order mark before a message"), End: "EOF"}},
		"cut in the middle":             {`{}{"a":`, false, frames{Messages: of("{}"), End: "unexpected EOF"}},
		"cut in a string":               {`{"a":"b`, false, frames{End: "unexpected EOF"}},
		"too large":                     {`{"a":"` + strings.Repeat("x", limit) + `"}`, false, frames{End: "too large"}},
		"as large as may be":            {`{"a":"` + strings.Repeat("x", limit-8) + `"}`, false, frames{Messages: of(`{"a":"` + strings.Repeat("x", limit-8) + `"}`), End: "EOF"}},
		"a greeting":                    {"SSH-2.0-x\r\n{}", false, frames{End: "garbage", Message: "SSH-2.0-x\r\n{}"}},
		"an HTTP server":                {"HTTP/1.1 400 Bad Request\r\n", false, frames{End: "garbage", Message: "HTTP/1.1 400 Bad Request\r\n"}},
		"garbage behind a message":      {`{} oops`, false, frames{Messages: of("{}"), End: "garbage", Message: "oops"}},
		"brackets that do not match":    {`{"a":[1}`, false, frames{End: "garbage", Message: `{"a":[1}`}},
		"no colon":                      {`{"a" 1}`, false, frames{End: "garbage", Message: `{"a" 1}`}},
		"a comma at the end":            {`{"a":1,}`, false, frames{End: "garbage", Message: `{"a":1,}`}},
		"two values":                    {`{"a":1 2}`, false, frames{End: "garbage", Message: `{"a":1 2}`}},
		"a line feed in a string":       {"{\"a\":\"b\n\"}", false, frames{End: "garbage", Message: "{\"a\":\"b\n\"}"}},
		"an array of numbers":           {`[1,2]`, false, frames{End: "garbage", Message: `[1,2]`}},
		"a number":                      {`17`, false, frames{End: "garbage", Message: `17`}},
		"a bare string":                 {`"hi"`, false, frames{End: "garbage", Message: `"hi"`}},

		"lines of a log":            {"Server running\n[INFO] [1] {} ready\n{\"jsonrpc\":1}\nbye", true, frames{Messages: of(`{"jsonrpc":1}`), Pollution: 3, First: "Server running", End: "EOF"}},
		"a log in JSON":             {"{\"level\":30,\"msg\":\"up\"}\n{\"result\":1}\n", true, frames{Messages: of(`{"result":1}`), Pollution: 1, First: `{"level":30,"msg":"up"}`, End: "EOF"}},
		"an object of JavaScript":   {"{\n  name: 'x',\n  list: [ 1 ]\n}\n{\"result\":1}\n", true, frames{Messages: of(`{"result":1}`), Pollution: 4, First: "{", End: "EOF"}},
		"a bracket, then a message": {"{\n{\"result\":1}\n", true, frames{Messages: of(`{"result":1}`), Pollution: 1, First: "{", End: "EOF"}},
		"a date in brackets":        {"[2026-11-21 10:00:00] up\n{\"result\":1}\n", true, frames{Messages: of(`{"result":1}`), Pollution: 1, First: "[2026-11-21 10:00:00] up", End: "EOF"}},
		"behind the message":        {"{\"result\":1} done\n{\"result\":2}\n", true, frames{Messages: of(`{"result":1}`, `{"result":2}`), Pollution: 1, First: "done", End: "EOF"}},
		"a message over lines":      {"{\n\"result\":1}\n", true, frames{Messages: of("{\n\"result\":1}"), Oddities: of("a message spans several lines"), End: "EOF"}},
		"nothing but noise":         {strings.Repeat("noise noise noise\n", 70_000), true, frames{Pollution: 61681, First: "noise noise noise", End: "framing", Message: "more than 1048576 bytes that are no messages, beginning with: noise noise noise"}},
		"one endless line":          {strings.Repeat("x", 2<<20), true, frames{Pollution: 1, First: strings.Repeat("x", 120), End: "framing", Message: "more than 1048576 bytes that are no messages, beginning with: " + strings.Repeat("x", 120)}},
		"false beginnings":          {strings.Repeat("{\"a\":\n", 100_000), true, frames{End: "too large"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := probe.ReadFrames(strings.NewReader(tc.in), probe.FramingLine, limit, tc.lenient)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Lines that begin a message each and never end one make nobody read them over and over.
func TestFalseBeginningsEnd(t *testing.T) {
	in := strings.Repeat(strings.Repeat("{\"a\":\n", 9_000)+"x\n", 100)
	got := probe.ReadFrames(strings.NewReader(in), probe.FramingLine, 8<<20, true)
	if got.End != "framing" {
		t.Errorf("ended with %s %s", got.End, got.Message)
	}
}

func TestHeaderFraming(t *testing.T) {
	type frames = probe.Frames
	of := func(messages ...string) []string { return messages }
	for name, tc := range map[string]struct {
		in      string
		lenient bool
		want    frames
	}{
		"nothing":                 {"", false, frames{End: "EOF"}},
		"two messages":            {"Content-Length: 2\r\n\r\n{}Content-Length: 7\r\n\r\n{\"a\":1}", false, frames{Messages: of("{}", `{"a":1}`), End: "EOF"}},
		"a type before":           {"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}", false, frames{Messages: of("{}"), End: "EOF"}},
		"a type behind":           {"content-length:2\r\ncontent-type: x\r\n\r\n{}", false, frames{Messages: of("{}"), End: "EOF"}},
		"bare line feeds":         {"Content-Length: 2\n\n{}", false, frames{Messages: of("{}"), Oddities: of("header lines end with a line feed alone"), End: "EOF"}},
		"a line feed too many":    {"Content-Length: 2\r\n\r\n{}\r\nContent-Length: 2\r\n\r\n{}", false, frames{Messages: of("{}", "{}"), Oddities: of("an empty line before a header"), End: "EOF"}},
		"the same length twice":   {"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", false, frames{Messages: of("{}"), End: "EOF"}},
		"an empty message":        {"Content-Length: 0\r\n\r\n", false, frames{Messages: of(""), End: "EOF"}},
		"two lengths":             {"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", false, frames{End: "framing", Message: "a header with two lengths, 2 and 3"}},
		"a negative length":       {"Content-Length: -5\r\n\r\n{}", false, frames{End: "framing", Message: "Content-Length is no length: -5"}},
		"no number":               {"Content-Length: many\r\n\r\n{}", false, frames{End: "framing", Message: "Content-Length is no length: many"}},
		"an endless number":       {"Content-Length: 99999999999999999999\r\n\r\n{}", false, frames{End: "framing", Message: "Content-Length is no length: 99999999999999999999"}},
		"larger than the limit":   {"Content-Length: 101\r\n\r\n{}", false, frames{End: "too large"}},
		"no length":               {"Content-Type: x\r\n\r\n{}", false, frames{End: "framing", Message: "a header without Content-Length"}},
		"no header":               {"{\"a\":1}\n", false, frames{End: "framing", Message: `a message without a header: its framing may be "line"`}},
		"a header without end":    {strings.Repeat("X: y\r\n", 3000), false, frames{End: "framing", Message: "a header of more than 8192 bytes"}},
		"a line without end":      {"X: " + strings.Repeat("y", 9000), false, frames{End: "framing", Message: "a header of more than 8192 bytes"}},
		"shorter than announced":  {"Content-Length: 20\r\n\r\n{}", false, frames{End: "unexpected EOF"}},
		"cut in the header":       {"Content-Length: 20\r\n", false, frames{End: "unexpected EOF"}},
		"an HTTP server":          {"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", false, frames{End: "garbage", Message: "HTTP/1.1 400 Bad Request"}},
		"a greeting without end":  {"hello", false, frames{End: "garbage", Message: "hello"}},
		"lines of a log":          {"starting up\nContent-Length: 2\r\n\r\n{}bye", true, frames{Messages: of("{}"), Pollution: 2, First: "starting up", End: "EOF"}},
		"a log like a header":     {"INFO: starting up\n\nContent-Length: 2\r\n\r\n{}", true, frames{Messages: of("{}"), Pollution: 1, First: "an empty line behind what is no header", End: "EOF"}},
		"a log before the header": {"INFO: starting up\nContent-Length: 2\r\n\r\n{}", true, frames{Messages: of("{}"), End: "EOF"}},
		"a long log":              {strings.Repeat("starting up\n", 5000) + "Content-Length: 2\r\n\r\n{}", true, frames{Messages: of("{}"), Pollution: 5000, First: "starting up", End: "EOF"}},
		"nothing but noise":       {strings.Repeat("noise\n", 300_000), true, frames{Pollution: 174763, First: "noise", End: "framing", Message: "more than 1048576 bytes that are no messages, beginning with: noise"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := probe.ReadFrames(strings.NewReader(tc.in), probe.FramingHeader, 100, tc.lenient)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// FuzzSplitter holds that messages do not depend on the pieces in which they come, that none is larger than the limit,
// and that whatever JSON of ours is sent is found again.
func FuzzSplitter(f *testing.F) {
	for _, seed := range []string{
		"{}", "{\"a\":1}\n{\"b\":[{}]}", "[{}]{}", "oops\n{\"result\":1}", "{\n{\"result\":1}", "HTTP/1.1 400", "HTT", "{\"a\":\"\\\"}", "\xEF\xBB\xBF{}", "[INFO] x\n", "{\"a\":\n{\"a\":\nx",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) { sameInPieces(t, in, probe.FramingLine) })
}

// FuzzHeaderFraming holds the same for messages with a header.
func FuzzHeaderFraming(f *testing.F) {
	for _, seed := range []string{
		"Content-Length: 2\r\n\r\n{}", "Content-Length: 2\n\n{}Content-Length:0\r\n\r\n", "X: y\r\n\r\n", "log\nContent-Length: 2\r\n\r\n{}", "Content-Length: -1\r\n\r\n", "{}", "\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) { sameInPieces(t, in, probe.FramingHeader) })
}

func sameInPieces(t *testing.T, in []byte, framing probe.Framing) {
	const limit = 64
	for _, lenient := range []bool{false, true} {
		whole := probe.ReadFrames(bytes.NewReader(in), framing, limit, lenient)
		for name, pieces := range map[string]io.Reader{
			"bytes": iotest.OneByteReader(bytes.NewReader(in)), "halves": iotest.HalfReader(bytes.NewReader(in)), "the end with the data": iotest.DataErrReader(bytes.NewReader(in)),
		} {
			got := probe.ReadFrames(pieces, framing, limit, lenient)
			// How much of a stranger's garbage is there to be shown depends on what has come.
			if diff := cmp.Diff(whole, got, cmpopts.IgnoreFields(probe.Frames{}, "Message")); diff != "" {
				t.Errorf("%q in %s, -whole +pieces:\n%s", in, name, diff)
			}
		}
		for _, m := range whole.Messages {
			if len(m) > limit {
				t.Errorf("%q: a message of %d bytes", in, len(m))
			}
		}
	}
	if framing == probe.FramingLine {
		message, err := json.Marshal(map[string]string{"result": strings.ToValidUTF8(string(in), "?")})
		if err != nil {
			t.Fatal(err)
		}
		got := probe.ReadFrames(bytes.NewReader(append(message, message...)), framing, 1<<20, true)
		if diff := cmp.Diff([]string{string(message), string(message)}, got.Messages); diff != "" || got.End != "EOF" {
			t.Errorf("%s: %s, -want +got:\n%s", message, got.End, diff)
		}
	}
}
