package storetest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// tools is a canonical tool list of tools that take nothing.
func tools(names ...string) []byte {
	list := []string{}
	for _, name := range names {
		list = append(list, fmt.Sprintf(`{"inputSchema":{"type":"object"},"name":%q}`, name))
	}
	return []byte("[" + strings.Join(list, ",") + "]")
}

// promise returns a check that found these tools.
func promise(e store.Endpoint, minute int, key string, list []byte) store.Check {
	c := checkAt(e, minutes(minute), probe.Up)
	c.Result.Contract = &probe.Contract{Key: key, Hash: fmt.Sprintf("sha256:%x", sha256.Sum256(list)), Tools: list}
	return c
}

func testContracts(t *testing.T, fresh func(t testing.TB) Database) {
	before, after := tools("alerts", "forecast"), tools("alerts")

	t.Run("the first tool list is believed at once and is no event", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")), notified)
		c := promise(e, 0, "modern", before)
		record(t, s, c, promise(e, 1, "modern", before), promise(e, 2, "modern", before))
		found := contracts(t, s, e)
		want := []store.Contract{{
			ID: found[0].ID, EndpointID: e.ID, Key: "modern", Hash: c.Result.Contract.Hash,
			FirstSeen: start, LastSeen: minutes(2), Present: true,
		}}
		if diff := cmp.Diff(found, want); diff != "" {
			t.Errorf("contracts (-got +want):\n%s", diff)
		}
		got, err := s.Contract(t.Context(), found[0].ID)
		if err != nil || string(got.Tools) != string(before) {
			t.Errorf("Contract = %s, %v, want the tools as they were", got.Tools, err)
		}
		if events := events(t, s, e); len(events) != 0 || pending(t, s) != 0 {
			t.Errorf("events %v and %d notices, want none", events, pending(t, s))
		}
	})

	t.Run("a change that two checks in a row saw is kept, told and changes nothing else", func(t *testing.T) {
		s := fresh(t).open(t)
		ops := newChannel(t, s, "ops")
		e := newEndpoint(t, s, "Weather", to(ops), notified)
		record(t, s, promise(e, 0, "modern", before))
		out := record(t, s, promise(e, 1, "modern", after))
		if len(contracts(t, s, e)) != 1 || len(events(t, s, e)) != 0 || out[0].Notices != 0 {
			t.Errorf("after one check there are %d contracts, want the first one only", len(contracts(t, s, e)))
		}
		out = record(t, s, promise(e, 2, "modern", after))
		if out[0].Opened != "" || out[0].State.Status != store.StatusUp || out[0].Notices != 1 {
			t.Errorf("outcome %+v, want no incident, up, and one notice", out[0])
		}
		found := contracts(t, s, e)
		if len(found) != 2 || !found[0].Present || found[1].Present || !found[0].FirstSeen.Equal(minutes(1)) ||
			!found[1].LastSeen.Equal(start) {
			t.Fatalf("contracts %+v, want the later one from the second check on, and the earlier one until the first", found)
		}
		removed := []probe.Change{{Rank: probe.RankBreaking, Kind: "tool_removed", Tool: "forecast", Message: "the tool is gone"}}
		if diff := cmp.Diff(found[0].Changes, removed); diff != "" {
			t.Errorf("changes (-got +want):\n%s", diff)
		}
		timeline := events(t, s, e)
		if len(timeline) != 1 {
			t.Fatalf("%d events, want one", len(timeline))
		}
		ev := timeline[0]
		var data store.ContractChanged
		if err := json.Unmarshal(ev.Data, &data); err != nil {
			t.Fatal(err)
		}
		if ev.Kind != store.EventContractChanged || !ev.At.Equal(minutes(1)) || ev.Severity != "breaking" ||
			ev.Title != "The tool list changed (1 breaking)" || data.ContractID != found[0].ID || !cmp.Equal(data.Changes, removed) {
			t.Errorf("event %+v with %+v", ev, data)
		}

		due := leaseAll(t, s, minutes(5))
		if len(due) != 1 {
			t.Fatalf("%d deliveries, want one", len(due))
		}
		d := due[0]
		if d.Event == nil || d.Notice.Kind != store.NoticeContract || d.Notice.EventID != ev.ID || d.Notice.IncidentID != "" ||
			d.Endpoint.Slug != e.Slug || d.Channel.ID != ops.ID {
			t.Fatalf("delivery %+v", d)
		}
		if d.Event.ID != ev.ID || d.Event.Title != ev.Title {
			t.Errorf("event of the delivery %+v, want %+v", d.Event, ev)
		}
		sent := store.Settlement{NoticeID: d.Notice.ID, LeaseID: d.LeaseID, At: minutes(6), Sent: true}
		if err := s.SettleNotice(t.Context(), sent); err != nil || pending(t, s) != 0 {
			t.Errorf("SettleNotice: %v, %d notices wait", err, pending(t, s))
		}
	})

	t.Run("notices of incidents and of contracts are handed out together, in the order in which they fell due", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")), notified)
		record(t, s, promise(e, 0, "modern", before), promise(e, 1, "modern", after), promise(e, 2, "modern", after),
			checkAt(e, minutes(3), probe.Down))
		var kinds []store.NoticeKind
		for _, d := range leaseAll(t, s, minutes(5)) {
			kinds = append(kinds, d.Notice.Kind)
		}
		if diff := cmp.Diff(kinds, []store.NoticeKind{store.NoticeContract, store.NoticeOpened}); diff != "" {
			t.Errorf("kinds (-got +want):\n%s", diff)
		}
	})

	t.Run("what only some checks see, nobody hears of", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")), notified)
		other := tools("else")
		record(t, s, promise(e, 0, "modern", before), promise(e, 1, "modern", after), promise(e, 2, "modern", before),
			promise(e, 3, "modern", after), promise(e, 4, "modern", other), promise(e, 5, "modern", before))
		if n := len(contracts(t, s, e)); n != 1 || len(events(t, s, e)) != 0 {
			t.Errorf("%d contracts, want the first one only", n)
		}
	})

	t.Run("a failed check in between proves nothing", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, promise(e, 0, "modern", before), promise(e, 1, "modern", after), checkAt(e, minutes(2), probe.Down),
			promise(e, 3, "modern", after))
		if n := len(contracts(t, s, e)); n != 2 || pending(t, s) != 0 {
			t.Errorf("%d contracts and %d notices, want two, and none without being asked", n, pending(t, s))
		}
	})

	t.Run("tool lists of different keys are not compared", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		record(t, s, promise(e, 0, "modern", before), promise(e, 1, "legacy", after), promise(e, 2, "modern", before), promise(e, 3, "legacy", after))
		found := contracts(t, s, e)
		if len(found) != 2 || !found[0].Present || !found[1].Present || len(events(t, s, e)) != 0 {
			t.Errorf("contracts %+v, want two that hold", found)
		}
	})

	t.Run("of a list that is too large there is the hash", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		large := tools(strings.Repeat("x", store.MaxTools))
		record(t, s, promise(e, 0, "modern", large))
		found := contracts(t, s, e)
		got, err := s.Contract(t.Context(), found[0].ID)
		if err != nil || got.Tools != nil || got.Hash == "" {
			t.Errorf("Contract = %d bytes, hash %q, %v, want the hash alone", len(got.Tools), got.Hash, err)
		}
		record(t, s, promise(e, 1, "modern", after), promise(e, 2, "modern", after))
		if timeline := events(t, s, e); len(timeline) != 1 || timeline[0].Title != "The tool list changed" {
			t.Errorf("events %+v, want one that says no more than it can", timeline)
		}
	})

	t.Run("a server that changes all the time does not fill the disk", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		var checks []store.Check
		for i := range store.MaxToolLists + 5 {
			list := tools(fmt.Sprintf("tool %d", i))
			checks = append(checks, promise(e, 2*i, "modern", list), promise(e, 2*i+1, "modern", list))
		}
		record(t, s, checks...)
		found := contracts(t, s, e)
		if len(found) != store.MaxToolLists+5 {
			t.Fatalf("%d contracts, want all of them", len(found))
		}
		for i, want := range map[int]bool{0: true, store.MaxToolLists: true, store.MaxToolLists + 2: false} {
			if c, err := s.Contract(t.Context(), found[i].ID); err != nil || (c.Tools != nil) != want {
				t.Errorf("contract %d: tools kept %v, %v, want %v", i, c.Tools != nil, err, want)
			}
		}
		names := walk(t, func(c store.Contract) string { return c.ID }, func(cursor string) (store.Page[store.Contract], error) {
			return s.Contracts(t.Context(), store.ContractFilter{EndpointID: e.ID, Limit: 7, Cursor: cursor})
		})
		all := walk(t, func(v store.Event) string { return v.ID }, func(cursor string) (store.Page[store.Event], error) {
			return s.Events(t.Context(), store.EventFilter{EndpointID: e.ID, Limit: 7, Cursor: cursor})
		})
		if len(names) != len(found) || len(all) != len(found)-1 {
			t.Errorf("%d contracts and %d events page by page, want %d and one less", len(names), len(all), len(found))
		}
	})

	t.Run("everything goes with the endpoint, and bad cursors and ids lead nowhere", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		e := newEndpoint(t, s, "Weather", to(newChannel(t, s, "ops")), notified)
		record(t, s, promise(e, 0, "modern", before), promise(e, 1, "modern", after), promise(e, 2, "modern", after))
		for _, cursor := range badCursors() {
			if _, err := s.Contracts(t.Context(), store.ContractFilter{EndpointID: e.ID, Cursor: cursor}); !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("Contracts from %q: %v, want ErrBadCursor", cursor, err)
			}
			if _, err := s.Events(t.Context(), store.EventFilter{EndpointID: e.ID, Cursor: cursor}); !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("Events from %q: %v, want ErrBadCursor", cursor, err)
			}
		}
		_, err := s.Contract(t.Context(), "con_none")
		wantNotFound(t, "Contract", err)
		if err := s.DeleteEndpoint(t.Context(), e.Slug); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"contracts", "events", "notices"} {
			if n := count(t, db, table); n != 0 {
				t.Errorf("%d rows are left in %s", n, table)
			}
		}
	})

	t.Run("hostile texts of a contract are kept as far as text goes", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		for i, list := range [][]byte{[]byte("not JSON \x00"), tools("a\x01", "\u2028"), []byte(`[{"name":"\u0000"}]`), []byte(`{}`)} {
			record(t, s, promise(e, 2*i, "mod\x00ern\xff", list), promise(e, 2*i+1, "mod\x00ern\xff", list))
		}
		if n := len(contracts(t, s, e)); n != 4 {
			t.Errorf("%d contracts, want 4", n)
		}
	})
}

// notified has an endpoint tell of changes of its tool list.
func notified(e *store.Endpoint) { e.ContractNotices = true }

func contracts(t testing.TB, s store.Store, e store.Endpoint) []store.Contract {
	t.Helper()
	page, err := s.Contracts(t.Context(), store.ContractFilter{EndpointID: e.ID, Limit: store.MaxLimit})
	if err != nil {
		t.Fatalf("Contracts: %v", err)
	}
	return page.Items
}

func events(t testing.TB, s store.Store, e store.Endpoint) []store.Event {
	t.Helper()
	page, err := s.Events(t.Context(), store.EventFilter{EndpointID: e.ID, Limit: store.MaxLimit})
	if err != nil {
		t.Fatalf("Events: %v", err)
	}
	return page.Items
}
