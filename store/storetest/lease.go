package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

// leaseTTL is long enough that nothing runs out in a test unless the test says so.
const leaseTTL = time.Hour

// Leases tests that a driver does what store.Leaser says. fresh makes an empty database whose store is a Leaser.
func Leases(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("the first instance takes everything", func(t *testing.T) {
		p := newParish(t, fresh)
		s := p.shift("a")
		want := store.Shift{Held: leasesOf(1, 0, store.Shards), Share: store.Shards, Live: 1, TTL: leaseTTL}
		if diff := cmp.Diff(s, want); diff != "" {
			t.Errorf("Shift (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(p.shift("a"), want); diff != "" {
			t.Errorf("Shift once more (-got +want):\n%s", diff)
		}
		p.wantGlance("a", store.Glance{Held: store.Shards, Live: 1})
	})

	t.Run("the instances of a location are listed with what they hold", func(t *testing.T) {
		p := newParish(t, fresh)
		p.shift("a")
		p.shift("b")
		s, ok := p.Leaser.(store.Store)
		if !ok {
			t.Fatal("the leaser is no store")
		}
		found, err := s.Locations(t.Context())
		if err != nil || len(found) != 1 || len(found[0].Instances) != 2 {
			t.Fatalf("Locations = %+v, %v, want one with two instances", found, err)
		}
		a, b := found[0].Instances[0], found[0].Instances[1]
		if a.ID != "a" || a.Shards != store.Shards || !a.Live || b.ID != "b" || b.Shards != 0 || !b.Live || b.Since.IsZero() || !b.ExpiresAt.After(b.Since) {
			t.Errorf("instances %+v and %+v, want a with all shards and b with none, both alive", a, b)
		}
	})

	t.Run("a glance before anybody came", func(t *testing.T) {
		p := newParish(t, fresh)
		p.wantGlance("a", store.Glance{Free: store.Shards})
	})

	t.Run("who joins gets what the others hand over", func(t *testing.T) {
		p := newParish(t, fresh)
		p.shift("a")
		b := p.shift("b")
		if len(b.Held) != 0 || b.Share != 64 || b.Live != 2 {
			t.Errorf("Shift of who joins = %+v; want none of what is held, 64 as its share, two alive", b)
		}
		p.wantGlance("b", store.Glance{Live: 2})
		a := p.shift("a")
		if len(a.Held) != store.Shards || !slices.Equal(a.Surplus, numbers(64, 128)) {
			t.Errorf("Shift of who was there = %d shards, surplus %v; want all, and half of them as surplus", len(a.Held), a.Surplus)
		}
		p.release("a", a.Surplus)
		p.wantGlance("b", store.Glance{Free: 64, Live: 2})
		if diff := cmp.Diff(p.shift("b").Held, leasesOf(2, 64, 128)); diff != "" {
			t.Errorf("after the others handed over (-got +want):\n%s", diff)
		}
		if a := p.shift("a"); len(a.Held) != 64 || a.Surplus != nil {
			t.Errorf("Shift of who handed over = %d shards, surplus %v; want 64 and none", len(a.Held), a.Surplus)
		}
	})

	t.Run("nobody takes more than is fair", func(t *testing.T) {
		for n := 1; n <= 7; n++ {
			p := newParish(t, fresh)
			p.settle(names(n)...)
			for i, name := range names(n) {
				want := store.Shards / n
				if i < store.Shards%n {
					want++
				}
				if s := p.shift(name); len(s.Held) != want || s.Share != want || s.Surplus != nil || s.Live != n {
					t.Errorf("%d of %d holds %d, share %d, surplus %v, %d alive; want %d", i, n, len(s.Held), s.Share, s.Surplus, s.Live, want)
				}
			}
			p.wantDivided(names(n)...)
		}
	})

	t.Run("more instances than shards", func(t *testing.T) {
		p := newParish(t, fresh)
		p.shift("a")
		p.exec(`
			INSERT INTO instances (location, id, expires_at, steady_since)
			SELECT 'here', 'b' || n, now() + interval '1 hour', now()
			FROM generate_series(1, $1) n`, store.Shards)
		a, c := p.shift("a"), p.shift("c")
		if a.Share != 1 || len(a.Surplus) != store.Shards-1 || c.Share != 0 || len(c.Held) != 0 {
			t.Errorf("shares of the first and of one too many = %d and %d, want one and none", a.Share, c.Share)
		}
	})

	t.Run("who leaves makes room at once", func(t *testing.T) {
		p := newParish(t, fresh)
		p.settle("a", "b")
		if err := p.Leave(t.Context(), p.instance("a")); err != nil {
			t.Fatal(err)
		}
		p.wantGlance("b", store.Glance{Held: 64, Free: 64, Live: 1})
		s := p.shift("b")
		want := append(leasesOf(2, 0, 64), leasesOf(2, 64, 128)...) // the first half was a's alone, the second a's before b's
		if diff := cmp.Diff(s.Held, want); diff != "" {
			t.Errorf("after the other left (-got +want):\n%s", diff)
		}
		if err := p.Leave(t.Context(), p.instance("a")); err != nil {
			t.Errorf("Leave once more: %v", err)
		}
	})

	t.Run("who dies is followed when its leases run out and not before", func(t *testing.T) {
		p := newParish(t, fresh)
		p.settle("a", "b")
		if s := p.shift("b"); len(s.Held) != 64 {
			t.Fatalf("%d shards, want 64", len(s.Held))
		}
		p.runOut("a")
		p.wantGlance("b", store.Glance{Held: 64, Free: 64, Live: 1})
		p.listen("b")
		if s := p.shift("b"); len(s.Held) != store.Shards || s.Live != 1 {
			t.Errorf("%d shards, %d alive; want all and one", len(s.Held), s.Live)
		}
		if got := p.count(`SELECT count(*) FROM instances`); got != 1 {
			t.Errorf("%d instances are kept, want those alive only", got)
		}
	})

	t.Run("leases that ran out are renewed when nobody took them", func(t *testing.T) {
		p := newParish(t, fresh)
		p.settle("a", "b")
		before := p.shift("a").Held
		p.runOut("a")
		if diff := cmp.Diff(p.shift("a").Held, before); diff != "" {
			t.Errorf("renewed late (-got +want):\n%s", diff)
		}
	})

	t.Run("who comes back first leaves the others time to come back too", func(t *testing.T) {
		p := newParish(t, fresh)
		p.settle("a", "b")
		before := p.shift("b").Held
		p.listen("a", "b")
		p.runOut("a", "b")
		for range 2 {
			if s := p.shift("a"); len(s.Held) != 64 {
				t.Errorf("who comes back first holds %d shards, want its own 64", len(s.Held))
			}
		}
		if diff := cmp.Diff(p.shift("b").Held, before); diff != "" {
			t.Errorf("who comes back second (-got +want):\n%s", diff)
		}
	})

	t.Run("a pause in its own heartbeats makes no instance believe that the others are dead", func(t *testing.T) {
		p := newParish(t, fresh)
		p.settle("a", "b")
		p.listen("a", "b")
		p.runOut("b")
		p.exec(`UPDATE instances SET expires_at = now() + interval '29 minutes' WHERE id = 'a'`)
		if s := p.shift("a"); len(s.Held) != 64 {
			t.Errorf("after a pause it holds %d shards, want its own 64", len(s.Held))
		}
		p.listen("a")
		p.exec(`UPDATE instances SET expires_at = now() + interval '31 minutes' WHERE id = 'a'`)
		if s := p.shift("a"); len(s.Held) != store.Shards {
			t.Errorf("after steady heartbeats it holds %d shards, want all", len(s.Held))
		}
	})

	t.Run("leases that others took stay theirs", func(t *testing.T) {
		p := newParish(t, fresh)
		p.settle("a", "b")
		p.runOut("a")
		p.listen("b")
		taken := p.shift("b")
		back := p.shift("a")
		if len(back.Held) != 0 || back.Live != 2 {
			t.Errorf("who comes back holds %v, want nothing of what was taken meanwhile", back.Held)
		}
		if err := p.Release(t.Context(), p.instance("a"), numbers(0, 64)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p.shift("b").Held, taken.Held); diff != "" {
			t.Errorf("after somebody released what is not its own (-got +want):\n%s", diff)
		}
	})

	t.Run("the epoch grows when another takes over", func(t *testing.T) {
		p := newParish(t, fresh)
		for i, name := range []string{"a", "b", "b", "a", "a", "c"} {
			p.shift(name)
			p.listen(name)
			s := p.shift(name)
			if want := []int64{1, 2, 2, 3, 3, 4}[i]; len(s.Held) != store.Shards || s.Held[7].Epoch != want {
				t.Fatalf("step %d: %s holds %d shards, epoch %d; want all of them, epoch %d", i, name, len(s.Held), s.Held[7].Epoch, want)
			}
			if i%2 == 0 {
				p.runOut(name)
			} else if err := p.Leave(t.Context(), p.instance(name)); err != nil {
				t.Fatal(err)
			}
		}
	})

	t.Run("a lease runs by the clock of the database", func(t *testing.T) {
		p := newParish(t, fresh)
		p.shift("a")
		ahead := p.count(`
			SELECT count(*)
			FROM leases
			WHERE expires_at BETWEEN now() + interval '59 minutes' AND now() + interval '60 minutes'`)
		alive := p.count(`
			SELECT count(*)
			FROM instances
			WHERE expires_at BETWEEN now() + interval '59 minutes' AND now() + interval '60 minutes'`)
		if ahead != store.Shards || alive != 1 {
			t.Errorf("%d leases and %d instances run for the time asked for, want %d and one", ahead, alive, store.Shards)
		}
	})

	t.Run("locations know nothing of each other", func(t *testing.T) {
		p := newParish(t, fresh)
		p.shift("a")
		there := store.Instance{ID: "b", Location: "there"}
		s, err := p.Shift(t.Context(), there, leaseTTL)
		if err != nil || len(s.Held) != store.Shards || s.Live != 1 {
			t.Errorf("Shift elsewhere = %d shards, %d alive, %v; want all, alone", len(s.Held), s.Live, err)
		}
		if err := p.Leave(t.Context(), there); err != nil {
			t.Fatal(err)
		}
		p.wantGlance("a", store.Glance{Held: store.Shards, Live: 1})
	})

	t.Run("many at once", func(t *testing.T) {
		p := newParish(t, fresh)
		all := names(6)
		held := make([]store.Shift, len(all))
		for range 20 {
			var wg sync.WaitGroup
			for i, name := range all {
				wg.Go(func() {
					s, err := p.Shift(t.Context(), p.instance(name), leaseTTL)
					if err == nil {
						err = p.Release(t.Context(), p.instance(name), s.Surplus)
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					held[i] = s
				})
			}
			wg.Wait()
		}
		p.wantDivided(all...)
		for i, s := range held {
			if len(s.Held) < 21 || len(s.Held) > 22 || s.Live != len(all) {
				t.Errorf("%s holds %d, %d alive; want its sixth", all[i], len(s.Held), s.Live)
			}
		}
	})

	t.Run("who waits for its turn sees what the one before did", func(t *testing.T) {
		p := newParish(t, fresh)
		p.settle("a", "b")
		if err := p.Leave(t.Context(), p.instance("a")); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		shifts := make([]store.Shift, 2)
		for i, name := range []string{"b", "c"} {
			both.Go(func() { shifts[i], _ = p.Shift(t.Context(), p.instance(name), leaseTTL) })
		}
		both.Wait()
		p.wantDivided("b", "c")
	})

	t.Run("what is cancelled is a failure", func(t *testing.T) {
		p := newParish(t, fresh)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Shift(ctx, p.instance("a"), leaseTTL); !store.IsFailure(err) {
			t.Errorf("Shift: error %v, want a failure", err)
		}
		if _, err := p.Glance(ctx, p.instance("a")); !store.IsFailure(err) {
			t.Errorf("Glance: error %v, want a failure", err)
		}
		p.wantGlance("a", store.Glance{Free: store.Shards})
	})
}

// parish is a database whose endpoints are divided among instances at one location.
type parish struct {
	store.Leaser
	t   *testing.T
	sql *sql.DB
}

func newParish(t *testing.T, fresh func(t testing.TB) Database) parish {
	t.Helper()
	db := fresh(t)
	leaser, ok := db.open(t).(store.Leaser)
	if !ok {
		t.Fatal("the store is no Leaser")
	}
	return parish{leaser, t, db.SQL(t)}
}

func (p parish) instance(id string) store.Instance { return store.Instance{ID: id, Location: "here"} }

func (p parish) shift(id string) store.Shift {
	p.t.Helper()
	s, err := p.Shift(p.t.Context(), p.instance(id), leaseTTL)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p parish) release(id string, shards []int) {
	p.t.Helper()
	if err := p.Release(p.t.Context(), p.instance(id), shards); err != nil {
		p.t.Fatal(err)
	}
}

// settle lets instances join, one after the other, until each has its share.
func (p parish) settle(ids ...string) {
	p.t.Helper()
	for range 3 {
		for _, id := range ids {
			p.release(id, p.shift(id).Surplus)
		}
	}
}

// runOut has the time of instances and all their leases pass.
func (p parish) runOut(ids ...string) {
	p.t.Helper()
	p.exec(`UPDATE instances SET expires_at = now() - interval '1 second' WHERE id = ANY ($1)`, ids)
	p.exec(`
		UPDATE leases
		SET expires_at = now() - interval '1 second'
		WHERE owner = ANY ($1)
		    AND expires_at > '-infinity'`, ids)
}

// listen has instances heard without a pause for a day.
func (p parish) listen(ids ...string) {
	p.t.Helper()
	p.exec(`UPDATE instances SET steady_since = now() - interval '1 day' WHERE id = ANY ($1)`, ids)
}

func (p parish) exec(statement string, args ...any) {
	p.t.Helper()
	if _, err := p.sql.ExecContext(p.t.Context(), statement, args...); err != nil {
		p.t.Fatal(err)
	}
}

func (p parish) count(question string) (n int) {
	p.t.Helper()
	if err := p.sql.QueryRowContext(p.t.Context(), question).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p parish) wantGlance(id string, want store.Glance) {
	p.t.Helper()
	got, err := p.Glance(p.t.Context(), p.instance(id))
	if err != nil || got != want {
		p.t.Errorf("Glance of %s = %+v, %v, want %+v", id, got, err, want)
	}
}

// wantDivided makes sure that each shard is held by exactly one of the instances.
func (p parish) wantDivided(ids ...string) {
	p.t.Helper()
	owners := map[int]string{}
	for _, id := range ids {
		for _, l := range p.shift(id).Held {
			if other, taken := owners[l.Shard]; taken {
				p.t.Errorf("shard %d is held by %s and %s", l.Shard, other, id)
			}
			owners[l.Shard] = id
		}
	}
	if len(owners) != store.Shards {
		p.t.Errorf("%d shards are held, want all %d", len(owners), store.Shards)
	}
}

// names returns n ids in order.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("i%03d", i)
	}
	return all
}

// numbers counts from a number up to, without, another.
func numbers(from, to int) (all []int) {
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

func leasesOf(epoch int64, from, to int) (all []store.Lease) {
	for _, n := range numbers(from, to) {
		all = append(all, store.Lease{Shard: n, Epoch: epoch})
	}
	return all
}
