package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pquerna/otp/totp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

// member logs in as a member of a role, made the first time.
func (r *rollcall) member(name string, role store.Role) option {
	r.t.Helper()
	r.login() // the first member is an admin
	ctx := r.t.Context()
	u, err := r.store.UserByName(ctx, name)
	if err != nil {
		u, err = r.store.CreateUser(ctx, store.User{Name: name, PasswordHash: passwordHash(), Role: role})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return r.sessionOf(u)
}

// sessionOf returns a fresh session of a user.
func (r *rollcall) sessionOf(u store.User) option {
	r.t.Helper()
	secret, hash := store.NewSecret("")
	now := time.Now()
	err := r.store.CreateSession(r.t.Context(), store.Session{TokenHash: hash, UserID: u.ID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
	if err != nil {
		r.t.Fatal(err)
	}
	return browser{"rollcall_session": secret}.option()
}

// tokenOf makes a token of a role.
func (r *rollcall) tokenOf(role store.Role, scopes ...store.Scope) option {
	r.t.Helper()
	secret, hash := store.NewSecret("rct_")
	_, err := r.store.CreateToken(r.t.Context(), store.Token{Name: string(role), Hash: hash, Role: role, Scopes: scopes})
	if err != nil {
		r.t.Fatal(err)
	}
	return header("Authorization", "Bearer "+secret)
}

// browser is the cookies that somebody's browser has.
type browser map[string]string

func (b browser) option() option {
	return func(q *http.Request) {
		nobody(q)
		for name, value := range b {
			q.AddCookie(&http.Cookie{Name: name, Value: value})
		}
	}
}

// take keeps the cookies of an answer.
func (b browser) take(a reply) reply {
	for _, line := range a.header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		if err != nil {
			a.t.Fatal(err)
		}
		if c.MaxAge < 0 {
			delete(b, c.Name)
		} else {
			b[c.Name] = c.Value
		}
	}
	return a
}

func (b browser) get(r *rollcall, path string) reply {
	r.t.Helper()
	return b.take(r.get(path, b.option()))
}

func (b browser) post(r *rollcall, path string, fields ...string) reply {
	r.t.Helper()
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Add(fields[i], fields[i+1])
	}
	form := header("Content-Type", "application/x-www-form-urlencoded")
	return b.take(r.ask("POST", path, values.Encode(), b.option(), form))
}

// wantIn fails unless the browser is logged in, or is not.
func (b browser) wantIn(r *rollcall, in bool) {
	r.t.Helper()
	want := http.StatusSeeOther
	if in {
		want = http.StatusOK
	}
	b.get(r, "/account").want(want)
}

func (a reply) wantWords(words ...string) reply {
	a.t.Helper()
	for _, w := range words {
		if !strings.Contains(a.body, w) {
			a.t.Errorf("%s does not say %q:\n%s", a.what, w, a.body)
		}
	}
	return a
}

// found returns what the first group of a pattern matches in a page.
func (a reply) found(pattern string) string {
	a.t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(a.body)
	if m == nil {
		a.t.Fatalf("%s holds no %s:\n%s", a.what, pattern, a.body)
	}
	return strings.ReplaceAll(m[1], "&#43;", "+")
}

func (r *rollcall) user(name string) store.User {
	r.t.Helper()
	u, err := r.store.UserByName(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return u
}

// actions returns what the log holds, oldest first.
func (r *rollcall) actions() (got []string) {
	r.t.Helper()
	page, err := r.store.Audits(r.t.Context(), store.AuditFilter{Limit: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range page.Items {
		got = append([]string{a.Author + " " + a.Action}, got...)
	}
	return got
}

func TestAnInvitationMakesAMemberOnce(t *testing.T) {
	r := start(t)
	ada := browser{"rollcall_session": r.login()}
	page := ada.post(r, "/members", "action", "invite", "name", "bob", "role", "editor").want(http.StatusCreated)
	link := page.found(`value="(http[^"]*/join\?token=[^"]+)"`)
	path := strings.TrimPrefix(link, r.http.URL)
	if again := ada.get(r, "/members").want(http.StatusOK); strings.Contains(again.body, path) {
		t.Error("the link is shown twice")
	} else {
		again.wantWords("bob", "Take back")
	}
	_, token, _ := strings.Cut(path, "token=")

	bob := browser{}
	bob.get(r, path).want(http.StatusOK).wantWords(`value="bob"`)
	bob.post(r, "/join", "token", token, "name", "bob", "password", "short").want(http.StatusUnprocessableEntity).wantWords("at least 12 characters")
	both := bob.post(r, "/join", "token", token, "name", "Ada", "password", "short").want(http.StatusUnprocessableEntity)
	both.wantWords("2 things need correcting", "is taken already", "at least 12 characters")
	bob.post(r, "/join", "token", token, "name", "Ada", "password", password).want(http.StatusConflict).wantWords("is taken already")
	bob.wantIn(r, false)
	if got := bob.post(r, "/join", "token", token, "name", "Bob", "password", password).want(http.StatusSeeOther).header.Get("Location"); got != "/" {
		t.Errorf("led to %q", got)
	}
	bob.wantIn(r, true)
	if u := r.user("bob"); u.Role != store.RoleEditor {
		t.Errorf("role %q, want editor", u.Role)
	}
	bob.get(r, "/members").want(http.StatusForbidden).wantWords("Only admins may do this")
	browser{}.get(r, path).want(http.StatusForbidden).wantWords("This link does not work")
	browser{}.post(r, "/join", "token", token, "name", "carl", "password", password).want(http.StatusForbidden)
	browser{}.get(r, "/join").want(http.StatusForbidden)
	if diff := cmp.Diff(r.actions(), []string{"ada invitation.create", "Bob member.create"}); diff != "" {
		t.Errorf("log (-got +want):\n%s", diff)
	}
	if strings.Contains(r.logged(), token) {
		t.Error("the token of the link is in the log of the service")
	}
}

func TestAnAdminMakesALinkForAnotherPassword(t *testing.T) {
	r := start(t)
	ada := browser{"rollcall_session": r.login()}
	r.member("bob", store.RoleViewer)
	bob := browser{}
	bob.post(r, "/login", "name", "bob", "password", password).want(http.StatusSeeOther)
	bob.wantIn(r, true)
	page := ada.post(r, "/members", "action", "reset", "id", r.user("bob").ID).want(http.StatusCreated)
	_, token, _ := strings.Cut(page.found(`value="(http[^"]*/join\?token=[^"]+)"`), "token=")
	other := browser{}
	other.get(r, "/join?token="+token).want(http.StatusOK).wantWords("Choose another password")
	other.post(r, "/join", "token", token, "name", "mallory", "password", "another good password").want(http.StatusSeeOther)
	other.wantIn(r, true)
	bob.wantIn(r, false)
	browser{}.post(r, "/login", "name", "bob", "password", password).want(http.StatusUnauthorized)
	browser{}.post(r, "/login", "name", "bob", "password", "another good password").want(http.StatusSeeOther)
}

func TestMembersAreChangedByAdmins(t *testing.T) {
	r := start(t)
	ada := browser{"rollcall_session": r.login()}
	bob := r.member("bob", store.RoleEditor)
	id := r.user("bob").ID
	r.get("/endpoints/new", bob).want(http.StatusOK)
	ada.post(r, "/members", "action", "role", "id", id, "role", "viewer").want(http.StatusSeeOther)
	r.get("/endpoints/new", bob).want(http.StatusForbidden).wantWords("This takes the role editor")
	ada.post(r, "/members", "action", "role", "id", id, "role", "owner").want(http.StatusUnprocessableEntity).wantWords("must be viewer, editor or admin")
	ada.post(r, "/members", "action", "role", "id", r.user("ada").ID, "role", "viewer").want(http.StatusConflict).wantWords("last admin")
	ada.post(r, "/members", "action", "disable", "id", id).want(http.StatusSeeOther)
	r.get("/account", bob).want(http.StatusSeeOther)
	browser{}.post(r, "/login", "name", "bob", "password", password).want(http.StatusForbidden).wantWords("This account is disabled")
	browser{}.post(r, "/login", "name", "bob", "password", "a wrong password").want(http.StatusUnauthorized)
	ada.post(r, "/members", "action", "enable", "id", id).want(http.StatusSeeOther)
	browser{}.post(r, "/login", "name", "bob", "password", password).want(http.StatusSeeOther)
	ada.post(r, "/members", "action", "remove", "id", id).want(http.StatusOK).wantWords("Remove bob?")
	ada.post(r, "/members", "action", "remove", "id", id, "sure", "yes").want(http.StatusSeeOther)
	if _, err := r.store.User(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("bob after his removal: %v", err)
	}
	ada.post(r, "/members", "action", "remove", "id", r.user("ada").ID, "sure", "yes").want(http.StatusConflict)
	ada.post(r, "/members", "action", "disable", "id", "usr_none").want(http.StatusNotFound)
}

func TestSomebodyChangesTheirOwnPassword(t *testing.T) {
	r := start(t)
	r.login()
	here, elsewhere := browser{}, browser{}
	here.post(r, "/login", "name", "ada", "password", password).want(http.StatusSeeOther)
	elsewhere.post(r, "/login", "name", "ada", "password", password).want(http.StatusSeeOther)
	const other = "another good password"
	here.post(r, "/account", "action", "password", "old", "not it at all", "password", other).want(http.StatusUnprocessableEntity).wantWords("is not your password")
	here.post(r, "/account", "action", "password", "old", password, "password", "short").want(http.StatusUnprocessableEntity).wantWords("at least 12 characters")
	elsewhere.wantIn(r, true)
	before := here["rollcall_session"]
	here.post(r, "/account", "action", "password", "old", password, "password", other).want(http.StatusSeeOther)
	here.wantIn(r, true)
	elsewhere.wantIn(r, false)
	browser{"rollcall_session": before}.wantIn(r, false)
	browser{}.post(r, "/login", "name", "ada", "password", other).want(http.StatusSeeOther)
}

func TestSessionsAreListedAndEnded(t *testing.T) {
	r := start(t)
	r.login()
	here, there := browser{}, browser{}
	here.post(r, "/login", "name", "ada", "password", password).want(http.StatusSeeOther)
	phone := header("User-Agent", "Mozilla/5.0 (iPhone) <script>alert(1)</script> Safari/604.1\xff"+strings.Repeat("x", 1000))
	there.take(r.ask("POST", "/login", url.Values{"name": {"ada"}, "password": {password}}.Encode(), nobody, phone,
		header("Content-Type", "application/x-www-form-urlencoded"))).want(http.StatusSeeOther)
	page := here.get(r, "/account").want(http.StatusOK).wantWords("Safari on an iPhone", "127.0.0.1", "(this one)")
	if strings.Contains(page.body, "<script>alert") || strings.Contains(page.body, strings.Repeat("x", 300)) {
		t.Errorf("the page repeats what a browser says of itself:\n%s", page.body)
	}
	sessions, err := r.store.Sessions(t.Context(), r.user("ada").ID, time.Now())
	if err != nil || len(sessions) != 3 {
		t.Fatalf("sessions %+v, %v", sessions, err)
	}
	bob := r.member("bob", store.RoleViewer)
	for _, s := range sessions {
		r.ask("POST", "/account", "action=end&id="+s.ID(), bob, header("Content-Type", "application/x-www-form-urlencoded")).want(http.StatusSeeOther)
	}
	there.wantIn(r, true)
	hash := store.HashSecret(there["rollcall_session"])
	here.post(r, "/account", "action", "end", "id", store.Session{TokenHash: hash}.ID()).want(http.StatusSeeOther)
	there.wantIn(r, false)
	there.post(r, "/login", "name", "ada", "password", password).want(http.StatusSeeOther)
	here.post(r, "/account", "action", "end-others").want(http.StatusSeeOther)
	there.wantIn(r, false)
	here.wantIn(r, true)
}

// enrol sets up a second factor and returns its secret and the recovery codes.
func enrol(r *rollcall, b browser) (secret string, codes []string) {
	r.t.Helper()
	b.post(r, "/account", "action", "factor", "old", password).want(http.StatusSeeOther)
	page := b.get(r, "/account").want(http.StatusOK).wantWords(`<svg class="qr"`)
	secret = strings.ReplaceAll(page.found(`<code class="secret">([A-Z2-7 ]+)</code>`), " ", "")
	b.post(r, "/account", "action", "confirm", "code", "000000x").want(http.StatusUnprocessableEntity).wantWords("is not right")
	shown := b.post(r, "/account", "action", "confirm", "code", codeAt(r, secret, -30*time.Second)).want(http.StatusOK)
	for _, m := range regexp.MustCompile(`<li><code>([a-z2-7-]{19})</code>`).FindAllStringSubmatch(shown.body, -1) {
		codes = append(codes, m[1])
	}
	if len(codes) != 10 {
		r.t.Fatalf("%d recovery codes, want 10:\n%s", len(codes), shown.body)
	}
	return secret, codes
}

// codeAt is what an app shows a while from now.
func codeAt(r *rollcall, secret string, later time.Duration) string {
	r.t.Helper()
	code, err := totp.GenerateCode(secret, time.Now().Add(later))
	if err != nil {
		r.t.Fatal(err)
	}
	return code
}

func TestASecondFactorIsAskedForAfterThePassword(t *testing.T) {
	r := start(t)
	ada := browser{"rollcall_session": r.login()}
	ada.post(r, "/account", "action", "factor", "old", "wrong password").want(http.StatusUnprocessableEntity)
	secret, codes := enrol(r, ada)
	ada.wantIn(r, true)
	if page := ada.get(r, "/account"); strings.Contains(page.body, codes[0]) || strings.Contains(page.body, secret) {
		t.Error("secrets are shown twice")
	}

	b := browser{}
	if got := b.post(r, "/login", "name", "ada", "password", password, "next", "/incidents").want(http.StatusSeeOther).header.Get("Location"); got != "/login/code" {
		t.Fatalf("the password alone led to %q", got)
	}
	b.wantIn(r, false)
	b.get(r, "/").want(http.StatusSeeOther)
	r.get("/api/v1/endpoints", b.option()).want(http.StatusUnauthorized)
	browser{"rollcall_session": b["rollcall_half"]}.wantIn(r, false)
	b.get(r, "/login/code").want(http.StatusOK)
	b.post(r, "/login/code", "code", "123").want(http.StatusUnauthorized).wantWords("This code is not right")
	code := codeAt(r, secret, 0)
	if got := b.post(r, "/login/code", "code", code[:3]+" "+code[3:]).want(http.StatusSeeOther).header.Get("Location"); got != "/incidents" {
		t.Errorf("led to %q, want /incidents", got)
	}
	b.wantIn(r, true)
	if _, left := b["rollcall_half"]; left {
		t.Error("the half login is still there")
	}

	twice := browser{}
	twice.post(r, "/login", "name", "ada", "password", password).want(http.StatusSeeOther)
	twice.post(r, "/login/code", "code", code).want(http.StatusUnauthorized)
	twice.wantIn(r, false)
	twice.post(r, "/login/code", "code", strings.ToUpper(codes[3])).want(http.StatusSeeOther)
	twice.wantIn(r, true)
	thrice := browser{}
	thrice.post(r, "/login", "name", "ada", "password", password).want(http.StatusSeeOther)
	thrice.post(r, "/login/code", "code", codes[3]).want(http.StatusUnauthorized)
	thrice.wantIn(r, false)
	if !strings.Contains(strings.Join(r.actions(), "\n"), "ada second_factor.update") {
		t.Errorf("a recovery code was used up and the log says nothing: %v", r.actions())
	}
	twice.get(r, "/audit?noun=second_factor").want(http.StatusOK).wantWords(`<bdi class="name">ada</bdi>`)
}

func TestAHalfLoginCannotBeMadeUp(t *testing.T) {
	r := start(t)
	ada := browser{"rollcall_session": r.login()}
	secret, _ := enrol(r, ada)
	b := browser{}
	b.post(r, "/login", "name", "ada", "password", password).want(http.StatusSeeOther)
	body, seal, _ := strings.Cut(b["rollcall_half"], ".")
	for _, made := range []string{"", ".", body, body + ".", "x" + body + "." + seal, body + "." + seal[1:], strings.Repeat("a", 5000)} {
		got := browser{"rollcall_half": made}.post(r, "/login/code", "code", codeAt(r, secret, 0)).want(http.StatusSeeOther)
		if got.header.Get("Location") != "/login" || got.header.Get("Set-Cookie") != "" {
			t.Errorf("%q led to %q with %q", made, got.header.Get("Location"), got.header.Get("Set-Cookie"))
		}
	}
}

func TestCodesAreTriedAFewTimesOnly(t *testing.T) {
	r := start(t)
	ada := browser{"rollcall_session": r.login()}
	enrol(r, ada)
	b := browser{}
	b.post(r, "/login", "name", "ada", "password", password).want(http.StatusSeeOther)
	for range 20 {
		if a := b.post(r, "/login/code", "code", "123456"); a.status == http.StatusTooManyRequests {
			if a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			return
		}
	}
	t.Error("nobody was asked to wait")
}

func TestAnAdminRemovesASecondFactor(t *testing.T) {
	r := start(t)
	ada := browser{"rollcall_session": r.login()}
	r.member("bob", store.RoleViewer)
	bob := browser{}
	bob.post(r, "/login", "name", "bob", "password", password).want(http.StatusSeeOther)
	enrol(r, bob)
	ada.get(r, "/members").wantWords("second factor", "Remove second factor")
	ada.post(r, "/members", "action", "factor", "id", r.user("bob").ID).want(http.StatusSeeOther)
	in := browser{}
	in.post(r, "/login", "name", "bob", "password", password).want(http.StatusSeeOther)
	in.wantIn(r, true)
	enrol(r, in)
	in.post(r, "/account", "action", "no-factor", "old", "wrong password").want(http.StatusUnprocessableEntity)
	in.post(r, "/account", "action", "no-factor", "old", password).want(http.StatusSeeOther)
	if r.user("bob").HasFactor {
		t.Error("bob still has a second factor")
	}
}

func TestTokensAreMadeWithRoleScopesAndEnd(t *testing.T) {
	r := start(t)
	end := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
	body := `{"name": "ci", "role": "editor", "scopes": ["endpoints"], "expires_at": "` + end.Format(time.RFC3339) + `"}`
	made := r.ask("POST", "/api/v1/tokens", body).want(http.StatusCreated).object()
	secret, _ := made["secret"].(string)
	how := header("Authorization", "Bearer "+secret)
	r.get("/api/v1/endpoints", how).want(http.StatusOK)
	r.get("/api/v1/incidents", how).want(http.StatusForbidden)
	r.get("/api/v1/tokens", how).want(http.StatusForbidden)
	r.ask("POST", "/api/v1/endpoints", `{"url": "https://weather.example/mcp"}`, how).want(http.StatusCreated)
	listed := r.get("/api/v1/tokens").want(http.StatusOK)
	if strings.Contains(listed.body, secret) {
		t.Error("the secret is listed")
	}
	listed.wantWords(`"scopes":["endpoints"]`, `"role":"editor"`, end.Format("2006-01-02T15:04:05"))
	id, _ := made["id"].(string)
	r.ask("DELETE", "/api/v1/tokens/"+id, "").want(http.StatusNoContent)
	r.get("/api/v1/endpoints", how).want(http.StatusUnauthorized)
	r.ask("DELETE", "/api/v1/tokens/tok_none", "").want(http.StatusNotFound)
	for _, tt := range []struct {
		body string
		want []string
	}{
		{`{}`, []string{"name"}},
		{`{"name": "x", "role": "owner", "scopes": ["all", "checks", "checks"]}`, []string{"role", "scopes[0]", "scopes[2]"}},
		{`{"name": "x", "expires_at": "2020-01-01T00:00:00Z"}`, []string{"expires_at"}},
		{`{"name": "x", "expires_at": "soon", "secret": "mine", "more": 1}`, []string{"expires_at", "more", "secret"}},
	} {
		got := r.ask("POST", "/api/v1/tokens", tt.body).want(http.StatusUnprocessableEntity).mistakes()
		if !sameWords(got, tt.want) {
			t.Errorf("%s: mistakes %v, want %v", tt.body, got, tt.want)
		}
	}
	bound := r.tokenOf(store.RoleAdmin, store.ScopeMembers)
	r.ask("POST", "/api/v1/tokens", `{"name": "x", "scopes": ["channels"]}`, bound).want(http.StatusUnprocessableEntity)
	child := r.ask("POST", "/api/v1/tokens", `{"name": "x", "role": "admin"}`, bound).want(http.StatusCreated)
	child.wantWords(`"scopes":["members"]`)
}

func TestTokensAreMadeAndRevokedOnAPage(t *testing.T) {
	r := start(t)
	ada := browser{"rollcall_session": r.login()}
	page := ada.post(r, "/tokens", "action", "create", "name", "ci <b>", "role", "viewer", "scopes", "endpoints", "scopes", "checks", "expires_at", "2031-01-31").want(http.StatusCreated)
	secret := page.found(`value="(rct_[^"]+)"`)
	r.get("/api/v1/endpoints", header("Authorization", "Bearer "+secret)).want(http.StatusOK)
	again := ada.get(r, "/tokens").want(http.StatusOK).wantWords("ci &lt;b&gt;", "endpoints, checks")
	if strings.Contains(again.body, secret) {
		t.Error("the secret is shown twice")
	}
	ada.post(r, "/tokens", "action", "create", "name", "", "role", "viewer").want(http.StatusUnprocessableEntity).wantWords("is required")
	ada.post(r, "/tokens", "action", "create", "name", "x", "role", "viewer", "expires_at", "soon").want(http.StatusUnprocessableEntity).wantWords("must be a day")
	tokens, err := r.store.Tokens(t.Context())
	if err != nil || len(tokens) != 1 {
		t.Fatalf("tokens %+v, %v", tokens, err)
	}
	ada.post(r, "/tokens", "action", "revoke", "id", tokens[0].ID).want(http.StatusSeeOther)
	r.get("/api/v1/endpoints", header("Authorization", "Bearer "+secret)).want(http.StatusUnauthorized)
	ada.get(r, "/tokens").wantWords("Revoked")
}

func TestTheLogSaysWhoChangedWhatWithoutSecrets(t *testing.T) {
	r := start(t)
	editor := r.tokenOf(store.RoleEditor)
	slug, _ := r.ask("POST", "/api/v1/endpoints", `{"url": "https://weather.example/mcp?api_key=HUSHHUSHHUSH", "name": "Weather",
		"headers": [{"name": "Authorization", "value": "HUSH", "secret": true}]}`, editor).want(http.StatusCreated).object()["slug"].(string)
	r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"name": "<i>Wetter</i>"}`, r.member("bob", store.RoleEditor), header("Content-Type", "application/json")).want(http.StatusOK)
	r.ask("PATCH", "/api/v1/endpoints/"+slug, `{"tags": ["x"]}`, r.member("vic", store.RoleViewer), header("Content-Type", "application/json")).want(http.StatusForbidden)
	var log struct {
		Items []struct {
			Author     string         `json:"author"`
			AuthorKind string         `json:"author_kind"`
			Address    string         `json:"address"`
			Action     string         `json:"action"`
			Target     string         `json:"target"`
			Changes    []store.Change `json:"changes"`
		} `json:"items"`
	}
	answer := r.get("/api/v1/audit").want(http.StatusOK)
	if err := json.Unmarshal([]byte(answer.body), &log); err != nil || len(log.Items) != 2 {
		t.Fatalf("%v\n%s", err, answer.body)
	}
	if strings.Contains(answer.body, "HUSH") {
		t.Errorf("the log holds a secret:\n%s", answer.body)
	}
	newest := log.Items[0]
	if newest.Author != "bob" || newest.AuthorKind != "member" || newest.Address != "127.0.0.1" || newest.Action != "endpoint.update" || newest.Target != slug {
		t.Errorf("newest line %+v", newest)
	}
	if diff := cmp.Diff(newest.Changes, []store.Change{{Field: "name", Before: "Weather", After: "<i>Wetter</i>"}}); diff != "" {
		t.Errorf("changes (-got +want):\n%s", diff)
	}
	if first := log.Items[1]; first.Author != "token editor" || first.AuthorKind != "token" {
		t.Errorf("first line %+v", first)
	}
	r.get("/api/v1/audit?author=bob&noun=endpoint&limit=1").want(http.StatusOK).wantWords("endpoint.update")
	r.get("/api/v1/audit?cursor=x").want(http.StatusBadRequest)
	ada := browser{"rollcall_session": r.login()}
	page := ada.get(r, "/audit?noun=endpoint").want(http.StatusOK).wantWords("&lt;i&gt;Wetter&lt;/i&gt;", "/endpoints/"+slug, "bob", "token editor", "127.0.0.1")
	if strings.Contains(page.body, "HUSH") || strings.Contains(page.body, "<i>Wetter") {
		t.Errorf("the page holds a secret, or markup of a user:\n%s", page.body)
	}
	ada.get(r, "/audit?author=nobody-here").want(http.StatusOK).wantWords("Nothing was changed")
}

func TestMembersByTheAPI(t *testing.T) {
	r := start(t)
	r.member("bob", store.RoleViewer)
	id := r.user("bob").ID
	r.get("/api/v1/members").want(http.StatusOK).wantWords(`"name":"ada"`, `"name":"bob"`)
	got := r.ask("PATCH", "/api/v1/members/"+id, `{"role": "editor", "disabled": true}`).want(http.StatusOK).object()
	if got["role"] != "editor" || got["disabled"] != true {
		t.Errorf("member %v", got)
	}
	r.ask("PATCH", "/api/v1/members/"+id, `{"role": "owner"}`).want(http.StatusUnprocessableEntity)
	r.ask("PATCH", "/api/v1/members/"+r.user("ada").ID, `{"disabled": true}`).want(http.StatusConflict)
	r.ask("DELETE", "/api/v1/members/"+id, "").want(http.StatusNoContent)
	r.ask("DELETE", "/api/v1/members/"+id, "").want(http.StatusNotFound)
}

func TestASessionIsNotedAsSeenOnceAMinute(t *testing.T) {
	r := start(t)
	r.login()
	u := r.user("ada")
	secret, hash := store.NewSecret("")
	begun := time.Now().Add(-10 * time.Minute)
	err := r.store.CreateSession(t.Context(), store.Session{TokenHash: hash, UserID: u.ID, CreatedAt: begun, ExpiresAt: begun.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	seen := func() time.Time {
		s, _, err := r.store.Session(t.Context(), hash, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return s.LastSeenAt
	}
	b := browser{"rollcall_session": secret}
	b.wantIn(r, true)
	first := seen()
	if since := time.Since(first); since < 0 || since > 2*time.Minute || !first.Equal(first.Truncate(time.Minute)) {
		t.Errorf("last seen %v, want this minute", first)
	}
	b.wantIn(r, true)
	if again := seen(); again.Sub(first) != 0 && again.Sub(first) != time.Minute {
		t.Errorf("last seen %v, then %v", first, again)
	}
}

func TestACodeIsOfItsOwnStepAndTheOnesBesideIt(t *testing.T) {
	const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" // of RFC 6238, appendix B
	at := time.Unix(1111111109, 0)
	for _, tt := range []struct {
		code string
		now  time.Time
		want bool
	}{
		{"081804", at, true},
		{"081804", at.Add(30 * time.Second), true},
		{"081804", at.Add(-30 * time.Second), true},
		{"081804", at.Add(61 * time.Second), false},
		{"081804", at.Add(-90 * time.Second), false},
		{"08180", at, false},
		{"0818040", at, false},
		{"", at, false},
	} {
		step, ok := api.StepForTest(secret, tt.code, tt.now)
		if ok != tt.want || ok && step != at.Unix()/30 {
			t.Errorf("code %q at %v: step %d, %v, want %v", tt.code, tt.now, step, ok, tt.want)
		}
	}
}

func TestInvitationsAreTriedAFewTimesOnly(t *testing.T) {
	r := start(t)
	for range 40 {
		if a := (browser{}).get(r, "/join?token=x"); a.status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("nobody was asked to wait")
}
