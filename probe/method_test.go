package probe_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

// answering starts a server that answers every POST with a status and a body, in which $1, $2, … stand for the ids of the
// request, in their order and as they are written. It returns its URL and what it was last sent.
func answering(t *testing.T, status int, body string) (url string, last func() string) {
	t.Helper()
	var mu sync.Mutex
	var got []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, withIDs(got, body))
	}))
	t.Cleanup(s.Close)
	return s.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		return string(got)
	}
}

// withIDs puts the ids of a request in place of $1, $2, ….
func withIDs(request []byte, body string) string {
	var one struct{ ID json.RawMessage }
	var many []struct{ ID json.RawMessage }
	if json.Unmarshal(request, &many) != nil && json.Unmarshal(request, &one) == nil {
		many = append(many, one)
	}
	n := 0
	for _, m := range many {
		if m.ID != nil {
			n++
			body = strings.ReplaceAll(body, "$"+string(rune('0'+n)), string(m.ID))
		}
	}
	return body
}

func TestMethod(t *testing.T) {
	for name, tc := range map[string]struct {
		status  int
		body    string
		headers []probe.Header
		options probe.Options
		want    want
	}{
		"a result":                          {200, `{"jsonrpc":"2.0","id":$1,"result":1}`, nil, probe.Options{}, want{verdict: probe.Up}},
		"a result with a bad status":        {500, `{"jsonrpc":"2.0","id":$1,"result":1}`, nil, probe.Options{}, want{verdict: probe.Up, warnings: []string{"m http_status"}}},
		"a result without an id":            {200, `{"jsonrpc":"2.0","result":1}`, nil, probe.Options{}, want{verdict: probe.Up, warnings: []string{"m id_mismatch"}}},
		"a result with null for id":         {200, `{"jsonrpc":"2.0","id":null,"result":1}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassIDMismatch, code: 200, message: "answered with id null"}},
		"a result with another id":          {200, `{"jsonrpc":"2.0","id":1,"result":1}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassIDMismatch, code: 200, message: "answered with id 1"}},
		"an error with null for id":         {200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassRPCError, code: -32700}},
		"an error of JSON-RPC 1.0":          {200, `{"id":$1,"result":null,"error":"no such service"}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassRPCError, message: "no such service", warnings: []string{"m invalid_envelope", "m invalid_envelope", "m invalid_envelope"}}},
		"an error that says 401":            {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":401,"message":"no key"}}`, nil, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassAuthRequired, code: 401}},
		"an error that says 403":            {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":403,"message":"no plan"}}`, []probe.Header{{Name: "X-Key", Value: "sesame-1", Secret: true}}, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassAuthForbidden, code: 403}},
		"an error that says 429":            {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":429,"message":"slow down"}}`, nil, probe.Options{}, want{verdict: probe.Unknown, class: probe.ClassRateLimited, code: 429}},
		"an A2A agent's 401":                {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-31401,"message":"x"}}`, nil, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassAuthRequired, code: -31401}},
		"aria2 without its secret":          {400, `{"id":$1,"jsonrpc":"2.0","error":{"code":1,"message":"Unauthorized"}}`, nil, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassAuthRequired, code: 1}},
		"a key that is not accepted":        {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32000,"message":"Invalid API key"}}`, []probe.Header{{Name: "X-Key", Value: "sesame-1", Secret: true}}, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassCredentialRejected, code: -32000}},
		"a quota in words":                  {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32005,"message":"daily request count exceeded, request rate limited"}}`, nil, probe.Options{}, want{verdict: probe.Unknown, class: probe.ClassRateLimited, code: -32005}},
		"a 401 with a text for code":        {401, `{"error":{"code":"unauthorized","message":"sign in"}}`, nil, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassAuthRequired, code: 401, message: "sign in", warnings: []string{"m auth_not_advertised"}}},
		"a code of 0":                       {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":0,"message":"x"}}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassRPCError}},
		"JSON of a gateway":                 {200, `{"message":"no Route matched with those values"}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassInvalidEnvelope, code: 200, message: "neither result nor error, but message: no Route matched"}},
		"text that is called JSON":          {200, `Internal error`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassInvalidJSON, code: 200, message: "at byte 1: Internal error"}},
		"a quota with 403":                  {403, `{"message":"Too many requests from your address"}`, nil, probe.Options{}, want{verdict: probe.Unknown, class: probe.ClassRateLimited, code: 403}},
		"an error that is a text":           {200, `{"error":"Unauthorized"}`, nil, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassAuthRequired, warnings: []string{"m invalid_envelope", "m invalid_envelope"}}},
		"a web framework's 500":             {500, `{"error":"internal"}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassHTTPStatus, code: 500, message: "500 Internal Server Error: internal"}},
		"a web framework's 404":             {404, `{"timestamp":"2026-11-21","status":404,"error":"Not Found","path":"/rpc"}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassHTTPStatus, code: 404, message: "404 Not Found (nothing at this path)"}},
		"a list of complaints":              {422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassHTTPStatus, code: 422, message: "field required"}},
		"a key that is asked for too often": {403, `{"Success":false,"Error":"The key exceeds the frequency limit(5)","StatusCode":403}`, nil, probe.Options{}, want{verdict: probe.Unknown, class: probe.ClassRateLimited, code: 403, message: "frequency limit"}},
		"a 401 that calls itself 400":       {400, `bad request: missing required Authorization header`, nil, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassAuthRequired, code: 400}},
		"a 400 to a key":                    {400, `{"message":"Invalid API key"}`, []probe.Header{{Name: "X-Key", Value: "sesame-1", Secret: true}}, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassCredentialRejected, code: 400}},
		"an error to somebody else":         {200, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"bad"}}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassIDMismatch, code: 200, message: `answered with id "server-error" and error -32600: bad`}},
		"a quota with 503":                  {503, `Too many requests`, nil, probe.Options{}, want{verdict: probe.Unknown, class: probe.ClassRateLimited, code: 503}},
		"a rate in words":                   {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32005,"message":"project ID request rate exceeded"}}`, nil, probe.Options{}, want{verdict: probe.Unknown, class: probe.ClassRateLimited, code: -32005}},
		"a capacity in words":               {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32000,"message":"Your app has exceeded its concurrent requests capacity."}}`, nil, probe.Options{}, want{verdict: probe.Unknown, class: probe.ClassRateLimited, code: -32000}},
		"a credit in words":                 {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32097,"message":"You have exceeded the daily credit limit"}}`, nil, probe.Options{}, want{verdict: probe.Unknown, class: probe.ClassRateLimited, code: -32097}},
		"gas is no quota":                   {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32000,"message":"gas limit exceeded"}}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassRPCError, code: -32000}},
		"neither is size":                   {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32005,"message":"query returned more than 10000 results"}}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassRPCError, code: -32005}},
		"a token that is too old":           {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32000,"message":"jwt expired"}}`, []probe.Header{{Name: "X-Key", Value: "sesame-1", Secret: true}}, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassCredentialRejected, code: -32000}},
		"a quota of a gateway":              {200, `{"message":"You have exceeded your rate limit"}`, nil, probe.Options{}, want{verdict: probe.Unknown, class: probe.ClassRateLimited, code: 200}},
		"data that says what is wrong":      {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32602,"message":"Invalid params.","data":"No such host."}}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassRPCError, code: -32602, message: "Invalid params: No such host."}},
		"data that says 401":                {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32602,"message":"Invalid params.","data":"Not authorised."}}`, nil, probe.Options{}, want{verdict: probe.Gated, class: probe.ClassAuthRequired, code: -32602}},
		"data that says nothing":            {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32602,"message":"Invalid params","data":"{}"}}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassRPCError, code: -32602, message: "Invalid params"}},
		"for legal reasons":                 {451, ``, nil, probe.Options{}, want{verdict: probe.Unknown, class: probe.ClassBlocked, code: 451}},
		"nothing at this path":              {404, `not here`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassHTTPStatus, code: 404, message: "404 Not Found: not here (nothing at this path)"}},
		"no JSON":                           {415, `Unsupported Media Type`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassHTTPStatus, code: 415, message: "415 Unsupported Media Type (the probe sent application/json)"}},
		"no POST":                           {405, ``, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassHTTPStatus, code: 405, message: "does not take POST"}},
		"a WebSocket":                       {426, ``, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassHTTPStatus, code: 426, message: "ws://"}},
		"a gateway":                         {522, `<html><title>Timed out</title>`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassHTTPStatus, code: 522, message: "no connection from the gateway"}},
		"an empty body":                     {200, "\n", nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassInvalidJSON, code: 200, message: "200 OK with an empty body"}},
		"JSON of another kind":              {200, `{"status":"ok"}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassInvalidEnvelope, code: 200, message: "but status"}},
		"an error in place of a page":       {408, `{"jsonrpc":"2.0","id":$1,"error":{"name":"HANDLER_ERROR","code":-32000,"message":"Server error"}}`, nil, probe.Options{}, want{verdict: probe.Down, class: probe.ClassRPCError, code: -32000}},

		"what is expected":            {200, `{"jsonrpc":"2.0","id":$1,"result":{"peers":4}}`, nil, probe.Options{Expect: probe.Expect{Path: "$.peers", Min: raw("3")}}, want{verdict: probe.Up}},
		"not what is expected":        {200, `{"jsonrpc":"2.0","id":$1,"result":{"peers":2}}`, nil, probe.Options{Expect: probe.Expect{Path: "$.peers", Min: raw("3")}}, want{verdict: probe.Down, class: probe.ClassAssertionFailed, message: "$.peers is 2, expected at least 3"}},
		"an error that is healthy":    {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32001,"message":"Task not found"}}`, nil, probe.Options{Expect: probe.Expect{CEL: "error.code == -32001"}}, want{verdict: probe.Up}},
		"another error":               {200, `{"jsonrpc":"2.0","id":$1,"error":{"code":-32603,"message":"boom"}}`, nil, probe.Options{Expect: probe.Expect{CEL: "error.code == -32001"}}, want{verdict: probe.Down, class: probe.ClassRPCError, code: -32603}},
		"a result for an error":       {200, `{"jsonrpc":"2.0","id":$1,"result":1}`, nil, probe.Options{Expect: probe.Expect{CEL: "error.code == -32001"}}, want{verdict: probe.Down, class: probe.ClassAssertionFailed}},
		"no answer to hold against":   {502, ``, nil, probe.Options{Expect: probe.Expect{CEL: "status == 200"}}, want{verdict: probe.Down, class: probe.ClassHTTPStatus, code: 502}},
		"another's error is not ours": {200, `{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"x"}}`, nil, probe.Options{Expect: probe.Expect{CEL: "error.code == -32001"}}, want{verdict: probe.Down, class: probe.ClassIDMismatch, code: 200}},

		"a notification":                   {204, ``, nil, probe.Options{Notify: true}, want{verdict: probe.Up}},
		"a notification, 200 and nothing":  {200, "\n", nil, probe.Options{Notify: true}, want{verdict: probe.Up}},
		"a notification with a result":     {200, `{"jsonrpc":"2.0","result":1}`, nil, probe.Options{Notify: true}, want{verdict: probe.Up, warnings: []string{"m invalid_envelope"}}},
		"a notification with a page":       {200, `<html>`, nil, probe.Options{Notify: true}, want{verdict: probe.Up}},
		"a notification that was refused":  {200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`, nil, probe.Options{Notify: true}, want{verdict: probe.Down, class: probe.ClassRPCError, code: -32600}},
		"a notification to nobody":         {404, ``, nil, probe.Options{Notify: true}, want{verdict: probe.Down, class: probe.ClassHTTPStatus, code: 404}},
		"a notification with a 401":        {401, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, nil, probe.Options{Notify: true}, want{verdict: probe.Gated, class: probe.ClassAuthRequired, code: 401, warnings: []string{"m auth_not_advertised"}}},
		"a notification in the wrong hour": {503, `{"jsonrpc":"2.0","id":null,"error":{"code":-28,"message":"Loading block index"}}`, nil, probe.Options{Notify: true}, want{verdict: probe.Down, class: probe.ClassRPCError, code: -28}},
	} {
		t.Run(name, func(t *testing.T) {
			url, sent := answering(t, tc.status, tc.body)
			r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: url, Headers: tc.headers, Options: tc.options})
			tc.want.steps = "m"
			if tc.want.class != "" {
				tc.want.step, tc.want.steps = "m", "m!"+string(tc.want.class)
			}
			check(t, r, tc.want)
			if strings.Contains(sent(), `"id"`) == tc.options.Notify {
				t.Errorf("sent %s", sent())
			}
		})
	}
}

// Parameters go out as they were given: by position, by name, or not at all.
func TestParams(t *testing.T) {
	for params, want := range map[string]string{
		"":                        `"method":"m"}`,
		`[]`:                      `"params":[]}`,
		`{"b":1, "a":"<&>"}`:      `"params":{"b":1,"a":"<&>"}}`,
		`[12345678901234567890 ]`: `"params":[12345678901234567890]}`,
	} {
		url, sent := answering(t, 200, `{"jsonrpc":"2.0","id":$1,"result":1}`)
		target := probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: url}
		if params != "" {
			target.Params = raw(params)
		}
		if r := ask(t, target); r.Verdict != probe.Up || !strings.HasSuffix(sent(), want) {
			t.Errorf("%s: %s %+v, sent %s", params, r.Verdict, r.Failure, sent())
		}
	}
}

func TestRequestProblems(t *testing.T) {
	member := probe.Call{Method: "m"}
	for name, tc := range map[string]struct {
		target probe.Target
		want   []probe.Problem
	}{
		"all is well": {probe.Target{Kind: probe.KindJSONRPC, Method: "m", Options: probe.Options{Expect: probe.Expect{Type: "string"}}}, nil},
		"a batch":     {probe.Target{Kind: probe.KindJSONRPC, Options: probe.Options{Batch: []probe.Call{member, {Method: "n", Notify: true}}}}, nil},
		"nothing to ask": {probe.Target{Kind: probe.KindJSONRPC, Options: probe.Options{Expect: probe.Expect{Type: "string"}, Notify: true}}, []probe.Problem{
			{Field: "request.method", Message: "is required for kind jsonrpc"},
			{Field: "request.notify", Message: "needs a request.method"},
			{Field: "request.expect", Message: "needs a request.method"},
		}},
		"a notification that expects": {probe.Target{Kind: probe.KindAuto, Method: "m", Options: probe.Options{Expect: probe.Expect{Type: "string"}, Notify: true}}, []probe.Problem{
			{Field: "request.expect", Message: "goes without request.notify: a notification has no answer"},
		}},
		"a batch for a chain node": {probe.Target{Kind: probe.KindEVM, Options: probe.Options{Batch: []probe.Call{member}}}, []probe.Problem{
			{Field: "request.batch", Message: "goes with kind jsonrpc only"},
		}},
		"a batch and a method": {probe.Target{Kind: probe.KindAuto, Method: "m", Options: probe.Options{Batch: []probe.Call{member}}}, []probe.Problem{
			{Field: "request.batch", Message: "goes without request.method: an endpoint is asked one or the other"},
		}},
		"members": {probe.Target{Kind: probe.KindJSONRPC, Options: probe.Options{Batch: []probe.Call{
			{Params: raw(`1`)},
			{Method: strings.Repeat("m", 201), Notify: true, Expect: probe.Expect{Type: "int"}},
		}}}, []probe.Problem{
			{Field: "request.batch[0].method", Message: "is required"},
			{Field: "request.batch[0].params", Message: "must be an array or an object (JSON-RPC 2.0 §4.2)"},
			{Field: "request.batch[1].method", Message: "is longer than 200 bytes"},
			{Field: "request.batch[1].expect", Message: "goes without notify: a notification has no answer"},
			{Field: "request.batch[1].expect.type", Message: `unknown type "int": use one of null, boolean, integer, number, string, array, object`},
		}},
		"too many members": {probe.Target{Kind: probe.KindJSONRPC, Options: probe.Options{Batch: make([]probe.Call, 51)[:51:51]}}, append([]probe.Problem{
			{Field: "request.batch", Message: "has more than 50 members"},
		}, missing(50)...)},
	} {
		tc.target.URL = "http://192.0.2.1/"
		if diff := cmp.Diff(tc.want, tc.target.Validate()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func missing(n int) (problems []probe.Problem) {
	for i := range n {
		problems = append(problems, probe.Problem{Field: "request.batch[" + strconv.Itoa(i) + "].method", Message: "is required"})
	}
	return problems
}
