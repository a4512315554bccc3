package probe_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

const (
	client = "probe & co"
	secret = "s3cret/of the+client"
)

// guarded returns a target behind plan, whose client the authorization server knows.
func guarded(t *testing.T, plan probetest.AuthPlan) (*probetest.Auth, probe.Target) {
	t.Helper()
	plan.ClientID, plan.Secret = client, secret
	a := probetest.NewAuth(t, plan, one(nil))
	return a, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: a.URL, Transcript: true,
		Options: probe.Options{OAuth: &probe.OAuth{ClientID: client, ClientSecret: secret}}}
}

// tight fails the test when anything of a result holds one of the secrets.
func tight(t *testing.T, r probe.Result, secrets ...string) {
	t.Helper()
	shown, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(secrets, secret, url.QueryEscape(secret), "issued-token-", "Bearer is") {
		if strings.Contains(string(shown), s) {
			t.Errorf("the result holds %q: %s", s, shown)
		}
	}
}

func TestTokenIsFoundAndUsed(t *testing.T) {
	const resource, server = "oauth/resource-metadata", "oauth/server-metadata"
	const refused = "m!auth_required "
	for name, tc := range map[string]struct {
		plan  probetest.AuthPlan
		steps string
	}{
		"the 401 says where":           {probetest.AuthPlan{Advertises: "header"}, refused + resource + " " + server + " token m"},
		"at the place of its path":     {probetest.AuthPlan{Advertises: "inserted"}, refused + resource + " " + server + " token m"},
		"at the root":                  {probetest.AuthPlan{Advertises: "root"}, refused + resource + " " + resource + " " + server + " token m"},
		"a tenant":                     {probetest.AuthPlan{Tenant: "/t1"}, refused + resource + " " + server + " token m"},
		"OpenID":                       {probetest.AuthPlan{Place: "openid"}, refused + resource + " " + server + " " + server + " token m"},
		"OpenID of a tenant":           {probetest.AuthPlan{Tenant: "/t1", Place: "openid"}, refused + resource + " " + server + " " + server + " token m"},
		"OpenID behind a tenant":       {probetest.AuthPlan{Tenant: "/t1", Place: "appended"}, refused + resource + " " + server + " " + server + " " + server + " token m"},
		"by the body":                  {probetest.AuthPlan{Methods: []string{"client_secret_post"}}, refused + resource + " " + server + " token m"},
		"by the header":                {probetest.AuthPlan{Methods: []string{"private_key_jwt", "client_secret_basic"}}, refused + resource + " " + server + " token m"},
		"a token that does not last":   {probetest.AuthPlan{Lifetime: 5}, refused + resource + " " + server + " token m"},
		"metadata of the whole origin": {probetest.AuthPlan{Advertises: "root", Resource: "/"}, refused + resource + " " + resource + " " + server + " token m"},
	} {
		t.Run(name, func(t *testing.T) {
			a, target := guarded(t, tc.plan)
			r := ask(t, target)
			check(t, r, want{verdict: probe.Up, steps: tc.steps})
			tight(t, r)
			about := a.URL
			if tc.plan.Resource == "/" {
				about = strings.TrimSuffix(a.URL, "/mcp")
			}
			if forms := a.Forms(); len(forms) != 1 || !strings.Contains(forms[0]+"&", "resource="+url.QueryEscape(about)+"&") {
				t.Errorf("token requests %q, want one for %s", forms, about)
			}
			if r.Facts.RemoteAddr != strings.TrimSuffix(strings.TrimPrefix(a.URL, "http://"), "/mcp") {
				t.Errorf("remote address %s is not the endpoint's", r.Facts.RemoteAddr)
			}
		})
	}
}

func TestTokenFromAKnownPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		plan  probetest.AuthPlan
		steps string
	}{
		"by the header": {probetest.AuthPlan{Methods: []string{"client_secret_basic"}}, "token m"},
		"by the body":   {probetest.AuthPlan{Methods: []string{"client_secret_post"}}, "token token m"},
	} {
		t.Run(name, func(t *testing.T) {
			a, target := guarded(t, tc.plan)
			target.Options.OAuth.TokenURL = a.TokenURL()
			target.Options.OAuth.Scopes = []string{"read", "write"}
			r := ask(t, target)
			check(t, r, want{verdict: probe.Up, steps: tc.steps})
			tight(t, r)
			if r.Steps[0].Method != http.MethodPost || r.Steps[0].Latency <= 0 {
				t.Errorf("the token step: %+v", r.Steps[0])
			}
			if form := a.Forms()[0]; !strings.Contains(form, "scope=read+write") || strings.Contains(form, "resource=") {
				t.Errorf("asked with %s", form)
			}
		})
	}
}

func TestScopesOfAToken(t *testing.T) {
	for name, tc := range map[string]struct {
		plan probetest.AuthPlan
		own  []string
		want string
	}{
		"as the target says":   {probetest.AuthPlan{Advertises: "header", Scopes: []string{"c"}, Challenge: `scope="a b"`}, []string{"x"}, "scope=x"},
		"as the 401 says":      {probetest.AuthPlan{Advertises: "header", Scopes: []string{"c"}, Challenge: `scope="a b"`}, nil, "scope=a+b"},
		"as the metadata says": {probetest.AuthPlan{Scopes: []string{"c", "d"}}, nil, "scope=c+d"},
	} {
		t.Run(name, func(t *testing.T) {
			a, target := guarded(t, tc.plan)
			target.Options.OAuth.Scopes = tc.own
			if r := ask(t, target); r.Verdict != probe.Up {
				t.Fatalf("%s %+v", r.Verdict, r.Failure)
			}
			if form := a.Forms()[0]; !strings.Contains(form, tc.want) {
				t.Errorf("asked with %s, want %s", form, tc.want)
			}
		})
	}
}

// A token is kept for further checks, replaced once when it is refused, and not asked for again when the fresh one is
// refused too.
func TestTokensAreKept(t *testing.T) {
	a, target := guarded(t, probetest.AuthPlan{Lifetime: 3600})
	p := prober()
	steps := func() string { t.Helper(); return stepLine(p.Probe(t.Context(), target).Steps) }
	if got, want := steps(), "m!auth_required oauth/resource-metadata oauth/server-metadata token m"; got != want {
		t.Errorf("first: %s", got)
	}
	if got := steps(); got != "m" {
		t.Errorf("second: %s", got)
	}
	a.Revoke()
	if got, want := steps(), "m!credential_rejected oauth/resource-metadata oauth/server-metadata token m"; got != want {
		t.Errorf("after the token was revoked: %s", got)
	}
	if got := steps(); got != "m" {
		t.Errorf("after that: %s", got)
	}
	other := target
	other.Options.OAuth = &probe.OAuth{ClientID: client, ClientSecret: secret + "!"}
	if r := p.Probe(t.Context(), other); r.Failure == nil || r.Failure.Class != probe.ClassCredentialRejected {
		t.Errorf("another secret finds the token: %s %+v", r.Verdict, r.Failure)
	}
	brief, target2 := guarded(t, probetest.AuthPlan{Lifetime: 20})
	target2.Options.OAuth.TokenURL = brief.TokenURL()
	for range 2 {
		if got := stepLine(p.Probe(t.Context(), target2).Steps); got != "token m" {
			t.Errorf("a token that ends within the margin: %s", got)
		}
	}
}

func TestNoTokenIsHad(t *testing.T) {
	gated, unknown := probe.Gated, probe.Unknown
	rejected, server := probe.ClassCredentialRejected, probe.ClassAuthServer
	for name, tc := range map[string]struct {
		plan    probetest.AuthPlan
		verdict probe.Verdict
		step    string
		class   probe.Class
		code    int
		message string
	}{
		"another secret":      {probetest.AuthPlan{ClientID: "wrong"}, gated, "token", rejected, 401, "refuses the client: invalid_client: who is that?"},
		"not for this client": {probetest.AuthPlan{Status: 400, Body: `{"error":"unauthorized_client","error_description":"ask Bob"}`}, gated, "token", rejected, 400, "unauthorized_client: ask Bob"},
		"a scope too many":    {probetest.AuthPlan{Status: 400, Body: `{"error":"invalid_scope"}`}, gated, "token", rejected, 400, "invalid_scope"},
		"a bare 401":          {probetest.AuthPlan{Status: 401, Body: "no", Media: "text/plain"}, gated, "token", rejected, 401, "does not accept the client"},
		"an error with 200":   {probetest.AuthPlan{Body: `{"error":"invalid_client"}`}, gated, "token", rejected, 200, "invalid_client"},
		"another grant":       {probetest.AuthPlan{Status: 400, Body: `{"error":"unsupported_grant_type"}`}, unknown, "token", server, 400, "gives no token: unsupported_grant_type"},
		"in trouble":          {probetest.AuthPlan{Status: 503, Body: "<title>Down for maintenance</title>", Media: "text/html"}, unknown, "token", server, 503, "answered 503 Service Unavailable: Down for maintenance"},
		"a page":              {probetest.AuthPlan{Body: "<html>hello", Media: "text/html"}, unknown, "token", server, 200, "answered text/html without a token"},
		"nothing":             {probetest.AuthPlan{Body: "{}"}, unknown, "token", server, 200, "without a token"},
		"too much":            {probetest.AuthPlan{Body: `{"access_token":"` + strings.Repeat("x", 80<<10) + `"}`}, unknown, "token", server, 200, "answered more than 65536 bytes"},
		"another kind":        {probetest.AuthPlan{Type: "DPoP"}, unknown, "token", server, 200, "tokens of type DPoP"},
		"no header":           {probetest.AuthPlan{Body: `{"access_token":"issued-token-\n","token_type":"Bearer"}`}, unknown, "token", server, 200, "do not fit into a header"},
		"a redirect":          {probetest.AuthPlan{Status: 302, Body: "x"}, unknown, "token", server, 302, "answered 302 Found"},
		"no metadata":         {probetest.AuthPlan{Place: "none"}, unknown, "oauth/server-metadata", server, 404, "has no metadata: /.well-known/oauth-authorization-server answers 404"},
		"another issuer":      {probetest.AuthPlan{Issuer: "https://evil.example"}, unknown, "oauth/server-metadata", server, 200, "names another issuer: https://evil.example"},
		"another resource":    {probetest.AuthPlan{Resource: "https://evil.example/mcp"}, unknown, "oauth/resource-metadata", server, 200, "is about https://evil.example/mcp and not about this endpoint"},
		"a keen method":       {probetest.AuthPlan{Methods: []string{"private_key_jwt"}}, unknown, "oauth/server-metadata", server, 0, "takes neither client_secret_basic nor client_secret_post"},
	} {
		t.Run(name, func(t *testing.T) {
			a, target := guarded(t, tc.plan)
			if tc.plan.ClientID == "wrong" {
				target.Options.OAuth.ClientSecret = secret + "-of-yesterday"
			}
			r := ask(t, target)
			if f := r.Failure; r.Verdict != tc.verdict || f == nil || f.Step != tc.step || f.Class != tc.class || f.Code != tc.code || !strings.Contains(f.Message, tc.message) {
				t.Errorf("%s %+v, want %s at %s with %s %d %q", r.Verdict, f, tc.verdict, tc.step, tc.class, tc.code, tc.message)
			}
			tight(t, r)
			if n := len(a.Forms()); n > 2 {
				t.Errorf("%d token requests", n)
			}
		})
	}
}

// Where tokens are had is a place like any other: what may not be dialled is not, and blames nobody.
func TestTokensUnderEgressRules(t *testing.T) {
	_, target := guarded(t, probetest.AuthPlan{})
	for where, message := range map[string]string{
		"https://169.254.169.254/token": "cloud metadata range",
		"http://1.1.1.1/token":          "1.1.1.1:80 is a public address: a client secret goes there over https only",
		"http://127.0.0.1:1/token":      "connection refused",
	} {
		p := prober()
		if strings.Contains(where, "169.254") {
			p.Egress = probe.Egress{}
		}
		target.Options.OAuth.TokenURL = where
		r := p.Probe(t.Context(), target)
		if f := r.Failure; r.Verdict != probe.Unknown || f == nil || f.Class != probe.ClassAuthServer || f.Step != "token" || !strings.Contains(f.Message, message) {
			t.Errorf("%s: %s %+v, want %q", where, r.Verdict, f, message)
		}
		tight(t, r)
	}
}

// The 401 of a stranger must not lead a probe, and its secret, into a private network.
func TestMetadataUnderEgressRules(t *testing.T) {
	target := probe.Target{Kind: probe.KindJSONRPC, Method: "m", Options: probe.Options{OAuth: &probe.OAuth{ClientID: client, ClientSecret: secret}}}
	for named, message := range map[string]string{
		"http://169.254.169.254/latest":  "cloud metadata range",
		"file:///etc/passwd":             "at no URL that can be asked",
		"https://u:p@auth.example/where": "at no URL that can be asked",
	} {
		s := probetest.JSONRPC(t, probetest.Unauthorized(`Bearer resource_metadata="`+named+`"`))
		target.URL = s.URL
		p := probe.Prober{Egress: probe.Egress{Allow: loopback}}
		r := p.Probe(t.Context(), target)
		if f := r.Failure; r.Verdict != probe.Unknown || f == nil || f.Class != probe.ClassAuthServer || f.Step != "oauth/resource-metadata" || !strings.Contains(f.Message, message) {
			t.Errorf("%s: %s %+v, want %q", named, r.Verdict, f, message)
		}
	}
}

func TestTokenForMCP(t *testing.T) {
	s := probetest.MCP(t, probetest.LegacyOnly())
	behind, err := url.Parse(strings.TrimSuffix(s.URL, "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	a := probetest.NewAuth(t, probetest.AuthPlan{ClientID: client, Secret: secret, Advertises: "header"}, httputil.NewSingleHostReverseProxy(behind))
	r := ask(t, probe.Target{Kind: probe.KindMCP, URL: a.URL, Transcript: true, Options: probe.Options{OAuth: &probe.OAuth{ClientID: client, ClientSecret: secret}}})
	check(t, r, want{verdict: probe.Up, era: probe.EraLegacy, tools: 3,
		steps: "server/discover!auth_required oauth/resource-metadata oauth/server-metadata token server/discover!rpc_error initialize initialized tools/list close"})
	tight(t, r)
}

func TestOAuthThatCannotBeUsed(t *testing.T) {
	good := probe.OAuth{ClientID: "a", ClientSecret: "b", TokenURL: "https://auth.example/token", Scopes: []string{"x:y"}, Resource: "https://x.example/mcp"}
	with := func(change func(*probe.OAuth)) probe.Target {
		o := good
		change(&o)
		return probe.Target{Kind: probe.KindMCP, URL: "https://x.example", Options: probe.Options{OAuth: &o}}
	}
	header := with(func(*probe.OAuth) {})
	header.Headers = []probe.Header{{Name: "authorization", Value: "Bearer x"}}
	socket := with(func(*probe.OAuth) {})
	socket.Kind, socket.Method, socket.URL = probe.KindJSONRPC, "m", "tcp://x.example:1"
	for want, target := range map[string]probe.Target{
		"":                      with(func(*probe.OAuth) {}),
		"oauth.client_id is":    with(func(o *probe.OAuth) { o.ClientID = "" }),
		"oauth.token_url is":    with(func(o *probe.OAuth) { o.TokenURL = "ftp://auth.example" }),
		"oauth.resource is":     with(func(o *probe.OAuth) { o.Resource = "mcp" }),
		"oauth.scopes must":     with(func(o *probe.OAuth) { o.Scopes = []string{"a b"} }),
		"oauth sets the Author": header,
		"oauth goes with http,": socket,
	} {
		problems := target.Validate()
		if want == "" && problems != nil || want != "" && (len(problems) != 1 || !strings.HasPrefix(problems[0].Field+" "+problems[0].Message, want)) {
			t.Errorf("problems %v, want one that begins with %q", problems, want)
		}
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// A card may lead to somebody else, whose 401 must be sent neither a token nor, by way of his metadata, the secret.
func TestTokensAndSecretsStayAtHome(t *testing.T) {
	stranger := probetest.NewAuth(t, probetest.AuthPlan{ClientID: client, Secret: secret, Advertises: "header"}, one(nil))
	good := probetest.NewAuth(t, probetest.AuthPlan{ClientID: client, Secret: secret}, one(nil))
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"name":"a","description":"b","version":"1","capabilities":{},"skills":[],"defaultInputModes":["text"],
			"defaultOutputModes":["text"],"url":%q,"protocolVersion":"0.3.0"}`, stranger.URL)
	}))
	defer home.Close()
	for _, where := range []string{"", good.TokenURL()} {
		r := ask(t, probe.Target{Kind: probe.KindA2A, URL: home.URL, Transcript: true,
			Options: probe.Options{OAuth: &probe.OAuth{ClientID: client, ClientSecret: secret, TokenURL: where}}})
		if r.Verdict != probe.Gated {
			t.Errorf("token at %q: %s %+v, want gated: the stranger wants a token", where, r.Verdict, r.Failure)
		}
		if asked := stranger.Asked(); asked != nil {
			t.Errorf("token at %q: the stranger was asked %q", where, asked)
		}
		tight(t, r)
		for _, m := range r.Transcript {
			if !m.Sent && strings.Contains(m.Body, "you sent …") {
				t.Errorf("the stranger was sent a credential: %s", m.Body)
			}
		}
	}
}
