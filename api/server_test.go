package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// rules are those by which checks become a status.
var rules = alerts.Rules(scheduler.Period)

// adminToken is the bearer token of every rollcall of these tests.
const adminToken = "an admin token for tests"

// rollcall is a server on a database of its own, asked over real HTTP.
type rollcall struct {
	t       *testing.T
	store   *sqlite.DB
	api     *api.Server
	http    *httptest.Server
	session string // secret of a logged-in session

	mu      sync.Mutex
	log     bytes.Buffer   // guarded by mu
	probed  []probe.Target // guarded by mu
	changed []string       // guarded by mu: slugs
	result  probe.Result   // guarded by mu: what the next probe sees
	tested  error          // guarded by mu: what a channel test ends with
	backlog int            // guarded by mu
	woken   int            // guarded by mu: how often the dispatcher was
}

// windows is when a maintenance is under way.
func windows(m store.Maintenance, from, until time.Time) [][2]time.Time {
	var all [][2]time.Time
	for _, w := range scheduler.Windows(m, from, until) {
		all = append(all, [2]time.Time{w.Begin, w.End})
	}
	return all
}

// start returns a rollcall that sees a healthy MCP server wherever it looks. edits change its configuration.
func start(t *testing.T, edits ...func(*api.Config)) *rollcall {
	t.Helper()
	r := &rollcall{t: t, result: healthy()}
	sealer, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	r.store, err = sqlite.Open(t.Context(), storetest.MigratedSQLite(t, sqlite.Migrate), sealer)
	if err != nil {
		t.Fatalf("open database: %v", err)
	}
	t.Cleanup(func() { r.store.Close() }) //nolint:errcheck // some tests have closed it already
	cfg := api.Config{
		Store:       r.store,
		Log:         slog.New(slog.NewJSONHandler(lockedWriter{r}, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Registry:    prometheus.NewRegistry(),
		Location:    "default",
		Version:     "test",
		AdminToken:  adminToken,
		Probe:       r.probe,
		CheckNow:    r.checkNow,
		Changed:     r.noteChange,
		Period:      scheduler.Period,
		Windows:     windows,
		Noticed:     func() { locked(r, func() int { r.woken++; return 0 }) },
		TestChannel: func(context.Context, store.Channel) error { return locked(r, func() error { return r.tested }) },
		Backlog:     func() int { return locked(r, func() int { return r.backlog }) },
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	r.api, err = api.New(cfg)
	if err != nil {
		t.Fatalf("new server: %v", err)
	}
	r.http = httptest.NewServer(r.api.Handler())
	t.Cleanup(r.http.Close)
	return r
}

// healthy is what a probe of a good legacy MCP server sees.
func healthy() probe.Result {
	return probe.Result{
		Duration: 84200 * time.Microsecond,
		Kind:     probe.KindMCP,
		Era:      probe.EraLegacy,
		Verdict:  probe.Up,
		Steps: []probe.Step{
			{
				Name: "initialize", Method: "initialize", Latency: 31 * time.Millisecond, HTTPStatus: 200, BytesIn: 512,
				Phases: probe.Phases{DNS: 1200 * time.Microsecond, Connect: 8 * time.Millisecond, FirstByte: 20 * time.Millisecond},
			},
			{Name: "tools/list", Method: "tools/list", Start: 40 * time.Millisecond, Latency: 44 * time.Millisecond, HTTPStatus: 200},
		},
		Warnings: []probe.Warning{{Step: "initialized", Class: probe.ClassHTTPStatus, Code: 200, Message: "202 is due"}},
		Facts:    probe.Facts{ProtocolVersion: "2025-11-25", ServerName: "weather", Tools: new(13)},
	}
}

// broken is what a probe of a server with a JSON-RPC error sees.
func broken() probe.Result {
	f := &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error at db-7.corp.example"}
	r := healthy()
	r.Verdict, r.Failure = probe.Down, f
	r.Steps[1].Class, r.Steps[1].Code, r.Steps[1].Message = f.Class, f.Code, f.Message
	return r
}

func (r *rollcall) probe(_ context.Context, t probe.Target) probe.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probed = append(r.probed, t)
	result := r.result
	result.StartedAt = time.Now()
	return result
}

// see makes the next probes see result.
func (r *rollcall) see(result probe.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = result
}

func (r *rollcall) checkNow(ctx context.Context, slug string) (store.Check, error) {
	o, err := r.store.Endpoint(ctx, slug)
	if err != nil {
		return store.Check{}, err
	}
	result := r.probe(ctx, o.Target(o.State))
	check := store.NewCheck(o.ID, "default", result.StartedAt, result)
	_, err = r.store.Record(ctx, []store.Check{check}, rules)
	return check, err
}

func (r *rollcall) noteChange(_ context.Context, _, slug string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = append(r.changed, slug)
}

func locked[T any](r *rollcall, read func() T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return read()
}

// lockedWriter is the log of a rollcall.
type lockedWriter struct{ r *rollcall }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	return w.r.log.Write(p)
}

// logged returns everything logged so far.
func (r *rollcall) logged() string { return locked(r, r.log.String) }

// reply is an answer, read whole.
type reply struct {
	t      *testing.T
	what   string // method and path
	status int
	header http.Header
	body   string
}

// option changes a request.
type option func(*http.Request)

func nobody(q *http.Request) { q.Header.Del("Authorization") }

func header(name, value string) option {
	return func(q *http.Request) { q.Header.Set(name, value) }
}

func (r *rollcall) loggedIn() option {
	return func(q *http.Request) {
		nobody(q)
		q.AddCookie(&http.Cookie{Name: "rollcall_session", Value: r.login()})
	}
}

// passwordHash is that of the password which everybody here has, made once: it is dear by design.
var passwordHash = sync.OnceValue(func() string { return api.HashPassword(password) })

// login returns the secret of a session, with a user made for it the first time.
func (r *rollcall) login() string {
	r.t.Helper()
	if r.session != "" {
		return r.session
	}
	ctx := r.t.Context()
	setup, setupHash := store.NewSecret("")
	if err := r.store.PutSetupToken(ctx, setupHash, time.Now()); err != nil {
		r.t.Fatalf("setup token %s…: %v", setup[:3], err)
	}
	u, err := r.store.CreateFirstUser(ctx, setupHash, store.User{Name: "ada", PasswordHash: passwordHash(), Role: store.RoleAdmin})
	if err != nil {
		r.t.Fatalf("first user: %v", err)
	}
	secret, hash := store.NewSecret("")
	now := time.Now()
	err = r.store.CreateSession(ctx, store.Session{TokenHash: hash, UserID: u.ID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
	if err != nil {
		r.t.Fatalf("session: %v", err)
	}
	r.session = secret
	return secret
}

// ask sends a request with the admin's token, unless an option says otherwise; a body is sent as JSON.
func (r *rollcall) ask(method, path, body string, options ...option) reply {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.http.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+adminToken)
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	for _, o := range options {
		o(q)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(q)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read whole
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{r.t, method + " " + path, resp.StatusCode, resp.Header, string(data)}
}

func (r *rollcall) get(path string, options ...option) reply {
	r.t.Helper()
	return r.ask(http.MethodGet, path, "", options...)
}

// want fails the test unless the reply has this status.
func (a reply) want(status int) reply {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: status %d, want %d\n%s", a.what, a.status, status, a.body)
	}
	return a
}

// json reads the body into v.
func (a reply) json(v any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		a.t.Fatalf("%s: %v\n%s", a.what, err, a.body)
	}
}

// object returns the body as an object.
func (a reply) object() map[string]any {
	a.t.Helper()
	var v map[string]any
	a.json(&v)
	return v
}

// mistakes returns the fields that a problem complains of, in order.
func (a reply) mistakes() []string {
	a.t.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Fatalf("%s: content type %q, want application/problem+json", a.what, got)
	}
	var p struct {
		Title  string          `json:"title"`
		Status int             `json:"status"`
		Errors []probe.Problem `json:"errors"`
	}
	a.json(&p)
	if p.Status != a.status || p.Title == "" {
		a.t.Errorf("%s: problem says status %d, title %q; the answer has status %d", a.what, p.Status, p.Title, a.status)
	}
	fields := []string{}
	for _, e := range p.Errors {
		fields = append(fields, e.Field)
		if e.Message == "" {
			a.t.Errorf("%s: no message for %s", a.what, e.Field)
		}
	}
	return fields
}

// register registers an endpoint from a JSON object and returns its slug.
func (r *rollcall) register(body string) string {
	r.t.Helper()
	slug, _ := r.ask("POST", "/api/v1/endpoints", body).want(http.StatusCreated).object()["slug"].(string)
	return slug
}

// token makes a token of the database.
func (r *rollcall) token(name string) (secret string, token store.Token) {
	r.t.Helper()
	secret, hash := store.NewSecret("rct_")
	token, err := r.store.CreateToken(r.t.Context(), store.Token{Name: name, Hash: hash, Role: store.RoleAdmin})
	if err != nil {
		r.t.Fatalf("make a token: %v", err)
	}
	return secret, token
}
