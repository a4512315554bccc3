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

func TestEnvelope(t *testing.T) {
	type got struct {
		Envelope probe.Envelope
		Class    probe.Class
	}
	bad := func(c probe.Class) got { return got{Class: c} }
	result := func(id, result string, notes ...string) got {
		return got{Envelope: probe.Envelope{ID: id, Result: result, Notes: notes}}
	}
	rpcError := func(id string, code int, message string, notes ...string) got {
		return got{Envelope: probe.Envelope{ID: id, Error: &probe.RPCError{Code: code, Message: message}, Notes: notes}}
	}
	const (
		invalidJSON = probe.ClassInvalidJSON
		invalid     = probe.ClassInvalidEnvelope
	)
	for in, want := range map[string]got{
		`{"jsonrpc":"2.0","id":"a","result":{}}`:                                      result(`"a"`, `{}`),
		`{"jsonrpc":"2.0","id":"a","result":null}`:                                    result(`"a"`, `null`),
		` {"result":1,"id":3,"jsonrpc":"2.0"} `:                                       result(`3`, `1`),
		`{"jsonrpc":"2.0","id":"a","result":1,"error":null}`:                          result(`"a"`, `1`, "error null beside a result"),
		`{"jsonrpc":"2.0","id":"a","result":1,"method":"x"}`:                          result(`"a"`, `1`),
		`[{"jsonrpc":"2.0","id":"a","result":1}]`:                                     result(`"a"`, `1`, "the answer is wrapped in an array"),
		"\xEF\xBB\xBF" + `{"jsonrpc":"2.0","id":"a","result":1}`:                      result(`"a"`, `1`, "a byte order mark before the JSON"),
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`: rpcError(`null`, -32700, "Parse error"),
		`{"jsonrpc":"2.0","error":{"code":-32000,"message":"x","data":1}}`:            rpcError(``, -32000, "x"),
		`{"jsonrpc":"2.0","id":"a","result":null,"error":{"code":0,"message":"x"}}`:   rpcError(`"a"`, 0, "x", "result null beside an error"),
		`{"jsonrpc":"2.0","id":"a","error":{"code":1}}`:                               rpcError(`"a"`, 1, "", "error without a message"),
		`{"jsonrpc":"2.0","method":"notifications/x"}`:                                {Envelope: probe.Envelope{Call: true}},
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                    {Envelope: probe.Envelope{ID: "1", Call: true}},
		``:                                       bad(invalidJSON),
		`not json`:                               bad(invalidJSON),
		`{"jsonrpc":"2.0","id":"a","result":1`:   bad(invalidJSON),
		`{"jsonrpc":"2.0","id":"a","result":1}x`: bad(invalidJSON),
		`{"jsonrpc":"2.0","id":"a","result":1}{}`:                 bad(invalidJSON),
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":\"\xff\"}":  bad(invalidJSON),
		strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000): bad(invalidJSON),
		`1`:  bad(invalid),
		`[]`: bad(invalid),
		`{}`: bad(invalid),
		`[{"jsonrpc":"2.0","id":1,"result":1},{}]`:                                          bad(invalid),
		`{"jsonrpc":"2.0","id":"a"}`:                                                        bad(invalid),
		`{"id":"a","result":1}`:                                                             bad(invalid),
		`{"jsonrpc":"1.0","id":"a","result":1}`:                                             bad(invalid),
		`{"JSONRPC":"2.0","id":"a","result":1}`:                                             bad(invalid),
		`{"jsonrpc":"2.0","id":"a","Result":1}`:                                             bad(invalid),
		`{"jsonrpc":"2.0","id":"a","id":"b","result":1}`:                                    bad(invalid),
		`{"jsonrpc":"2.0","id":"a","result":1,"result":2}`:                                  bad(invalid),
		`{"jsonrpc":"2.0","id":"a","result":1,"error":{"code":1,"message":"x"}}`:            bad(invalid),
		`{"jsonrpc":"2.0","id":"a","error":"boom"}`:                                         bad(invalid),
		`{"jsonrpc":"2.0","id":"a","error":{"message":"x"}}`:                                bad(invalid),
		`{"jsonrpc":"2.0","id":"a","error":{"code":"E_BAD","message":"x"}}`:                 bad(invalid),
		`{"jsonrpc":"2.0","id":"a","error":{"code":1.5,"message":"x"}}`:                     bad(invalid),
		`{"jsonrpc":"2.0","id":"a","error":{"code":99999999999999999999999,"message":"x"}}`: bad(invalid),
	} {
		envelope, class, _ := probe.ReadEnvelope([]byte(in), true)
		if diff := cmp.Diff(want, got{envelope, class}); diff != "" {
			t.Errorf("%.80q (-want +got):\n%s", in, diff)
		}
	}
}

func TestEnvelopeOfOldNodes(t *testing.T) {
	type seen struct {
		Class   probe.Class
		Code    int
		Message string // of the error, or of what is wrong
		Notes   []string
	}
	for in, want := range map[string]seen{
		`{"result":1,"error":null,"id":"a"}`:                           {Notes: []string{"no jsonrpc member", "error null beside a result"}},
		`{"jsonrpc":"1.0","id":"a","result":1}`:                        {Notes: []string{`jsonrpc is "1.0"`}},
		`{"jsonrpc": 2.0 ,"id":"a","result":"x"}`:                      {Notes: []string{"jsonrpc is 2.0"}},
		`{"result":null,"error":"rpc: can't find service X","id":"a"}`: {Message: "rpc: can't find service X", Notes: []string{"no jsonrpc member", "result null beside an error", "error is a string, as in JSON-RPC 1.0"}},
		`{"error":{"message":"x","name":"Y"},"id":"a"}`:                {Message: "x", Notes: []string{"no jsonrpc member", "error without a code"}},
		`{"jsonrpc":"2.0","method":"queryTip","result":7,"id":"a"}`:    {Notes: []string{`a member that JSON-RPC does not know: "method"`}},
		`{"jsonrpc":"2.0","id":"a","result":7,"warnings":[]}`:          {Notes: []string{`a member that JSON-RPC does not know: "warnings"`}},
		`{"jsonrpc":"2.0","id":"a","error":{"code":0,"message":"x"}}`:  {Message: "x"},

		`{"jsonrpc":"2.0","id":"a","error":"boom"}`:                     {Class: probe.ClassInvalidEnvelope, Message: `error is not an object: "boom"`},
		`{"error":["boom"],"id":"a"}`:                                   {Class: probe.ClassInvalidEnvelope, Message: `error is not an object: ["boom"]`},
		`{"error":{"name":"Y"},"id":"a"}`:                               {Class: probe.ClassInvalidEnvelope, Message: `error without a code: {"name":"Y"}`},
		`{"jsonrpc":"2.0","id":"a","error":{"code":1.5,"message":"x"}}`: {Class: probe.ClassInvalidEnvelope, Message: `error code is not an integer: {"code":1.5,"message":"x"}`},
		`{"jsonrpc":"2.0","id":"a","error":{"code":1},"result":2}`:      {Class: probe.ClassInvalidEnvelope, Message: "both result and error"},
		`{"jsonrpc":"2.0","id":"a","\u0069d":"b","result":2}`:           {Class: probe.ClassInvalidEnvelope, Message: `member "id" comes twice`},
		`{"Result":1,"ID":"a","jsonrpc":"2.0"}`:                         {Class: probe.ClassInvalidEnvelope, Message: "neither result nor error, but Result, ID"},
		`{"error":null,"id":"a"}`:                                       {Class: probe.ClassInvalidEnvelope, Message: "neither result nor error"},
		`"ok"`:                                                          {Class: probe.ClassInvalidEnvelope, Message: "not an object but a string"},
	} {
		envelope, class, message := probe.ReadEnvelope([]byte(in), false)
		got := seen{Class: class, Message: message, Notes: envelope.Notes}
		if envelope.Error != nil {
			got.Code, got.Message = envelope.Error.Code, envelope.Error.Message
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":{"a":[1,2,{}]}}`), true)
	f.Add([]byte(`[{"id":1,"error":{"code":-1,"message":"x","data":null}}]`), false)
	f.Fuzz(func(t *testing.T, in []byte, strict bool) {
		envelope, class, message := probe.ReadEnvelope(in, strict)
		switch {
		case class == "" && message != "", class != "" && message == "":
			t.Errorf("%q: class %q with message %q", in, class, message)
		case class == "" && !json.Valid(bytes.TrimPrefix(in, []byte("\xEF\xBB\xBF"))):
			t.Errorf("%q: a message that is not JSON", in)
		case class == probe.ClassInvalidJSON && json.Valid(in) && utf8.Valid(in):
			t.Errorf("%q: JSON that is called none: %s", in, message)
		case class == "" && !envelope.Call && envelope.Error == nil && !json.Valid([]byte(envelope.Result)):
			t.Errorf("%q: result %q is not JSON", in, envelope.Result)
		case class == "" && envelope.Error != nil && envelope.Result != "":
			t.Errorf("%q: both result and error", in)
		}
	})
}
