package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

// joinPath returns the path of the link in an answer.
func (a reply) joinPath() string {
	a.t.Helper()
	link, _ := a.object()["link"].(string)
	_, path, found := strings.Cut(link, "/join?token=")
	if !found {
		a.t.Fatalf("the link is %q", link)
	}
	return "/join?token=" + path
}

func TestInvitationsAreMadeListedAndTakenBackByREST(t *testing.T) {
	r := start(t)
	r.login()
	made := r.ask("POST", "/api/v1/invitations", `{"name": "Bob", "role": "editor"}`).want(http.StatusCreated)
	path := made.joinPath()
	want := map[string]any{"member": nil, "name": "Bob", "role": "editor", "author": "the admin token"}
	got := made.object()
	for _, changing := range []string{"id", "created_at", "expires_at", "link"} {
		if got[changing] == nil {
			t.Errorf("%s is not there", changing)
		}
		delete(got, changing)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("invitation (-got +want):\n%s", diff)
	}
	listed := r.get("/api/v1/invitations").want(http.StatusOK).wantWords(`"name":"Bob"`)
	if strings.Contains(listed.body, "link") || strings.Contains(listed.body, strings.TrimPrefix(path, "/join?token=")) {
		t.Errorf("the list gives the link away: %s", listed.body)
	}
	b := browser{}
	b.post(r, "/join", "token", strings.TrimPrefix(path, "/join?token="), "name", "Bob", "password", password).want(http.StatusSeeOther)
	if u := r.user("Bob"); u.Role != store.RoleEditor {
		t.Errorf("made %+v, want an editor", u)
	}

	back := r.ask("POST", "/api/v1/invitations", `{}`).want(http.StatusCreated)
	if role := back.object()["role"]; role != "viewer" {
		t.Errorf("without a role it is for a %v, want a viewer", role)
	}
	id, _ := back.object()["id"].(string)
	r.ask("DELETE", "/api/v1/invitations/"+id, "").want(http.StatusNoContent)
	r.ask("DELETE", "/api/v1/invitations/"+id, "").want(http.StatusNotFound)
	r.get(back.joinPath(), nobody).want(http.StatusForbidden)
	if diff := cmp.Diff(len(r.get("/api/v1/invitations").object()["items"].([]any)), 0); diff != "" {
		t.Errorf("invitations that are left (-got +want):\n%s", diff)
	}
}

func TestALinkForAnotherPasswordIsMadeByREST(t *testing.T) {
	r := start(t)
	r.member("bob", store.RoleViewer)
	id := r.user("bob").ID
	made := r.ask("POST", "/api/v1/invitations", `{"member": "`+id+`"}`).want(http.StatusCreated)
	if got := made.object(); got["member"] != id || got["name"] != "bob" || got["role"] != "viewer" {
		t.Errorf("invitation %v", got)
	}
	secret := strings.TrimPrefix(made.joinPath(), "/join?token=")
	browser{}.post(r, "/join", "token", secret, "password", "another good password").want(http.StatusSeeOther)
	browser{}.post(r, "/login", "name", "bob", "password", "another good password").want(http.StatusSeeOther)
	r.ask("POST", "/api/v1/invitations", `{"member": "usr_none"}`).want(http.StatusNotFound)
}

func TestWhatAnInvitationCannotBe(t *testing.T) {
	r := start(t)
	for body, want := range map[string][]string{
		`{"role": "owner"}`: {"role"},
		`{"name": "a\nb"}`:  {"name"},
		`{"name": 1, "id": "x", "link": "y", "who": 1}`: {"name", "id", "link", "who"},
		`{"member": "usr_1", "role": "admin"}`:          {"role"},
	} {
		if diff := cmp.Diff(r.ask("POST", "/api/v1/invitations", body).want(http.StatusUnprocessableEntity).mistakes(), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", body, diff)
		}
	}
	// Whoever comes by a link may do all that the role may: a token that may not lets nobody in.
	bound := r.tokenOf(store.RoleAdmin, store.ScopeMembers)
	r.ask("POST", "/api/v1/invitations", `{"role": "admin"}`, bound).want(http.StatusForbidden).wantWords("use one without scopes")
	r.get("/api/v1/invitations", bound).want(http.StatusOK)
	r.member("carol", store.RoleViewer)
	carol := "/api/v1/members/" + r.user("carol").ID
	r.ask("PATCH", carol, `{"role": "admin"}`, bound).want(http.StatusForbidden).wantWords("use one without scopes")
	r.ask("PATCH", carol, `{"disabled": true}`, bound).want(http.StatusOK)
	r.ask("POST", "/api/v1/invitations", `{"role": "admin"}`, r.tokenOf(store.RoleAdmin)).want(http.StatusCreated)
}
