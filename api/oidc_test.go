package api_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

// idp is a provider of identities that says of whoever comes what the test has it say.
type idp struct {
	t    *testing.T
	http *httptest.Server
	key  *rsa.PrivateKey

	mu       sync.Mutex
	claims   map[string]any // guarded by mu: of the next id token, beside those of every one
	asked    url.Values     // guarded by mu: what the browser was sent with
	answered int            // guarded by mu
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &idp{t: t, key: key}
	mux := http.NewServeMux()
	p.http = httptest.NewServer(mux)
	t.Cleanup(p.http.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.json(w, map[string]any{
			"issuer": p.http.URL, "authorization_endpoint": p.http.URL + "/authorize", "token_endpoint": p.http.URL + "/token",
			"jwks_uri": p.http.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.json(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one", "n": b64(p.key.N.Bytes()), "e": b64(big.NewInt(int64(p.key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("POST /token", p.token)
	return p
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func (p *idp) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Error(err)
	}
}

// token gives an id token for the code, if the verifier is the one that the browser's challenge was made of.
func (p *idp) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered++
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	id, secret, _ := r.BasicAuth()
	if r.PostFormValue("code") != "good" || b64(sum[:]) != p.asked.Get("code_challenge") || id != "rollcall" || secret != "HUSH" {
		http.Error(w, `{"error": "invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{
		"iss": p.http.URL, "aud": "rollcall", "sub": "42", "nonce": p.asked.Get("nonce"), "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Minute).Unix(),
	}
	for name, value := range p.claims {
		claims[name] = value
	}
	p.json(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.sign(claims)})
}

func (p *idp) sign(claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	text := b64([]byte(`{"alg":"RS256","kid":"one","typ":"JWT"}`)) + "." + b64(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	return text + "." + b64(signature)
}

func (p *idp) says(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

// use has a server log people in by the provider.
func (p *idp) use(edits ...func(*api.OIDC)) func(*api.Config) {
	return func(c *api.Config) {
		c.OIDC = &api.OIDC{Issuer: p.http.URL, ClientID: "rollcall", ClientSecret: "HUSH"}
		for _, edit := range edits {
			edit(c.OIDC)
		}
	}
}

// leave sends a browser to the provider and returns with what it was sent.
func (p *idp) leave(r *rollcall, b browser, path string) url.Values {
	r.t.Helper()
	to, err := url.Parse(b.get(r, path).want(http.StatusSeeOther).header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.String(), p.http.URL+"/authorize?") {
		r.t.Fatalf("led to %s, %v", to, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = to.Query()
	return p.asked
}

// trip takes a browser there and back.
func (p *idp) trip(r *rollcall, b browser, path string) reply {
	r.t.Helper()
	asked := p.leave(r, b, path)
	return b.get(r, "/login/oidc/callback?code=good&state="+url.QueryEscape(asked.Get("state")))
}

func TestPeopleLogInByAProviderOfIdentities(t *testing.T) {
	p := newIDP(t)
	r := start(t, p.use(func(o *api.OIDC) { o.Role = store.RoleEditor }))
	r.login()
	b := browser{}
	b.get(r, "/login?next=%2Fincidents").want(http.StatusOK).wantWords("/login/oidc?next=%2Fincidents")
	p.says(map[string]any{"preferred_username": "ada", "email": "ada@example.com"}) // whose name is another's here
	asked := p.leave(r, b, "/login/oidc?next=%2Fincidents")
	if asked.Get("code_challenge_method") != "S256" || asked.Get("response_type") != "code" || asked.Get("nonce") == "" || !strings.Contains(asked.Get("scope"), "openid") {
		t.Errorf("sent with %v", asked)
	}
	if got, want := asked.Get("redirect_uri"), r.http.URL+"/login/oidc/callback"; got != want {
		t.Errorf("to come back to %q, want %q", got, want)
	}
	back := b.get(r, "/login/oidc/callback?code=good&state="+url.QueryEscape(asked.Get("state"))).want(http.StatusSeeOther)
	if got := back.header.Get("Location"); got != "/incidents" {
		t.Errorf("led to %q, want /incidents", got)
	}
	b.wantIn(r, true)
	u := r.user("ada 2")
	if u.Role != store.RoleEditor || u.Issuer != p.http.URL || u.Subject != "42" || u.PasswordHash != "" {
		t.Errorf("made %+v", u)
	}
	if first := r.user("ada"); first.Issuer != "" || first.Role != store.RoleAdmin {
		t.Errorf("the other ada is %+v", first)
	}
	b.get(r, "/account").want(http.StatusOK).wantWords("ada 2")
	browser{}.post(r, "/login", "name", "ada 2", "password", "").want(http.StatusUnauthorized)
	browser{}.post(r, "/login", "name", "ada 2", "password", password).want(http.StatusUnauthorized)

	p.says(map[string]any{"preferred_username": "renamed"})
	again := browser{}
	p.trip(r, again, "/login/oidc").want(http.StatusSeeOther)
	again.get(r, "/account").want(http.StatusOK).wantWords("ada 2")
	p.says(map[string]any{"sub": "43", "preferred_username": "ada"})
	p.trip(r, browser{}, "/login/oidc").want(http.StatusSeeOther)
	if other := r.user("ada 3"); other.Subject != "43" {
		t.Errorf("somebody else is %+v", other)
	}
	now := time.Now()
	if _, err := r.store.UpdateUser(t.Context(), u.ID, func(u *store.User) error { u.DisabledAt = &now; return nil }); err != nil {
		t.Fatal(err)
	}
	p.says(nil)
	p.trip(r, browser{}, "/login/oidc").want(http.StatusForbidden).wantWords("This account is disabled")
	if strings.Contains(r.logged(), "HUSH") {
		t.Error("the client secret is in the log")
	}
}

func TestAProviderIsBelievedOnlyWhatItSigned(t *testing.T) {
	for name, claims := range map[string]map[string]any{
		"for another client":    {"aud": "another"},
		"of another issuer":     {"iss": "https://evil.example"},
		"with another nonce":    {"nonce": "another"},
		"without a nonce":       {"nonce": ""},
		"that is too old":       {"exp": time.Now().Add(-time.Hour).Unix()},
		"of nobody":             {"sub": ""},
		"of somebody too long":  {"sub": strings.Repeat("x", 300)},
		"of somebody not text":  {"sub": "a\x00b"},
		"with a strange domain": {"email": "eve@evil.example", "email_verified": true},
		"of nobody's address":   {"email": "eve@example.com", "email_verified": false},
		"of no address":         {"email": "", "email_verified": true},
	} {
		t.Run("not an id token "+name, func(t *testing.T) {
			p := newIDP(t)
			r := start(t, p.use(func(o *api.OIDC) { o.Domains = []string{"example.com"} }))
			r.login()
			good := map[string]any{"email": "bob@example.com", "email_verified": true}
			for key, value := range claims {
				good[key] = value
			}
			p.says(good)
			b := browser{}
			p.trip(r, b, "/login/oidc").want(http.StatusForbidden)
			b.wantIn(r, false)
			if n, err := r.store.UserCount(t.Context()); err != nil || n != 1 {
				t.Errorf("%d users, %v, want one", n, err)
			}
		})
	}
	t.Run("an address of the domain, in any case", func(t *testing.T) {
		p := newIDP(t)
		r := start(t, p.use(func(o *api.OIDC) { o.Domains = []string{"example.com"} }))
		r.login()
		p.says(map[string]any{"email": "Bob@EXAMPLE.com", "email_verified": "true", "name": "  Bob\n<b> "})
		p.trip(r, browser{}, "/login/oidc").want(http.StatusSeeOther)
		if u := r.user("Bob <b>"); u.Role != store.RoleViewer {
			t.Errorf("made %+v, want a viewer", u)
		}
	})
}

func TestALoginByAProviderIsBegunHere(t *testing.T) {
	p := newIDP(t)
	r := start(t, p.use())
	r.login()
	asked := p.leave(r, browser{}, "/login/oidc")
	state := url.QueryEscape(asked.Get("state"))
	browser{}.get(r, "/login/oidc/callback?code=good&state="+state).want(http.StatusBadRequest)
	other := browser{}
	p.leave(r, other, "/login/oidc")
	other.get(r, "/login/oidc/callback?code=good&state="+state).want(http.StatusBadRequest)
	for _, strange := range []string{"", "x", b64([]byte(`{}`)), b64([]byte(`[1`)), strings.Repeat("a", 6000)} {
		browser{"rollcall_oidc": strange}.get(r, "/login/oidc/callback?code=good&state=").want(http.StatusBadRequest)
	}
	denied := browser{}
	asked = p.leave(r, denied, "/login/oidc")
	denied.get(r, "/login/oidc/callback?error=access_denied&state="+url.QueryEscape(asked.Get("state"))).want(http.StatusForbidden)
	denied.wantIn(r, false)
	wrong := browser{}
	asked = p.leave(r, wrong, "/login/oidc")
	wrong.get(r, "/login/oidc/callback?code=bad&state="+url.QueryEscape(asked.Get("state"))).want(http.StatusForbidden)
	wrong.wantIn(r, false)
	away := browser{}
	if asked = p.leave(r, away, "/login/oidc?next=https://evil.example/"); asked == nil {
		t.Fatal("not sent")
	}
	if got := away.get(r, "/login/oidc/callback?code=good&state="+url.QueryEscape(asked.Get("state"))).want(http.StatusSeeOther).header.Get("Location"); got != "/" {
		t.Errorf("led to %q, want /", got)
	}
}

func TestASecondFactorIsAskedForAfterAProviderToo(t *testing.T) {
	p := newIDP(t)
	r := start(t, p.use())
	r.login()
	p.says(map[string]any{"preferred_username": "bob"})
	b := browser{}
	p.trip(r, b, "/login/oidc").want(http.StatusSeeOther)
	enrol(r, b)
	again := browser{}
	if got := p.trip(r, again, "/login/oidc").want(http.StatusSeeOther).header.Get("Location"); got != "/login/code" {
		t.Errorf("led to %q, want /login/code", got)
	}
	again.wantIn(r, false)
}

func TestAnAbsentProviderKeepsNothingFromStarting(t *testing.T) {
	p := newIDP(t)
	p.http.Close()
	r := start(t, p.use())
	browser{}.get(r, "/login/oidc").want(http.StatusSeeOther) // nobody is there yet: the setup link comes first
	r.login()
	browser{}.get(r, "/login/oidc").want(http.StatusBadGateway).wantWords("Provider of identities unavailable")
	browser{}.get(r, "/login").want(http.StatusOK)
	r.get("/healthz", nobody).want(http.StatusOK)
	start(t).get("/login/oidc", nobody).want(http.StatusNotFound)
}

// link has somebody ask to link their identity, and takes their browser to the provider.
func (p *idp) link(r *rollcall, b browser) url.Values {
	r.t.Helper()
	page := b.post(r, "/account", "action", "link", "old", password).want(http.StatusOK)
	to, err := url.Parse(strings.ReplaceAll(page.found(`href="(`+p.http.URL+`/authorize[^"]+)"`), "&amp;", "&"))
	if err != nil {
		r.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = to.Query()
	return p.asked
}

func back(asked url.Values) string {
	return "/login/oidc/callback?code=good&state=" + url.QueryEscape(asked.Get("state"))
}

func TestAMemberWithAPasswordLinksTheirIdentity(t *testing.T) {
	p := newIDP(t)
	r := start(t, p.use())
	b := browser{"rollcall_session": r.login()}
	host := strings.TrimPrefix(p.http.URL, "http://")
	b.get(r, "/account").want(http.StatusOK).wantWords("You can log in by "+host+" as well as with your password.", "Link my identity")
	for _, wrong := range []string{"", "not it at all"} {
		b.post(r, "/account", "action", "link", "old", wrong).want(http.StatusUnprocessableEntity).wantWords("is not your password", `href="#f-identity-old"`, `id="f-identity-old"`)
	}
	if got := b.get(r, back(p.link(r, b))).want(http.StatusSeeOther).header.Get("Location"); got != "/account?done=saved" {
		t.Errorf("led to %q", got)
	}
	ada := r.user("ada")
	if ada.Issuer != p.http.URL || ada.Subject != "42" || ada.PasswordHash == "" || ada.Role != store.RoleAdmin {
		t.Errorf("ada is %+v", ada)
	}
	b.wantIn(r, true)
	other := browser{}
	p.trip(r, other, "/login/oidc").want(http.StatusSeeOther)
	other.get(r, "/account").want(http.StatusOK).wantWords("logs in by "+host, "Unlink my identity")
	browser{}.post(r, "/login", "name", "ada", "password", password).want(http.StatusSeeOther)
	b.post(r, "/account", "action", "link", "old", password).want(http.StatusConflict).wantWords("is linked already")

	b.post(r, "/account", "action", "unlink", "old", "not it at all").want(http.StatusUnprocessableEntity).wantWords("is not your password")
	b.post(r, "/account", "action", "unlink", "old", password).want(http.StatusSeeOther)
	if ada := r.user("ada"); ada.Issuer != "" || ada.Subject != "" {
		t.Errorf("after it is unlinked, ada is %+v", ada)
	}
	b.wantIn(r, true)
	var identities [][2]any
	page, err := r.store.Audits(t.Context(), store.AuditFilter{Noun: "member"})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range page.Items {
		for _, change := range line.Changes {
			if change.Field == "identity" && line.Author == "ada" && line.Action == "member.update" {
				identities = append(identities, [2]any{change.Before, change.After})
			}
		}
	}
	known := p.http.URL + " 42"
	if diff := cmp.Diff(identities, [][2]any{{known, ""}, {"", known}}); diff != "" {
		t.Errorf("in the log of changes (-got +want):\n%s", diff)
	}
}

func TestAnIdentityIsLinkedToOneMemberByThatMember(t *testing.T) {
	p := newIDP(t)
	r := start(t, p.use())
	ada := browser{"rollcall_session": r.login()}
	p.says(map[string]any{"preferred_username": "bob"})
	bob := browser{}
	p.trip(r, bob, "/login/oidc").want(http.StatusSeeOther)

	ada.get(r, back(p.link(r, ada))).want(http.StatusConflict).wantWords("Your identity", "is that of another member")
	if u := r.user("ada"); u.Issuer != "" {
		t.Errorf("ada is %+v", u)
	}
	// Who has no password has no other way in.
	page := bob.get(r, "/account").want(http.StatusOK)
	if strings.Contains(page.body, "Unlink") || strings.Contains(page.body, "Link my identity") {
		t.Error("somebody without a password is offered to unlink their identity")
	}
	bob.post(r, "/account", "action", "unlink").want(http.StatusConflict).wantWords("is your only way in")
	if u := r.user("bob"); u.Subject != "42" {
		t.Errorf("bob is %+v", u)
	}

	// The way back is for the session that left, and for no other.
	p.says(map[string]any{"sub": "43"})
	asked := p.link(r, ada)
	for name, came := range map[string]func() browser{
		"nobody":            func() browser { return browser{} },
		"another member":    func() browser { return browser{"rollcall_session": bob["rollcall_session"]} },
		"another session":   func() browser { return r.loginAs("ada") },
		"what has no proof": func() browser { return browser{"rollcall_session": ada["rollcall_session"]} },
	} {
		b := came()
		b["rollcall_oidc"] = ada["rollcall_oidc"]
		if name == "what has no proof" {
			b["rollcall_oidc"] = b64([]byte(`{"state":"` + asked.Get("state") + `","nonce":"x","verifier":"x","link":"AAAA"}`))
		}
		got := b.get(r, back(asked))
		if got.status != http.StatusBadRequest && got.status != http.StatusForbidden {
			t.Errorf("%s comes back: %d\n%s", name, got.status, got.body)
		}
	}
	users, err := r.store.Users(t.Context())
	if err != nil || len(users) != 2 {
		t.Errorf("members %+v, %v, want ada and bob", users, err)
	}
	for _, u := range users {
		if u.Subject == "43" {
			t.Errorf("%s has got the identity", u.Name)
		}
	}
	without := start(t)
	alone := browser{"rollcall_session": without.login()}
	alone.post(without, "/account", "action", "link", "old", password).want(http.StatusNotFound)
	if strings.Contains(alone.get(without, "/account").body, "Link my identity") {
		t.Error("an identity can be linked where there is no provider")
	}
}

// loginAs logs a member in with their password.
func (r *rollcall) loginAs(name string) browser {
	r.t.Helper()
	b := browser{}
	b.post(r, "/login", "name", name, "password", password).want(http.StatusSeeOther)
	return b
}
