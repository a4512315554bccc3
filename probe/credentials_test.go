package probe_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// jwt makes a token that ends at a time, which nobody signed.
func jwt(end time.Time) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part(fmt.Appendf(nil, `{"sub":"probe","exp":%d}`, end.Unix())) + ".c2lnbmVk"
}

func TestCredentialsThatEndSoon(t *testing.T) {
	in := func(d time.Duration) string { return "Bearer " + jwt(time.Now().Add(d+time.Minute)) }
	for name, tc := range map[string]struct {
		value string
		want  string // the warning
	}{
		"in a month":          {in(30 * oneDay), ""},
		"in five days":        {in(5 * oneDay), "the token in the Authorization header ends in 5 days (" + time.Now().Add(5*oneDay+time.Minute).UTC().Format("2006-01-02") + ")"},
		"in twenty hours":     {in(20 * time.Hour), "ends in 20 hours ("},
		"the day before":      {in(-49 * time.Hour), "expired 2 days ago ("},
		"no JWT":              {"Bearer abcdefgh.ijkl", ""},
		"no JSON in the JWT":  {"Bearer a.b.c", ""},
		"an end before time":  {"Bearer " + jwt(time.Unix(-5, 0)), ""},
		"a name and password": {"Basic dXNlcjpodW50ZXIyMg==", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(one(nil))
			defer s.Close()
			r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: s.URL, Headers: []probe.Header{{Name: "Authorization", Value: tc.value}}})
			got := strings.Join(warningsOf(r, probe.ClassCredentialExpiring), "; ")
			if r.Verdict != probe.Up || tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%s %+v, warned %q, want %q", r.Verdict, r.Failure, got, tc.want)
			}
		})
	}
}

func TestExpiredTokenExplainsItsRefusal(t *testing.T) {
	s := probetest.JSONRPC(t, probetest.Unauthorized(`Bearer error="invalid_token", error_description="The access token expired"`))
	token := jwt(time.Now().Add(-73 * time.Hour))
	r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: s.URL, Headers: []probe.Header{{Name: "X-Token", Value: token, Secret: true}}})
	check(t, r, want{verdict: probe.Gated, step: "m", class: probe.ClassCredentialRejected, code: 401, steps: "m!credential_rejected",
		message: ": invalid_token: The access token expired; the token in the X-Token header expired 3 days ago ("})
}

func TestInsufficientScopeIsNamed(t *testing.T) {
	s := probetest.JSONRPC(t, probetest.HeaderAt("", "WWW-Authenticate", `Basic realm="x", Bearer error="insufficient_scope", scope="files:read files:write"`),
		probetest.StatusAt("", 403, "text/plain", ""))
	r := ask(t, probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: s.URL})
	check(t, r, want{verdict: probe.Gated, step: "m", class: probe.ClassAuthForbidden, code: 403, steps: "m!auth_forbidden",
		message: "403 Forbidden: insufficient_scope: it takes the scope files:read files:write"})
}

// What an MCP server leaves out of its 401 may be found at a well-known place.
func TestWhereA401IsExplained(t *testing.T) {
	const root, inserted = "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"
	for name, tc := range map[string]struct {
		plan  probetest.AuthPlan
		kind  probe.Kind
		want  string // the warning; empty for none
		asked string // for metadata
	}{
		"nowhere":                {probetest.AuthPlan{Bare: true, Advertises: "none"}, probe.KindMCP, "no protected resource metadata either", "GET " + inserted + " GET " + root},
		"for its path":           {probetest.AuthPlan{Bare: true, Advertises: "inserted"}, probe.KindMCP, "with its path inserted only", "GET " + inserted + " GET " + root},
		"at the root":            {probetest.AuthPlan{Bare: true, Advertises: "root"}, probe.KindMCP, "at the root only", "GET " + inserted + " GET " + root},
		"at both":                {probetest.AuthPlan{Bare: true, Advertises: "both"}, probe.KindMCP, "for its path and at the root", "GET " + inserted + " GET " + root},
		"in the 401":             {probetest.AuthPlan{Advertises: "header"}, probe.KindMCP, "", ""},
		"of what is not for MCP": {probetest.AuthPlan{Bare: true, Advertises: "none"}, probe.KindJSONRPC, "401 without a WWW-Authenticate header", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := probetest.NewAuth(t, tc.plan, http.NotFoundHandler())
			target := probe.Target{Kind: tc.kind, URL: a.URL, Era: probe.EraLegacy}
			if tc.kind == probe.KindJSONRPC {
				target.Method = "m"
			}
			r := ask(t, target)
			if r.Verdict != probe.Gated || r.Failure.Class != probe.ClassAuthRequired {
				t.Fatalf("%s %+v", r.Verdict, r.Failure)
			}
			got := strings.Join(warningsOf(r, probe.ClassAuthNotAdvertised), "; ")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("warned %q, want %q", got, tc.want)
			}
			if asked := strings.Join(a.Asked(), " "); asked != tc.asked {
				t.Errorf("asked for metadata with %q, want %q", asked, tc.asked)
			}
			for _, s := range r.Steps {
				if strings.HasPrefix(s.Name, "oauth/") {
					t.Errorf("a step that is none of the check: %+v", s)
				}
			}
		})
	}
}

func TestChallenges(t *testing.T) {
	for header, want := range map[string][]probe.Challenge{
		"":                               nil,
		"Bearer":                         {{Scheme: "Bearer", Params: map[string]string{}}},
		`Bearer realm="a, \"b\""`:        {{Scheme: "Bearer", Params: map[string]string{"realm": `a, "b"`}}},
		`Bearer Realm = x , scope="a b"`: {{Scheme: "Bearer", Params: map[string]string{"realm": "x", "scope": "a b"}}},
		`Negotiate YII=, Basic realm="x", Bearer error=e`: {{Scheme: "Negotiate", Params: map[string]string{}},
			{Scheme: "YII", Params: map[string]string{}}, {Scheme: "Basic", Params: map[string]string{"realm": "x"}}, {Scheme: "Bearer", Params: map[string]string{"error": "e"}}},
		`Bearer realm="open`: {{Scheme: "Bearer", Params: map[string]string{"realm": "open"}}},
		`=,"`:                nil,
	} {
		got := probe.ReadChallenges(header)
		if header == `Negotiate YII=, Basic realm="x", Bearer error=e` { // what follows a scheme without parameters is not of interest
			want, got = want[2:], got[len(got)-2:]
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", header, diff)
		}
	}
}

func FuzzChallenges(f *testing.F) {
	for _, seed := range []string{`Bearer realm="x", resource_metadata="https://x.example/a", scope="a b"`, "Negotiate YII==", `Basic realm="\\`, ",,=\"", "a b c=d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		list := probe.ReadChallenges(header)
		if len(list) > 10 {
			t.Errorf("%d challenges in %q", len(list), header)
		}
		for _, ch := range list {
			if ch.Scheme == "" || len(ch.Params) > 20 {
				t.Errorf("%+v in %q", ch, header)
			}
		}
	})
}

func FuzzTokenEnd(f *testing.F) {
	f.Add("Bearer " + jwt(time.Unix(1e9, 0)))
	f.Add("a.eyJleHAiOjFlOTl9.c")
	f.Fuzz(func(t *testing.T, value string) {
		if end, ok := probe.TokenEnd(value); ok && (end.Year() < 1970 || end.Year() > 9999) {
			t.Errorf("%q ends at %v", value, end)
		}
	})
}
