package probe_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

func TestBatch(t *testing.T) {
	const refused = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`
	two := []probe.Call{{Method: "a"}, {Method: "b", Expect: probe.Expect{Type: "integer"}}}
	for name, tc := range map[string]struct {
		members []probe.Call
		status  int
		body    string
		want    want
	}{
		"in order":     {two, 200, `[{"jsonrpc":"2.0","id":$1,"result":1},{"jsonrpc":"2.0","id":$2,"result":2}]`, want{verdict: probe.Up, steps: "a b"}},
		"in any order": {two, 200, `[{"jsonrpc":"2.0","id":$2,"result":2},{"jsonrpc":"2.0","id":$1,"result":"x"}]`, want{verdict: probe.Up, steps: "a b"}},
		"one unexpected": {two, 200, `[{"jsonrpc":"2.0","id":$2,"result":"2"},{"jsonrpc":"2.0","id":$1,"result":"x"}]`,
			want{verdict: probe.Down, step: "b", class: probe.ClassAssertionFailed, steps: "a b!assertion_failed"}},
		"one error": {two, 200, `[{"jsonrpc":"2.0","id":$1,"error":{"code":-32601,"message":"no such method"}},{"jsonrpc":"2.0","id":$2,"result":2}]`,
			want{verdict: probe.Down, step: "a", class: probe.ClassRPCError, code: -32601, message: "no such method", steps: "a!rpc_error b"}},
		"the worst decides": {two, 200, `[{"jsonrpc":"2.0","id":$1,"error":{"code":429,"message":"slow"}},{"jsonrpc":"2.0","id":$2,"error":{"code":1,"message":"x"}}]`,
			want{verdict: probe.Down, step: "b", class: probe.ClassRPCError, code: 1, steps: "a!rate_limited b!rpc_error"}},
		"one missing": {two, 200, `[{"jsonrpc":"2.0","id":$1,"result":1}]`,
			want{verdict: probe.Down, step: "b", class: probe.ClassInvalidEnvelope, code: 200, message: "no answer to this member: 1 of 2 were answered", steps: "a b!invalid_envelope"}},
		"too large for geth": {two, 200, `[{"jsonrpc":"2.0","id":$1,"error":{"code":-32600,"message":"batch too large"}}]`,
			want{verdict: probe.Down, step: "a", class: probe.ClassRPCError, code: -32600, message: "batch too large", steps: "a!rpc_error b!invalid_envelope"}},
		"an error that names none": {two, 200, `[{"jsonrpc":"2.0","id":$1,"result":1},` + refused + `]`,
			want{verdict: probe.Down, step: "b", class: probe.ClassRPCError, code: -32600, message: "an error that names none: Invalid request", steps: "a b!rpc_error"}},
		"refused as a whole": {two, 200, refused,
			want{verdict: probe.Down, step: "a", class: probe.ClassRPCError, code: -32600, message: "the batch was refused: Invalid request", steps: "a!rpc_error b!rpc_error", warnings: []string{"a invalid_envelope"}}},
		"refused without credentials": {two, 200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Unauthorized: sign in"}}`,
			want{verdict: probe.Gated, step: "a", class: probe.ClassAuthRequired, code: -32000, steps: "a!auth_required b!auth_required", warnings: []string{"a invalid_envelope"}}},
		"refused with a status": {two, 401, refused,
			want{verdict: probe.Gated, step: "a", class: probe.ClassAuthRequired, code: 401, steps: "a!auth_required b!auth_required", warnings: []string{"a auth_not_advertised"}}},
		"only the first, bare": {two, 200, `{"jsonrpc":"2.0","id":$1,"result":1}`,
			want{verdict: probe.Down, step: "b", class: probe.ClassInvalidEnvelope, code: 200, steps: "a b!invalid_envelope", warnings: []string{"a invalid_envelope"}}},
		"an empty array": {two, 200, `[]`,
			want{verdict: probe.Down, step: "a", class: probe.ClassInvalidEnvelope, code: 200, message: "an empty array to a batch of 2", steps: "a!invalid_envelope b!invalid_envelope"}},
		"nothing at all": {two, 204, ``,
			want{verdict: probe.Down, step: "a", class: probe.ClassHTTPStatus, code: 204, steps: "a!http_status b!http_status"}},
		"a page": {two, 502, `<html><title>Bad Gateway</title>`,
			want{verdict: probe.Down, step: "a", class: probe.ClassHTTPStatus, code: 502, steps: "a!http_status b!http_status"}},
		"strangers and twins": {two, 200, `[{"jsonrpc":"2.0","id":$1,"result":1},{"jsonrpc":"2.0","id":$1,"result":"x"},{"jsonrpc":"2.0","id":7,"result":1},{"jsonrpc":"2.0","result":1},{"jsonrpc":"2.0","id":$2,"result":2},5]`,
			want{verdict: probe.Up, steps: "a b", warnings: []string{"a id_mismatch", "a id_mismatch", "a id_mismatch", "a invalid_envelope"}}},
		"one that is no answer": {two, 200, `[{"jsonrpc":"2.0","id":$1,"result":1},{"jsonrpc":"2.0","id":$2,"result":1,"error":{"code":1,"message":"x"}}]`,
			want{verdict: probe.Down, step: "b", class: probe.ClassInvalidEnvelope, code: 200, message: "both result and error", steps: "a b!invalid_envelope"}},
		"a bad status around good answers": {two, 500, `[{"jsonrpc":"2.0","id":$1,"result":1},{"jsonrpc":"2.0","id":$2,"result":2}]`,
			want{verdict: probe.Up, steps: "a b", warnings: []string{"a http_status"}}},
		"the same method twice": {[]probe.Call{{Method: "a"}, {Method: "a", Expect: probe.Expect{Equals: raw("2")}}}, 200, `[{"jsonrpc":"2.0","id":$1,"result":1},{"jsonrpc":"2.0","id":$2,"result":1}]`,
			want{verdict: probe.Down, step: "a #2", class: probe.ClassAssertionFailed, steps: "a a #2!assertion_failed"}},
		"with a notification": {[]probe.Call{{Method: "n", Notify: true}, {Method: "a"}}, 200, `[{"jsonrpc":"2.0","id":$1,"result":1}]`,
			want{verdict: probe.Up, steps: "n a"}},
		"only notifications": {[]probe.Call{{Method: "n", Notify: true}, {Method: "n", Notify: true}}, 204, ``,
			want{verdict: probe.Up, steps: "n n #2"}},
		"only notifications, an empty array": {[]probe.Call{{Method: "n", Notify: true}}, 200, `[]`,
			want{verdict: probe.Up, steps: "n"}},
		"notifications refused": {[]probe.Call{{Method: "n", Notify: true}, {Method: "n", Notify: true}}, 200, `[` + refused + `,` + refused + `]`,
			want{verdict: probe.Down, step: "n", class: probe.ClassRPCError, code: -32600, steps: "n!rpc_error n #2!rpc_error"}},
		"an error that is healthy": {[]probe.Call{{Method: "a", Expect: probe.Expect{CEL: "error.code == -32001"}}}, 200, `[{"jsonrpc":"2.0","id":$1,"error":{"code":-32001,"message":"x"}}]`,
			want{verdict: probe.Up, steps: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := answering(t, tc.status, tc.body)
			check(t, ask(t, probe.Target{Kind: probe.KindJSONRPC, URL: url, Options: probe.Options{Batch: tc.members}}), tc.want)
		})
	}
}

// One exchange is measured once, and every member waited for it.
func TestBatchIsOneExchange(t *testing.T) {
	url, sent := answering(t, 200, `[{"jsonrpc":"2.0","id":$1,"result":1},{"jsonrpc":"2.0","id":$2,"result":1}]`)
	r := ask(t, probe.Target{Kind: probe.KindJSONRPC, URL: url, Options: probe.Options{Batch: []probe.Call{
		{Method: "a", Params: raw(`{"x": 1}`)}, {Method: "n", Notify: true}, {Method: "b"},
	}}})
	if diff := cmp.Diff("a n b", stepLine(r.Steps)); diff != "" {
		t.Fatal(diff)
	}
	first := r.Steps[0]
	if first.BytesOut != int64(len(sent())) || first.BytesIn == 0 || first.Phases.Connect == 0 {
		t.Errorf("the first step %+v does not measure the exchange of %d bytes", first, len(sent()))
	}
	for _, s := range r.Steps[1:] {
		if s.Latency != first.Latency || s.Start != first.Start || s.HTTPStatus != 200 || s.BytesOut != 0 || s.Phases.Connect != 0 {
			t.Errorf("%+v", s)
		}
	}
	ids := strings.Count(sent(), `"id":"rollcall-`)
	if ids != 2 || !strings.HasPrefix(sent(), `[{"jsonrpc":"2.0","id":"rollcall-`) || !strings.Contains(sent(), `"method":"a","params":{"x":1}},{"jsonrpc":"2.0","method":"n"}`) {
		t.Errorf("sent %s", sent())
	}
}

func TestBatchToNobody(t *testing.T) {
	s := probe.Target{Kind: probe.KindJSONRPC, URL: "http://127.0.0.1:1/", Options: probe.Options{Batch: []probe.Call{{Method: "a"}, {Method: "b"}}}}
	check(t, ask(t, s), want{verdict: probe.Down, step: "a", class: probe.ClassConnect, message: "connection refused", steps: "a!connect b!connect"})
}

// Whatever answers a batch, each member gets one class and a bounded message, and the worst decides.
func FuzzBatch(f *testing.F) {
	f.Add([]byte(`[{"jsonrpc":"2.0","id":"ID1","result":1},{"id":"ID2","error":{"code":1}},{"id":null,"error":{"code":2,"message":"x"}},7]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}`))
	f.Add([]byte(`[]`))
	f.Add([]byte("\xEF\xBB\xBF [ "))
	f.Fuzz(func(t *testing.T, body []byte) {
		steps, failure := probe.ReadBatch(body, 3)
		bad := 0
		for _, s := range steps {
			if s.Class != "" {
				bad++
			}
			if len(s.Message) > probe.MaxMessage || s.Class == "" && s.Message != "" {
				t.Errorf("%+v", s)
			}
		}
		if len(steps) != 3 || (failure == nil) != (bad == 0) {
			t.Errorf("%q: %+v, %+v", body, failure, steps)
		}
	})
}

// Over a stream, too, a batch is one message and its answer another.
func TestBatchOverTCP(t *testing.T) {
	url := listen(t, func(conn net.Conn) {
		defer conn.Close()
		line, err := bufio.NewReader(conn).ReadBytes('\n')
		if err == nil {
			fmt.Fprintln(conn, `{"jsonrpc":"2.0","method":"hello"}`)
			fmt.Fprintln(conn, withIDs(line, `[{"jsonrpc":"2.0","id":$2,"result":2},{"jsonrpc":"2.0","id":$1,"error":{"code":-32601,"message":"no such method"}}]`))
		}
	})
	target := probe.Target{Kind: probe.KindJSONRPC, URL: "tcp://" + strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")}
	target.Options.Batch = []probe.Call{{Method: "a"}, {Method: "b", Expect: probe.Expect{Equals: raw("2")}}}
	check(t, ask(t, target), want{verdict: probe.Down, step: "a", class: probe.ClassRPCError, code: -32601, steps: "a!rpc_error b"})

	target.Options.Batch, target.Method, target.Options.Notify = nil, "n", true
	check(t, ask(t, target), want{verdict: probe.Up, steps: "n"})
}
