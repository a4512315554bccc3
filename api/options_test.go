package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// pair returns a certificate and its key, as PEM.
func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}))
}

func quoted(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// kept returns an endpoint as the database has it, without what changes with every edit.
func (r *rollcall) kept(slug string) store.Endpoint {
	r.t.Helper()
	o, err := r.store.Endpoint(r.t.Context(), slug)
	if err != nil {
		r.t.Fatal(err)
	}
	o.UpdatedAt = time.Time{}
	return o.Endpoint
}

func TestWhatAnAnswerShowsOfTheOptionsCanBeSentBack(t *testing.T) {
	r := start(t)
	certificate, key := pair(t)
	slug := r.register(`{"url": "https://rpc.example", "name": "a", "kind": "jsonrpc", "contract_notices": true,
		"request": {"method": "ping", "params": [1], "expect": {"path": "$.a", "type": "object", "equals": {"b": [1, null]}, "cel": "status == 200"}},
		"ip_version": "6", "http_version": "2",
		"tls": {"ca": ` + quoted(t, certificate) + `, "server_name": "inner.example", "client_cert": ` + quoted(t, certificate) + `,
			"client_key": ` + quoted(t, key) + `, "expiry_warning": "336h"},
		"oauth": {"client_id": "me", "client_secret": "s3cret", "scopes": ["read"], "token_url": "https://auth.example/token"}}`)
	before := r.kept(slug)
	want := probe.Options{
		Expect: probe.Expect{Path: "$.a", Type: "object", Equals: json.RawMessage(`{"b":[1,null]}`), CEL: "status == 200"},
		IP:     probe.IPv6, HTTP: probe.HTTP2,
		TLS: probe.TLS{
			CA: certificate, ServerName: "inner.example", ClientCert: certificate, ClientKey: key, ExpiryWarning: 14 * 24 * time.Hour,
		},
		OAuth: &probe.OAuth{ClientID: "me", ClientSecret: "s3cret", Scopes: []string{"read"}, TokenURL: "https://auth.example/token"},
	}
	if diff := cmp.Diff(want, before.Options); diff != "" || !before.ContractNotices {
		t.Errorf("kept (-want +got), notices %v:\n%s", before.ContractNotices, diff)
	}

	reply := r.get("/api/v1/endpoints/" + slug).want(http.StatusOK)
	if strings.Contains(reply.body, "s3cret") || strings.Contains(reply.body, "PRIVATE KEY") {
		t.Errorf("a secret is sent back: %s", reply.body)
	}
	shown := reply.object()
	for _, name := range []string{"slug", "status", "since", "last_check", "places", "created_at", "updated_at"} {
		delete(shown, name)
	}
	r.ask("PATCH", "/api/v1/endpoints/"+slug, quoted(t, shown)).want(http.StatusOK)
	if diff := cmp.Diff(before, r.kept(slug)); diff != "" {
		t.Errorf("after sending back what was shown (-before +after):\n%s", diff)
	}
}

func TestOptionsAreMergedMemberByMember(t *testing.T) {
	r := start(t)
	certificate, key := pair(t)
	slug := r.register(`{"url": "https://rpc.example", "name": "a", "kind": "jsonrpc", "request": {"method": "ping", "expect": {"regex": "x", "min": 1, "max": 9}},
		"tls": {"client_cert": ` + quoted(t, certificate) + `, "client_key": ` + quoted(t, key) + `},
		"oauth": {"client_id": "me", "client_secret": "s3cret"}}`)
	edit := func(body string, change func(*probe.Options)) {
		t.Helper()
		want := r.kept(slug).Options
		change(&want)
		r.ask("PATCH", "/api/v1/endpoints/"+slug, body).want(http.StatusOK)
		if diff := cmp.Diff(want, r.kept(slug).Options); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", body, diff)
		}
	}
	edit(`{"name": "b"}`, func(*probe.Options) {})
	edit(`{"tls": {"insecure": true}}`, func(o *probe.Options) { o.TLS.Insecure = true })
	edit(`{"request": {"expect": {"min": "0x2", "max": null}}}`, func(o *probe.Options) {
		o.Expect.Min, o.Expect.Max = json.RawMessage(`"0x2"`), nil
	})
	edit(`{"oauth": {"scopes": ["read"]}}`, func(o *probe.Options) { o.OAuth.Scopes = []string{"read"} })
	edit(`{"oauth": {"client_secret": "other"}}`, func(o *probe.Options) { o.OAuth.ClientSecret = "other" })
	edit(`{"oauth": null}`, func(o *probe.Options) { o.OAuth = nil })
	edit(`{"tls": {"client_cert": null, "client_key": null}}`, func(o *probe.Options) { o.TLS.ClientCert, o.TLS.ClientKey = "", "" })
	edit(`{"tls": null, "request": {"expect": null}}`, func(o *probe.Options) { *o = probe.Options{} })
}

func TestKeptSecretsOfTheOptionsGoToNoOtherAddress(t *testing.T) {
	r := start(t)
	certificate, key := pair(t)
	n := 0
	register := func() string {
		n++
		return "/api/v1/endpoints/" + r.register(`{"url": "https://rpc.example", "name": "`+quoted(t, n)+`",
			"tls": {"client_cert": `+quoted(t, certificate)+`, "client_key": `+quoted(t, key)+`},
			"oauth": {"client_id": "me", "client_secret": "s3cret"}}`)
	}
	for body, want := range map[string][]string{
		`{"url": "https://elsewhere.example"}`:                                                    {"oauth.client_secret", "tls.client_key"},
		`{"oauth": {"token_url": "https://evil.example/token"}}`:                                  {"oauth.client_secret"},
		`{"oauth": {"token_url": "https://evil.example/token", "has_client_secret": true}}`:       {"oauth.client_secret"},
		`{"oauth": {"client_id": "you"}, "url": "https://rpc.example:444"}`:                       {"oauth.client_secret", "tls.client_key"},
		`{"tls": null, "oauth": {"client_secret": "new"}, "url": "https://elsewhere.example"}`:    nil,
		`{"url": "https://rpc.example/other"}`:                                                    nil,
		`{"oauth": {"token_url": "https://auth.example/token", "client_secret": "for that one"}}`: nil,
	} {
		reply := r.ask("PATCH", register(), body)
		if want == nil {
			reply.want(http.StatusOK)
			continue
		}
		got := reply.want(http.StatusUnprocessableEntity).mistakes()
		if diff := cmp.Diff(want, sorted(got)); diff != "" {
			t.Errorf("mistakes of %s (-want +got):\n%s", body, diff)
		}
	}
	// What the secret buys at the same token endpoint would go elsewhere.
	bought := "/api/v1/endpoints/" + r.register(`{"url": "https://c.example", "oauth": {"client_id": "me", "client_secret": "s3cret", "token_url": "https://auth.example/token"}}`)
	got := r.ask("PATCH", bought, `{"url": "https://elsewhere.example"}`).want(http.StatusUnprocessableEntity).mistakes()
	if diff := cmp.Diff([]string{"oauth.client_secret"}, sorted(got)); diff != "" {
		t.Errorf("mistakes of a move away from a token (-want +got):\n%s", diff)
	}
	r.ask("POST", "/api/v1/endpoints", `{"url": "https://b.example", "oauth": {"client_id": "me", "has_client_secret": true}}`).
		want(http.StatusUnprocessableEntity)
}

func TestMistakesInOptionsAreNamed(t *testing.T) {
	r := start(t)
	for body, want := range map[string][]string{
		`{"tls": 7, "chain": {"max_age": "soon", "lagging": "x"}}`:                 {"chain.lagging", "chain.max_age", "tls"},
		`{"canary": {"tool": 1, "extra": true}, "lsp": {"allow_exit": "yes"}}`:     {"canary.extra", "canary.tool", "lsp.allow_exit"},
		`{"request": {"batch": [{"method": 1}, 3, {"expects": {}}], "notify": 1}}`: {"request.batch[0].method", "request.batch[1]", "request.batch[2].expects", "request.batch[2].method", "request.notify"},
		`{"oauth": {"scopes": [1], "client_secret": "a\u0000b"}}`:                  {"oauth.client_id", "oauth.client_secret", "oauth.scopes[0]"},
		`{"tls": {"nope": 1}, "framing": "lines", "canary": {"tool": ""}}`:         {"canary.tool", "framing", "tls.nope"},
		`{"request": {"expect": {"results": 1}}}`:                                  {"request.expect.results"},
		`{"expect": {}, "Subscribe": true}`:                                        {"Subscribe", "expect"},
	} {
		body = `{"url": "https://a.example", ` + body[1:]
		got := r.ask("POST", "/api/v1/endpoints", body).want(http.StatusUnprocessableEntity).mistakes()
		if diff := cmp.Diff(want, sorted(got)); diff != "" {
			t.Errorf("mistakes of %s (-want +got):\n%s", body, diff)
		}
		got = r.ask("POST", "/api/v1/check", body).want(http.StatusUnprocessableEntity).mistakes()
		if diff := cmp.Diff(want, sorted(got)); diff != "" {
			t.Errorf("mistakes of a check of %s (-want +got):\n%s", body, diff)
		}
	}
}

func TestASingleCheckTakesOptions(t *testing.T) {
	r := start(t)
	r.ask("POST", "/api/v1/check", `{"url": "https://a.example", "kind": "evm", "chain": {"id": "1", "max_age": "90s"}, "tls": {"insecure": true}}`).
		want(http.StatusOK)
	got := locked(r, func() probe.Target { return r.probed[len(r.probed)-1] })
	want := probe.Options{Chain: probe.Chain{ID: "1", MaxAge: 90 * time.Second}, TLS: probe.TLS{Insecure: true}}
	if diff := cmp.Diff(want, got.Options); diff != "" {
		t.Errorf("options of the target (-want +got):\n%s", diff)
	}
}

func TestEveryTransportThatAProbeSpeaksCanBeRegistered(t *testing.T) {
	r := start(t)
	for _, body := range []string{
		`{"url": "ws://node.example/ws", "kind": "evm", "subscribe": true, "chain": {"id": "ethereum"}}`,
		`{"url": "wss://node.example:8546", "kind": "jsonrpc", "request": {"method": "ping"}}`,
		`{"url": "tcp://lsp.example:7658", "kind": "lsp", "lsp": {"allow_exit": true}}`,
		`{"url": "tls://electrum.example:50002", "kind": "electrum"}`,
		`{"url": "tcp://rpc.example:7000", "kind": "jsonrpc", "framing": "content-length", "request": {"method": "ping", "notify": true}}`,
		`{"url": "https://rpc.example", "kind": "jsonrpc", "request": {"batch": [{"method": "a", "params": [1], "expect": {"type": "array"}}, {"method": "b", "notify": true}]}}`,
		`{"url": "https://agent.example", "kind": "acp", "acp_variant": "communication"}`,
		`{"url": "https://mcp.example/mcp", "kind": "mcp", "canary": {"tool": "ping", "arguments": {"a": null}, "expect": {"regex": "pong"}}}`,
	} {
		slug := r.register(body)
		path := "/api/v1/endpoints/" + slug
		before := r.kept(slug)
		shown := r.get(path).want(http.StatusOK).object()
		sent := map[string]any{}
		for _, name := range []string{"request", "subscribe", "framing", "chain", "lsp", "canary", "acp_variant", "url", "kind"} {
			if v, there := shown[name]; there {
				sent[name] = v
			}
		}
		r.ask("PATCH", path, quoted(t, sent)).want(http.StatusOK)
		if diff := cmp.Diff(before, r.kept(slug)); diff != "" {
			t.Errorf("%s, after sending back what was shown (-before +after):\n%s", body, diff)
		}
	}
}
