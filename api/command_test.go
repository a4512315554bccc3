package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// local keeps an endpoint that only the person at the machine can make, and returns its path.
func (r *rollcall) local(name string, change func(*store.Endpoint)) string {
	r.t.Helper()
	e := store.NewEndpoint()
	e.Name, e.Kind = name, probe.KindMCP
	change(&e)
	e, err := r.store.CreateEndpoint(r.t.Context(), e)
	if err != nil {
		r.t.Fatal(err)
	}
	return "/api/v1/endpoints/" + e.Slug
}

func weatherServer(e *store.Endpoint) {
	e.Command = &probe.Command{
		Args: []string{"npx", "-y", "@scope/server", "--api-key", "k3y", "--token=t0ken", "--url", "https://u:p4ss@db.example/x", "--env=e-nv"},
		Env:  []probe.Header{{Name: "SECRET", Value: "e-nv", Secret: true}, {Name: "MODE", Value: "fast"}},
	}
}

func TestOnlyTheOperatorSetsACommand(t *testing.T) {
	r := start(t)
	command := `"command": {"args": ["sh", "-c", "touch /tmp/x"]}`
	socket := `"url": "unix:///run/docker.sock"`
	web := "/api/v1/endpoints/" + r.register(`{"url": "https://a.example", "name": "web", "kind": "mcp"}`)
	npx, sock := r.local("npx", weatherServer), r.local("sock", func(e *store.Endpoint) { e.URL = "unix:///run/node.sock" })
	for _, c := range []struct {
		method, path, body string
		want               string // the field complained of
	}{
		{"POST", "/api/v1/endpoints", `{` + command + `}`, "command"},
		{"POST", "/api/v1/endpoints", `{"url": "https://b.example", ` + command + `}`, "command"},
		{"POST", "/api/v1/endpoints", `{` + socket + `}`, "url"},
		{"POST", "/api/v1/endpoints", `{"url": "UNIX:///run/docker.sock"}`, "url"},
		{"POST", "/api/v1/check", `{"kind": "mcp", ` + command + `}`, "command"},
		{"POST", "/api/v1/check", `{` + socket + `}`, "url"},
		{"PATCH", web, `{` + command + `}`, "command"},
		{"PATCH", web, `{"url": "", ` + command + `}`, "command"},
		{"PATCH", web, `{` + socket + `}`, "url"},
		{"PATCH", npx, `{` + command + `}`, "command"},
		{"PATCH", npx, `{"command": null}`, "command"},
		{"PATCH", npx, `{"command": {"env": [{"name": "NODE_OPTIONS", "value": "--require /tmp/x.js"}]}}`, "command"},
		{"PATCH", npx, `{"command": {"dir": "/tmp"}}`, "command"},
		{"PATCH", npx, `{"url": "https://a.example"}`, "command"},
		{"PATCH", npx, `{"kind": "lsp"}`, "kind"},
		{"PATCH", npx, `{"canary": {"tool": "shell", "arguments": {"command": "id"}}}`, "request"},
		{"PATCH", sock, `{"url": "unix:///run/docker.sock"}`, "url"},
		{"PATCH", sock, `{"kind": "jsonrpc", "request": {"method": "pay"}}`, "request"},
		{"PATCH", sock, `{"headers": [{"name": "X", "value": "y"}]}`, "headers"},
	} {
		got := r.ask(c.method, c.path, c.body).want(http.StatusUnprocessableEntity)
		if !slices.Contains(got.mistakes(), c.want) || !strings.Contains(got.body, "only the person who runs the service") {
			t.Errorf("%s %s %s: %s, want a word about who may do that, under %q", c.method, c.path, c.body, got.body, c.want)
		}
	}
	if n := len(locked(r, func() []probe.Target { return r.probed })); n != 0 {
		t.Errorf("%d probes were made", n)
	}
	for _, path := range []string{npx, sock} {
		r.ask("PATCH", path, `{"name": "another `+path[len(path)-3:]+`", "schedule": "@every 5m", "paused": true, "tags": ["x"], "contract_notices": true}`).want(http.StatusOK)
	}
}

func TestACommandIsShownWithoutItsSecrets(t *testing.T) {
	r := start(t)
	path := r.local("npx", weatherServer)
	reply := r.get(path).want(http.StatusOK)
	for _, secret := range []string{"k3y", "t0ken", "p4ss", "e-nv"} {
		if strings.Contains(reply.body, secret) {
			t.Errorf("%q is shown: %s", secret, reply.body)
		}
	}
	var got struct {
		URL     string
		Command struct {
			Args []string
			Env  []struct{ Name, Value string }
		}
	}
	reply.json(&got)
	if got.URL != "" || got.Command.Args[2] != "@scope/server" || got.Command.Args[4] != "…" || got.Command.Env[1].Value != "fast" {
		t.Errorf("shown as %+v", got)
	}
	before := r.kept("npx")
	body := quoted(t, map[string]any{"url": "", "command": reply.object()["command"]})
	r.ask("PATCH", path, body).want(http.StatusOK)
	if diff := cmp.Diff(before, r.kept("npx")); diff != "" {
		t.Errorf("after sending back what was shown (-before +after):\n%s", diff)
	}
	for _, page := range []string{"/", "/endpoints/npx", "/endpoints/npx/edit", "/status"} {
		body := r.get(page, r.loggedIn()).want(http.StatusOK).body
		for _, secret := range []string{"k3y", "t0ken", "p4ss", "e-nv"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s shows %q", page, secret)
			}
		}
		if page == "/endpoints/npx" && !strings.Contains(body, "@scope/server") {
			t.Errorf("%s does not show the command", page)
		}
	}
}
