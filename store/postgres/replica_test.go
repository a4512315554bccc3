package postgres_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// sameLatencies has cmp compare latencies by what they would be kept as.
var sameLatencies = cmp.Comparer(func(a, b store.Latencies) bool {
	left, errLeft := a.MarshalBinary()
	right, errRight := b.MarshalBinary()
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
})

// A hot standby of Postgres' own, made as an operator would, shows what pages and badges read; it keeps nothing.
func TestAReplicaIsReadAndNeverWritten(t *testing.T) {
	server := storetest.PostgresServer(t, "wal_level=replica", "max_wal_senders=4")
	db := openStore(t, server.URL())
	e := makeEndpoints(t, db, 1)[0]
	if err := keepAll(t.Context(), db, bad(e, "default", someDay), usual(e, "default", someDay.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	standby := server.Replica(t)
	copied, err := postgres.OpenReplica(t.Context(), standby.URL(), storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close() //nolint:errcheck // it never fails

	// Also what was written since the standby was made.
	last := usual(e, "default", someDay.Add(2*time.Hour))
	if err := keepAll(t.Context(), db, last); err != nil {
		t.Fatal(err)
	}
	server.CaughtUp(t, standby)
	for name, read := range map[string]func(s store.Store) (any, error){
		"Ping":     func(s store.Store) (any, error) { return nil, s.Ping(t.Context()) },
		"Endpoint": func(s store.Store) (any, error) { return s.Endpoint(t.Context(), e.Slug) },
		"Endpoints": func(s store.Store) (any, error) {
			return s.Endpoints(t.Context(), store.EndpointFilter{})
		},
		"Uptime": func(s store.Store) (any, error) {
			hours, err := s.Uptime(t.Context(), e.ID, store.Hourly, someDay, someDay.AddDate(0, 0, 1))
			var counts []store.Counts
			for _, h := range hours {
				counts = append(counts, h.Counts)
			}
			return counts, err
		},
		"Counts": func(s store.Store) (any, error) {
			return s.Counts(t.Context(), []string{e.ID}, store.Daily, someDay)
		},
		"Checks":    func(s store.Store) (any, error) { return s.Checks(t.Context(), store.CheckFilter{EndpointID: e.ID}) },
		"Check":     func(s store.Store) (any, error) { return s.Check(t.Context(), last.ID) },
		"Incidents": func(s store.Store) (any, error) { return s.Incidents(t.Context(), store.IncidentFilter{}) },
	} {
		want, err := read(db)
		if err != nil {
			t.Fatalf("%s of the primary: %v", name, err)
		}
		got, err := read(copied)
		if diff := cmp.Diff(got, want, sameLatencies); diff != "" || err != nil {
			t.Errorf("%s of the replica (-got +want):\n%s%v", name, diff, err)
		}
	}

	at := someDay.Add(3 * time.Hour)
	for name, write := range map[string]func(ctx context.Context) error{
		"Record":         func(ctx context.Context) error { return keepAll(ctx, copied, usual(e, "default", at)) },
		"CreateEndpoint": func(ctx context.Context) error { return second(copied.CreateEndpoint(ctx, e)) },
		"UpdateEndpoint": func(ctx context.Context) error {
			return second(copied.UpdateEndpoint(ctx, e.Slug, func(e *store.Endpoint) error { e.Paused = true; return nil }))
		},
		"DeleteEndpoint": func(ctx context.Context) error { return copied.DeleteEndpoint(ctx, e.Slug) },
		"Tend":           func(ctx context.Context) error { return second(copied.Tend(ctx, store.Retention{Now: at, Checks: at})) },
		"Announce": func(ctx context.Context) error {
			return second(copied.Announce(ctx, store.Event{At: at, Kind: store.EventLocationOffline, Data: []byte(`{}`)}))
		},
		"Shift": func(ctx context.Context) error {
			return second(copied.Shift(ctx, store.Instance{ID: "a", Location: "default"}, time.Minute))
		},
		"CreateToken": func(ctx context.Context) error {
			return second(copied.CreateToken(ctx, store.Token{Name: "x", Hash: []byte("x"), Role: store.RoleAdmin}))
		},
	} {
		if err := write(t.Context()); !store.IsFailure(err) {
			t.Errorf("%s on a replica: error %v, want a failure", name, err)
		}
	}

	standby.Stop(t)
	if _, err := copied.Endpoint(t.Context(), e.Slug); !store.IsFailure(err) {
		t.Errorf("Endpoint while the replica is away: error %v, want a failure", err)
	}
	if err := keepAll(t.Context(), db, usual(e, "default", at)); err != nil {
		t.Errorf("Record while the replica is away: %v", err)
	}
	standby.Start(t)
	server.CaughtUp(t, standby)
	page, err := copied.Checks(t.Context(), store.CheckFilter{EndpointID: e.ID})
	if err != nil || len(page.Items) != 4 || page.Items[0].Result.Verdict != probe.Up {
		t.Errorf("Checks when the replica is back = %d, %v, want all 4", len(page.Items), err)
	}
}

func TestAReplicaNeedNotBeThereYet(t *testing.T) {
	db, err := postgres.OpenReplica(t.Context(), "postgres://rollcall@127.0.0.1:1/none?connect_timeout=2", storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it never fails
	if err := db.Ping(t.Context()); !store.IsFailure(err) {
		t.Errorf("Ping: error %v, want a failure", err)
	}
}
