package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testDatabase(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("everything is there after a restart", func(t *testing.T) {
		db := fresh(t)
		before, err := db.Open(t, Sealer(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		ops := newChannel(t, before, "ops")
		e := newEndpoint(t, before, "Weather", to(ops))
		out := record(t, before, checkAt(e, start, probe.Down))
		want := overview(t, before, e.Slug)
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}

		after := db.open(t)
		if diff := cmp.Diff(overview(t, after, e.Slug), want, sameLatencies); diff != "" {
			t.Errorf("endpoint after a restart (-got +want):\n%s", diff)
		}
		if i := incident(t, after, out[0].Opened); i.ResolvedAt != nil {
			t.Errorf("incident after a restart = %+v, want it open", i)
		}
		deliveries, err := after.LeaseNotices(t.Context(), me, minutes(1), lease, 10)
		if err != nil || len(deliveries) != 1 {
			t.Errorf("LeaseNotices after a restart = %v, %v, want one", deliveries, err)
		}
	})

	t.Run("another key is refused when the database is opened", func(t *testing.T) {
		db := fresh(t)
		db.open(t)
		s, err := db.Open(t, Sealer(t, 2))
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, store.ErrWrongKey) {
			t.Errorf("Open with another key: error %v, want ErrWrongKey", err)
		}
		db.open(t) // the first key still fits
	})

	t.Run("no key is refused", func(t *testing.T) {
		if _, err := fresh(t).Open(t, nil); err == nil || !strings.Contains(err.Error(), "key") {
			t.Errorf("Open without a key: error %v, want one that says so", err)
		}
	})

	t.Run("several may open an empty database at once", func(t *testing.T) {
		db := fresh(t)
		stores := make([]store.Store, 4)
		errs := make([]error, len(stores))
		var wg sync.WaitGroup
		for i := range stores {
			wg.Go(func() { stores[i], errs[i] = db.Open(t, Sealer(t, 1)) })
		}
		wg.Wait()
		for i, s := range stores {
			if errs[i] != nil {
				t.Errorf("Open %d: %v", i, errs[i])
				continue
			}
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("Ping of store %d: %v", i, err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close of store %d: %v", i, err)
			}
		}
	})

	t.Run("a schema from the future is refused", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		_, err := db.SQL(t).ExecContext(t.Context(), `
			INSERT INTO schema_migrations (version, name, applied_at)
			SELECT 9999, 'future', applied_at
			FROM schema_migrations
			WHERE version = 1`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Open(t, Sealer(t, 1)); err == nil || !strings.Contains(err.Error(), "newer rollcall") {
			t.Errorf("Open: error %v, want one that says to run a newer rollcall", err)
		}
		if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "9999") {
			t.Errorf("Ping: error %v, want one that names the version", err)
		}
	})

	t.Run("what is cancelled writes nothing and counts as a failure", func(t *testing.T) {
		s := fresh(t).open(t)
		e := newEndpoint(t, s, "Weather")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Record(ctx, []store.Check{checkAt(e, start, probe.Up)}, judge); !store.IsFailure(err) {
			t.Errorf("Record: error %v, want a failure", err)
		}
		if kept := allChecks(t, s, e); len(kept) != 0 {
			t.Errorf("%d checks are kept, want none", len(kept))
		}
	})
}
