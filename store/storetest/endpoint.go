package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testEndpoints(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("an endpoint comes back as it was given", func(t *testing.T) {
		s := fresh(t).open(t)
		zulu, alpha := newChannel(t, s, "zulu"), newChannel(t, s, "alpha")
		given := store.Endpoint{
			Name:         `Wetter "süd" ' \ 🌦`,
			Kind:         probe.KindJSONRPC,
			URL:          "https://rpc.example/v1?key=a%00b",
			Headers:      []probe.Header{{Name: "Authorization", Value: "Bearer s3cret", Secret: true}, {Name: "X-A", Value: "b"}},
			Request:      store.Request{Method: "eth_call", Params: json.RawMessage(`[ {"b":1, "a":"\u0000<"} , 1.50 ]`)},
			Schedule:     "CRON_TZ=Europe/Berlin */5 * * * *",
			Timeout:      1500 * time.Millisecond,
			DegradedOver: 1234567 * time.Nanosecond,
			Confirm:      store.Confirm{Failures: 3, Successes: 2, After: 7 * time.Second},
			Public:       true,
			Tags:         []string{"prod", "ärger", `"quoted"`},
			Channels:     []string{zulu.ID, alpha.ID},
			Options: probe.Options{
				Expect: probe.Expect{Path: "$.a", Equals: json.RawMessage(`{"b":"<&>"}`), CEL: "status == 200"},
				Batch:  []probe.Call{{Method: "a", Params: json.RawMessage(`[1]`)}, {Method: "b", Notify: true}},
				TLS:    probe.TLS{CA: "-----BEGIN", ClientKey: "s3cret", ExpiryWarning: -1},
				OAuth:  &probe.OAuth{ClientID: "me", ClientSecret: "s3cret", Scopes: []string{"read"}},
				Chain:  probe.Chain{ID: "1", MaxAge: time.Minute},
				Canary: &probe.Canary{Tool: "ping", Arguments: json.RawMessage(`{}`)},
			},
			ContractNotices: true,
			Locations:       []string{"fra", "nyc 2", "ärger"},
			Quorum:          2,
		}
		kept, err := s.CreateEndpoint(t.Context(), given)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(kept.ID, "ep_") || kept.CreatedAt.IsZero() || !kept.UpdatedAt.Equal(kept.CreatedAt) {
			t.Errorf("id %q, created %v, updated %v: want them filled in", kept.ID, kept.CreatedAt, kept.UpdatedAt)
		}
		want := given
		want.ID, want.Slug, want.CreatedAt, want.UpdatedAt = kept.ID, "wetter-s-d", kept.CreatedAt, kept.UpdatedAt
		if diff := cmp.Diff(kept, want); diff != "" {
			t.Errorf("CreateEndpoint (-got +want):\n%s", diff)
		}
		got := overview(t, s, kept.Slug)
		if diff := cmp.Diff(got.Endpoint, want); diff != "" {
			t.Errorf("Endpoint (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(got.State, store.State{Status: store.StatusPending, Since: kept.CreatedAt}); diff != "" {
			t.Errorf("state of a fresh endpoint (-got +want):\n%s", diff)
		}
		if got.LastCheck != nil || got.Status() != store.StatusPending {
			t.Errorf("last check %v, status %q, want none and pending", got.LastCheck, got.Status())
		}
	})

	t.Run("headers are sealed", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		newEndpoint(t, s, "Weather", func(e *store.Endpoint) {
			e.Headers = []probe.Header{{Name: "Authorization", Value: "s3cret", Secret: true}}
		})
		var sealed []byte
		if err := db.SQL(t).QueryRowContext(t.Context(), `SELECT headers FROM endpoints`).Scan(&sealed); err != nil {
			t.Fatal(err)
		}
		if len(sealed) == 0 || strings.Contains(string(sealed), "s3cret") {
			t.Errorf("headers are kept as %q", sealed)
		}
	})

	t.Run("options and commands are sealed, and gone when there are none", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) {
			e.Options.OAuth = &probe.OAuth{ClientID: "me", ClientSecret: "s3cret"}
		})
		sealed := func() (options []byte) {
			t.Helper()
			if err := db.SQL(t).QueryRowContext(t.Context(), `SELECT options FROM endpoints`).Scan(&options); err != nil {
				t.Fatal(err)
			}
			return options
		}
		if got := sealed(); len(got) == 0 || strings.Contains(string(got), "s3cret") {
			t.Errorf("options are kept as %q", got)
		}
		edit(t, s, e, func(e *store.Endpoint) { e.Options.OAuth = nil })
		if got := sealed(); got != nil {
			t.Errorf("no options are kept as %q", got)
		}
	})

	t.Run("an endpoint with a command is named after its program", func(t *testing.T) {
		s := fresh(t).open(t)
		command := &probe.Command{
			Args: []string{"/usr/local/bin/weather-server", "--key", "s3cret"},
			Env:  []probe.Header{{Name: "TOKEN", Value: "t0ken", Secret: true}}, Dir: "/srv",
		}
		e := newEndpoint(t, s, "", func(e *store.Endpoint) { e.URL, e.Command = "", command })
		if e.Name != "weather-server" || e.Slug != "weather-server" {
			t.Errorf("name %q, slug %q, want those of the program", e.Name, e.Slug)
		}
		got := overview(t, s, e.Slug)
		if diff := cmp.Diff(got.Command, command); diff != "" {
			t.Errorf("command (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(got.Target(got.State).Command, command); diff != "" {
			t.Errorf("command of the target (-got +want):\n%s", diff)
		}
		for query, want := range map[string]int{"weather-server": 1, "s3cret": 0, "t0ken": 0} {
			page, err := s.Endpoints(t.Context(), store.EndpointFilter{Query: query})
			if err != nil || len(page.Items) != want {
				t.Errorf("%d endpoints are found by %q, %v, want %d", len(page.Items), query, err, want)
			}
		}
	})

	t.Run("options that cannot be kept are refused", func(t *testing.T) {
		s := fresh(t).open(t)
		e := store.NewEndpoint()
		e.URL = "https://a.example"
		for _, wrong := range []probe.Options{
			{TLS: probe.TLS{CA: strings.Repeat("x", 1<<20)}},
			{Expect: probe.Expect{Equals: json.RawMessage(`{`)}},
		} {
			e.Options = wrong
			_, err := s.CreateEndpoint(t.Context(), e)
			wantInvalid(t, err, "request")
		}
	})

	t.Run("a missing name is made from the URL and unique", func(t *testing.T) {
		s := fresh(t).open(t)
		newEndpoint(t, s, "other", func(e *store.Endpoint) { e.Name = "MCP.example-3" })
		var got [][2]string
		for range 3 {
			e := newEndpoint(t, s, "", func(e *store.Endpoint) { e.URL = "https://MCP.example/a" })
			got = append(got, [2]string{e.Name, e.Slug})
		}
		want := [][2]string{{"mcp.example", "mcp-example"}, {"mcp.example-2", "mcp-example-2"}, {"mcp.example-4", "mcp-example-4"}}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("names and slugs (-got +want):\n%s", diff)
		}
	})

	t.Run("names that differ have slugs that differ", func(t *testing.T) {
		s := fresh(t).open(t)
		a, b := newEndpoint(t, s, "Big Sky"), newEndpoint(t, s, "big-sky")
		if a.Slug != "big-sky" || b.Slug != "big-sky-2" {
			t.Errorf("slugs %q and %q, want big-sky and big-sky-2", a.Slug, b.Slug)
		}
	})

	t.Run("a taken name or slug is a conflict", func(t *testing.T) {
		s := fresh(t).open(t)
		newEndpoint(t, s, "Ärger")
		newEndpoint(t, s, "b", func(e *store.Endpoint) { e.Slug = "here" })
		e := store.NewEndpoint()
		e.Name, e.URL = "äRGER", "https://a.example"
		_, err := s.CreateEndpoint(t.Context(), e)
		wantConflict(t, err, "name")
		e.Name, e.Slug = "c", "here"
		_, err = s.CreateEndpoint(t.Context(), e)
		wantConflict(t, err, "slug")
		_, err = s.UpdateEndpoint(t.Context(), "here", func(e *store.Endpoint) error { e.Name = "ärger"; return nil })
		wantConflict(t, err, "name")
		if _, err := s.UpdateEndpoint(t.Context(), "here", func(e *store.Endpoint) error { e.Name = "B"; return nil }); err != nil {
			t.Errorf("an endpoint may change the case of its own name: %v", err)
		}
	})

	t.Run("every channel that is wrong is named, and nothing is kept", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		e := store.NewEndpoint()
		e.Name, e.URL, e.Channels = "a", "https://a.example", []string{"ch_none", ops.ID, ops.ID, "\x00"}
		_, err := s.CreateEndpoint(t.Context(), e)
		wantInvalid(t, err, "channels[0]", "channels[2]", "channels[3]")
		if _, err := s.Endpoint(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Endpoint: error %v, want ErrNotFound", err)
		}
	})

	t.Run("text that no database keeps is invalid", func(t *testing.T) {
		s := fresh(t).open(t)
		e := store.NewEndpoint()
		e.Name, e.URL, e.Request.Method, e.Tags = "a\x00", "https://a.example/\xff", "m\x00", []string{"ok", "\xff"}
		_, err := s.CreateEndpoint(t.Context(), e)
		wantInvalid(t, err, "name", "url", "request.method", "tags[1]")
	})

	t.Run("what is not there is not found", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, slug := range []string{"none", "", "\x00", "\xff", "'; DROP TABLE endpoints; --", "%"} {
			_, err := s.Endpoint(t.Context(), slug)
			wantNotFound(t, "Endpoint", err)
			_, err = s.UpdateEndpoint(t.Context(), slug, func(*store.Endpoint) error { return nil })
			wantNotFound(t, "UpdateEndpoint", err)
			wantNotFound(t, "DeleteEndpoint", s.DeleteEndpoint(t.Context(), slug))
		}
	})

	t.Run("an endpoint goes with all its history", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		stays := newEndpoint(t, s, "Stays")
		c := checkAt(e, start, probe.Down)
		out := record(t, s, c, checkAt(stays, start, probe.Down), checkAt(e, minutes(60), probe.Down), checkAt(stays, minutes(60), probe.Down))
		if err := s.DeleteEndpoint(t.Context(), e.Slug); err != nil {
			t.Fatal(err)
		}
		_, err := s.Incident(t.Context(), out[0].Opened)
		wantNotFound(t, "Incident", err)
		_, err = s.Check(t.Context(), c.ID)
		wantNotFound(t, "Check", err)
		if kept := allChecks(t, s, e); len(kept) != 0 {
			t.Errorf("%d checks are listed, want none", len(kept))
		}
		for _, table := range []string{"endpoints", "endpoint_states", "places", "uptime_days", "incidents"} {
			if n := count(t, db, table); n != 1 {
				t.Errorf("%s has %d rows, want that of the other endpoint only", table, n)
			}
		}
		for _, table := range []string{"notices", "endpoint_channels"} {
			if n := count(t, db, table); n != 0 {
				t.Errorf("%s has %d rows, want none", table, n)
			}
		}
		newEndpoint(t, s, "Weather") // its name is free again
	})

	t.Run("endpoints made at once have names and slugs of their own", func(t *testing.T) {
		s := fresh(t).open(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				e := store.NewEndpoint()
				e.URL = "https://same.example"
				if _, err := s.CreateEndpoint(t.Context(), e); err != nil {
					t.Errorf("CreateEndpoint: %v", err)
				}
			})
		}
		wg.Wait()
		page, err := s.Endpoints(t.Context(), store.EndpointFilter{Limit: -1})
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, o := range page.Items {
			names[o.Name] = true
		}
		for n := range 8 {
			if name := store.Numbered("same.example", n+1); !names[name] {
				t.Errorf("no endpoint is named %s", name)
			}
		}
	})
}

func testEndpointList(t *testing.T, fresh func(t testing.TB) Database) {
	list := func(t *testing.T, s store.Store, f store.EndpointFilter) []string {
		t.Helper()
		return walk(t, func(o store.Overview) string { return o.Name }, func(cursor string) (store.Page[store.Overview], error) {
			f.Cursor = cursor
			return s.Endpoints(t.Context(), f)
		})
	}
	want := func(t *testing.T, s store.Store, f store.EndpointFilter, names ...string) {
		t.Helper()
		if diff := cmp.Diff(list(t, s, f), names); diff != "" {
			t.Errorf("Endpoints(%+v) (-got +want):\n%s", f, diff)
		}
	}

	t.Run("by name without regard to case, in pages of any size", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, name := range []string{"b", "Ä", "a", "C", "z", "é", "A-2"} {
			newEndpoint(t, s, name)
		}
		names := []string{"a", "A-2", "b", "C", "z", "Ä", "é"}
		for _, limit := range []int{0, 1, 2, 3, 7, 8, -1} {
			want(t, s, store.EndpointFilter{Limit: limit}, names...)
		}
	})

	t.Run("filters", func(t *testing.T) {
		s := fresh(t).open(t)
		up := newEndpoint(t, s, "Up", func(e *store.Endpoint) { e.Public, e.Tags = true, []string{"prod", "50%"} })
		down := newEndpoint(t, s, "Down", func(e *store.Endpoint) { e.Tags = []string{"prod"} })
		newEndpoint(t, s, "Pending", func(e *store.Endpoint) { e.URL = "https://100%25_sure.example/Köln" })
		paused := newEndpoint(t, s, "Paused")
		record(t, s, checkAt(up, start, probe.Up), checkAt(down, start, probe.Down), checkAt(paused, start, probe.Up))
		pause(t, s, paused)

		want(t, s, store.EndpointFilter{Status: store.StatusUp}, "Up")
		want(t, s, store.EndpointFilter{Status: store.StatusDown}, "Down")
		want(t, s, store.EndpointFilter{Status: store.StatusPending}, "Pending")
		want(t, s, store.EndpointFilter{Status: store.StatusPaused}, "Paused")
		want(t, s, store.EndpointFilter{Status: "\x00"})
		want(t, s, store.EndpointFilter{Tag: "prod"}, "Down", "Up")
		want(t, s, store.EndpointFilter{Tag: "50%"}, "Up")
		want(t, s, store.EndpointFilter{Tag: "pro"})
		want(t, s, store.EndpointFilter{Tag: "\x00"})
		want(t, s, store.EndpointFilter{PublicOnly: true}, "Up")
		want(t, s, store.EndpointFilter{Name: "pAUSED"}, "Paused")
		want(t, s, store.EndpointFilter{Name: "Pau"})
		want(t, s, store.EndpointFilter{Query: "pAU", Limit: 1}, "Paused")
		want(t, s, store.EndpointFilter{Query: "DOWN.EXAMPLE/M"}, "Down")
		want(t, s, store.EndpointFilter{Query: "KÖLN"}, "Pending")
		want(t, s, store.EndpointFilter{Query: "%"}, "Pending")
		want(t, s, store.EndpointFilter{Query: "_"}, "Pending")
		for _, query := range []string{"p%d", `\`, "'", "\x00", "\xff", strings.Repeat("a", 100_000)} {
			want(t, s, store.EndpointFilter{Query: query})
		}
		want(t, s, store.EndpointFilter{Query: "p", Status: store.StatusUp, Tag: "prod", PublicOnly: true}, "Up")
	})

	t.Run("some of them, by id", func(t *testing.T) {
		s := fresh(t).open(t)
		a, b, c := newEndpoint(t, s, "a"), newEndpoint(t, s, "b"), newEndpoint(t, s, "c", func(e *store.Endpoint) { e.Public = true })
		ids := []string{c.ID, a.ID, a.ID, "ep_none", "\x00", "\xff"}
		for _, limit := range []int{0, 1, -1} {
			want(t, s, store.EndpointFilter{IDs: ids, Limit: limit}, "a", "c")
		}
		want(t, s, store.EndpointFilter{IDs: ids, PublicOnly: true}, "c")
		want(t, s, store.EndpointFilter{IDs: []string{b.ID}}, "b")
		want(t, s, store.EndpointFilter{IDs: []string{}})
		want(t, s, store.EndpointFilter{IDs: nil}, "a", "b", "c")
		want(t, s, store.EndpointFilter{Slugs: []string{"c", "a", "none\x00"}}, "a", "c")
		want(t, s, store.EndpointFilter{Slugs: []string{"c", "a"}, PublicOnly: true}, "c")
		want(t, s, store.EndpointFilter{Slugs: []string{}})
	})

	t.Run("the roster names all of them with their latest edit", func(t *testing.T) {
		s := fresh(t).open(t)
		roster := func() map[string]time.Time {
			t.Helper()
			members, err := s.Roster(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			byID := map[string]time.Time{}
			for _, m := range members {
				byID[m.ID] = m.UpdatedAt
			}
			if len(byID) != len(members) {
				t.Errorf("roster %+v names an endpoint twice", members)
			}
			return byID
		}
		if got := roster(); len(got) != 0 {
			t.Errorf("roster of nothing: %v", got)
		}
		a, b, paused := newEndpoint(t, s, "a"), newEndpoint(t, s, "b"), newEndpoint(t, s, "c", func(e *store.Endpoint) { e.Paused = true })
		record(t, s, checkAt(a, start, probe.Down))
		all := map[string]time.Time{a.ID: a.UpdatedAt, b.ID: b.UpdatedAt, paused.ID: paused.UpdatedAt}
		if diff := cmp.Diff(roster(), all); diff != "" {
			t.Errorf("roster (-got +want):\n%s", diff)
		}
		edit(t, s, b, func(e *store.Endpoint) { e.Tags = []string{"x"} })
		all[b.ID] = overview(t, s, b.Slug).UpdatedAt
		if err := s.DeleteEndpoint(t.Context(), a.Slug); err != nil {
			t.Fatal(err)
		}
		delete(all, a.ID)
		if diff := cmp.Diff(roster(), all); diff != "" || !all[b.ID].After(b.UpdatedAt) {
			t.Errorf("roster after an edit and a removal (-got +want):\n%s", diff)
		}
	})

	t.Run("a search does not tell keys that are cut from URLs", func(t *testing.T) {
		s := fresh(t).open(t)
		const key, later = "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "aa1e2d3c4b5a69788796a5b4c3d2e1f0"
		node := newEndpoint(t, s, "Node", func(e *store.Endpoint) {
			e.URL = "https://node.example/rpc/" + key + "?api_key=Hush7&network=goerli"
		})
		for _, query := range []string{"0f1e", key, "Hush7", "hus", "api_key=h"} {
			want(t, s, store.EndpointFilter{Query: query})
		}
		for _, query := range []string{"https://NODE.example/rpc/", "api_key=", "network=goerli"} {
			want(t, s, store.EndpointFilter{Query: query}, "Node")
		}
		_, err := s.UpdateEndpoint(t.Context(), node.Slug, func(e *store.Endpoint) error {
			e.URL = "https://archive.example/" + later
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want(t, s, store.EndpointFilter{Query: later[:4]})
		want(t, s, store.EndpointFilter{Query: "archive.example"}, "Node")
	})

	t.Run("a page goes on where the last one ended, whatever came and went", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, name := range []string{"a", "b", "c", "d"} {
			newEndpoint(t, s, name)
		}
		first, err := s.Endpoints(t.Context(), store.EndpointFilter{Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		newEndpoint(t, s, "aa")
		if err := s.DeleteEndpoint(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		want(t, s, store.EndpointFilter{Limit: 50}, "a", "aa", "c", "d")
		second, err := s.Endpoints(t.Context(), store.EndpointFilter{Limit: 2, Cursor: first.Next})
		if err != nil || len(second.Items) != 2 || second.Items[0].Name != "c" || second.Next != "" {
			t.Errorf("second page = %+v, %v, want c and d and no more", second, err)
		}
	})

	t.Run("a cursor of somebody else's is refused", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, cursor := range badCursors() {
			if _, err := s.Endpoints(t.Context(), store.EndpointFilter{Cursor: cursor}); !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("Endpoints with cursor %q: error %v, want ErrBadCursor", cursor, err)
			}
		}
	})
}

func testEdits(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("an edit changes what it may", func(t *testing.T) {
		s := fresh(t).open(t)
		ops, dev := newChannel(t, s, "ops"), newChannel(t, s, "dev")
		e := newEndpoint(t, s, "Weather", to(ops), func(e *store.Endpoint) {
			e.Headers = []probe.Header{{Name: "A", Value: "1", Secret: true}}
		})
		got, err := s.UpdateEndpoint(t.Context(), e.Slug, func(e *store.Endpoint) error {
			if len(e.Headers) != 1 || e.Headers[0].Value != "1" {
				t.Errorf("headers to edit = %v, want the one there is with its value", e.Headers)
			}
			e.ID, e.Slug, e.CreatedAt = "ep_other", "other", time.Time{}
			e.Name, e.Tags, e.Channels = "Sky", []string{"x"}, []string{dev.ID, ops.ID}
			e.Headers = append(e.Headers, probe.Header{Name: "B", Value: "2"})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := e
		want.Name, want.Tags, want.Channels = "Sky", []string{"x"}, []string{dev.ID, ops.ID}
		want.Headers, want.UpdatedAt = append(want.Headers, probe.Header{Name: "B", Value: "2"}), got.UpdatedAt
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("UpdateEndpoint (-got +want):\n%s", diff)
		}
		if got.UpdatedAt.Before(e.UpdatedAt) {
			t.Errorf("updated at %v, want not before %v", got.UpdatedAt, e.UpdatedAt)
		}
		if diff := cmp.Diff(overview(t, s, e.Slug).Endpoint, want); diff != "" {
			t.Errorf("Endpoint after the edit (-got +want):\n%s", diff)
		}
		if page, err := s.Endpoints(t.Context(), store.EndpointFilter{Query: "sky"}); err != nil || len(page.Items) != 1 {
			t.Errorf("search by the name it was given: %v, %v", page.Items, err)
		}
	})

	t.Run("an edit that changes nothing writes nothing", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")), func(e *store.Endpoint) {
			e.Headers = []probe.Header{{Name: "A", Value: "1", Secret: true}}
			e.Request = store.Request{Method: "m", Params: []byte(`[1]`)}
		})
		bare := newEndpoint(t, s, "Bare")
		headers := func() (sealed []byte) { // sealed anew, the same headers look different
			t.Helper()
			err := db.SQL(t).QueryRowContext(t.Context(), `SELECT headers FROM endpoints WHERE slug = 'weather'`).Scan(&sealed)
			if err != nil {
				t.Fatal(err)
			}
			return sealed
		}
		before := headers()
		for _, change := range []func(*store.Endpoint){
			func(*store.Endpoint) {},
			func(e *store.Endpoint) { e.ID, e.Slug, e.CreatedAt, e.UpdatedAt = "ep_other", "other", start, start },
			func(e *store.Endpoint) { e.Name, e.Headers[0].Value = "Weather", "1" },
		} {
			edit(t, s, e, change)
		}
		edit(t, s, bare, func(e *store.Endpoint) {
			e.Tags, e.Channels, e.Headers, e.Request.Params = []string{}, []string{}, []probe.Header{}, []byte{}
		})
		if diff := cmp.Diff(overview(t, s, e.Slug).Endpoint, e); diff != "" {
			t.Errorf("Endpoint (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(overview(t, s, bare.Slug).Endpoint, bare); diff != "" {
			t.Errorf("bare Endpoint (-got +want):\n%s", diff)
		}
		if !bytes.Equal(headers(), before) {
			t.Error("the headers were written again")
		}
		edit(t, s, e, func(e *store.Endpoint) { e.Headers[0].Value = "2" })
		if got := overview(t, s, e.Slug).UpdatedAt; !got.After(e.UpdatedAt) {
			t.Errorf("updated at %v after an edit of a header, want after %v", got, e.UpdatedAt)
		}
	})

	t.Run("an edit that fails changes nothing", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		mistake := errors.New("a mistake")
		for _, change := range []func(*store.Endpoint) error{
			func(e *store.Endpoint) error { e.Name = "x"; return mistake },
			func(e *store.Endpoint) error { e.Name = ""; return nil },
			func(e *store.Endpoint) error { e.Name, e.Channels = "x", []string{"ch_none"}; return nil },
		} {
			if _, err := s.UpdateEndpoint(t.Context(), e.Slug, change); err == nil {
				t.Error("UpdateEndpoint succeeded")
			}
		}
		_, err := s.UpdateEndpoint(t.Context(), e.Slug, func(*store.Endpoint) error { return mistake })
		if !errors.Is(err, mistake) {
			t.Errorf("UpdateEndpoint: error %v, want that of the change", err)
		}
		if diff := cmp.Diff(overview(t, s, e.Slug).Endpoint, e); diff != "" {
			t.Errorf("Endpoint (-got +want):\n%s", diff)
		}
	})

	t.Run("edits at once are made one after the other", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				_, err := s.UpdateEndpoint(t.Context(), e.Slug, func(e *store.Endpoint) error {
					e.Tags = append(e.Tags, fmt.Sprint(i))
					return nil
				})
				if err != nil {
					t.Errorf("UpdateEndpoint: %v", err)
				}
			})
		}
		wg.Wait()
		if tags := overview(t, s, e.Slug).Tags; len(tags) != 8 {
			t.Errorf("tags %v, want one of each edit", tags)
		}
	})

	t.Run("pausing ends an open incident and tells its channels", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops"), newChannel(t, s, "dev")))
		out := record(t, s, checkAt(e, start, probe.Down))
		pause(t, s, e)
		i := incident(t, s, out[0].Opened)
		if i.ResolvedAt == nil || i.Resolution != store.ResolutionPaused || i.ResolvedAt.Before(i.StartedAt) {
			t.Errorf("incident = %+v, want it resolved by the pause", i)
		}
		if n := pending(t, s); n != 4 {
			t.Errorf("%d notices wait, want two openings and two resolutions", n)
		}
		if status := overview(t, s, e.Slug).Status(); status != store.StatusPaused {
			t.Errorf("status %q, want paused", status)
		}
	})

	t.Run("a check of a paused endpoint is kept and changes nothing", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
		record(t, s, checkAt(e, start, probe.Down))
		pause(t, s, e)
		before := pending(t, s)
		last := checkAt(e, minutes(1), probe.Down)
		out := record(t, s, last)
		if out[0].Opened != "" || out[0].Resolved != "" || pending(t, s) != before {
			t.Errorf("outcome %+v, want no incident and no notice", out[0])
		}
		if o := overview(t, s, e.Slug); o.LastCheck == nil || o.LastCheck.ID != last.ID {
			t.Errorf("last check %v, want %s", o.LastCheck, last.ID)
		}
	})

	t.Run("a resumed endpoint starts again as pending", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		c := checkAt(e, start, probe.Down)
		c.Result.Era = probe.EraLegacy
		record(t, s, c)
		pause(t, s, e)
		edit(t, s, e, func(e *store.Endpoint) { e.Paused = false })
		state := overview(t, s, e.Slug).State
		want := store.State{
			Status: store.StatusPending, Since: state.Since,
			LastCheckID: c.ID, LastCheckAt: c.Result.StartedAt, LastVerdict: probe.Down, LastDuration: c.Result.Duration,
			Kind: probe.KindMCP, Era: probe.EraLegacy,
		}
		if diff := cmp.Diff(state, want); diff != "" {
			t.Errorf("state (-got +want):\n%s", diff)
		}
	})

	t.Run("an endpoint with another target starts again, its incident left to the judge", func(t *testing.T) {
		for name, retarget := range map[string]func(*store.Endpoint){
			"kind":    func(e *store.Endpoint) { e.Kind = probe.KindMCP },
			"url":     func(e *store.Endpoint) { e.URL += "x" },
			"request": func(e *store.Endpoint) { e.Request.Method = "m" },
		} {
			t.Run(name, func(t *testing.T) {
				s := fresh(t).open(t)
				e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")))
				height := uint64(7)
				c := checkAt(e, start, probe.Down)
				c.Result.Facts.Height, c.Result.Era = &height, probe.EraModern
				out := record(t, s, c)
				edit(t, s, e, retarget)
				state := overview(t, s, e.Slug).State
				want := store.State{
					Status: store.StatusPending, Since: state.Since,
					LastCheckID: c.ID, LastCheckAt: c.Result.StartedAt, LastVerdict: probe.Down, LastDuration: c.Result.Duration,
				}
				if diff := cmp.Diff(state, want); diff != "" {
					t.Errorf("state (-got +want):\n%s", diff)
				}
				if i := incident(t, s, out[0].Opened); i.ResolvedAt != nil {
					t.Errorf("incident = %+v, want it open", i)
				}
				again := record(t, s, checkAt(e, minutes(1), probe.Up))
				if again[0].Resolved != out[0].Opened {
					t.Errorf("the good check resolved %q, want %q", again[0].Resolved, out[0].Opened)
				}
			})
		}
	})

	t.Run("any other edit leaves the state alone", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, checkAt(e, start, probe.Down))
		before := overview(t, s, e.Slug).State
		edit(t, s, e, func(e *store.Endpoint) { e.Name, e.Schedule, e.Public = "Sky", "@hourly", true })
		if diff := cmp.Diff(overview(t, s, e.Slug).State, before); diff != "" {
			t.Errorf("state (-got +want):\n%s", diff)
		}
	})
}

func pause(t testing.TB, s store.Store, e store.Endpoint) {
	t.Helper()
	edit(t, s, e, func(e *store.Endpoint) { e.Paused = true })
}

func edit(t testing.TB, s store.Store, e store.Endpoint, change func(*store.Endpoint)) {
	t.Helper()
	_, err := s.UpdateEndpoint(t.Context(), e.Slug, func(e *store.Endpoint) error { change(e); return nil })
	if err != nil {
		t.Fatalf("UpdateEndpoint(%q): %v", e.Slug, err)
	}
}

func count(t testing.TB, db Database, table string) int {
	t.Helper()
	n := 0
	if err := db.SQL(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func wantNotFound(t testing.TB, call string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%s: error %v, want ErrNotFound", call, err)
	}
}

func wantConflict(t testing.TB, err error, field string) {
	t.Helper()
	conflict, ok := errors.AsType[store.Conflict](err)
	if !ok || conflict.Field != field {
		t.Errorf("error %v, want a Conflict about %s", err, field)
	}
}

func wantInvalid(t testing.TB, err error, fields ...string) {
	t.Helper()
	invalid, ok := errors.AsType[store.Invalid](err)
	if !ok {
		t.Errorf("error %v, want an Invalid about %v", err, fields)
		return
	}
	var got []string
	for _, p := range invalid.Problems {
		got = append(got, p.Field)
	}
	if diff := cmp.Diff(got, fields); diff != "" {
		t.Errorf("fields of %v (-got +want):\n%s", err, diff)
	}
}
