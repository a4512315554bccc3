package scheduler_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// registry is a store.Leaser in memory, for one location.
type registry struct {
	mu     sync.Mutex
	alive  map[string]heard // by id
	leases [store.Shards]lease
}

type heard struct {
	until  time.Time
	steady time.Time // since when it is heard without a pause
}

type lease struct {
	owner string
	epoch int64
	until time.Time // zero when it was handed over
}

func newRegistry() *registry { return &registry{alive: map[string]heard{}} }

func (r *registry) Shift(_ context.Context, me store.Instance, ttl time.Duration) (store.Shift, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.buryLocked(now)
	self := heard{now.Add(ttl), now}
	if before := r.alive[me.ID]; before.until.Sub(now) > ttl/2 {
		self.steady = before.steady
	}
	r.alive[me.ID] = self
	s := store.Shift{Share: r.shareLocked(me.ID), Live: len(r.alive), TTL: ttl}
	held := 0
	for i := range r.leases {
		if l := &r.leases[i]; l.owner == me.ID && !l.until.IsZero() {
			l.until = now.Add(ttl)
			held++
		}
	}
	for i := range r.leases {
		free := r.leases[i].until.IsZero() || !r.leases[i].until.After(now) && now.Sub(self.steady) >= ttl/2
		if l := &r.leases[i]; held < s.Share && free {
			if l.owner != me.ID {
				l.epoch++
			}
			l.owner, l.until = me.ID, now.Add(ttl)
			held++
		}
	}
	for i, l := range r.leases {
		if l.owner == me.ID && !l.until.IsZero() {
			s.Held = append(s.Held, store.Lease{Shard: i, Epoch: l.epoch})
		}
	}
	for i := s.Share; i < len(s.Held); i++ {
		s.Surplus = append(s.Surplus, s.Held[i].Shard)
	}
	return s, nil
}

func (r *registry) buryLocked(now time.Time) {
	for id, h := range r.alive {
		if !h.until.After(now) {
			delete(r.alive, id)
		}
	}
}

func (r *registry) shareLocked(id string) int {
	ids := make([]string, 0, len(r.alive))
	for id := range r.alive {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	share := store.Shards / len(ids)
	if slices.Index(ids, id) < store.Shards%len(ids) {
		share++
	}
	return share
}

func (r *registry) Glance(_ context.Context, me store.Instance) (store.Glance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.buryLocked(now)
	g := store.Glance{Live: len(r.alive)}
	for _, l := range r.leases {
		switch {
		case !l.until.After(now):
			g.Free++
		case l.owner == me.ID:
			g.Held++
		}
	}
	return g, nil
}

func (r *registry) Release(_ context.Context, me store.Instance, shards []int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, shard := range shards {
		if r.leases[shard].owner == me.ID {
			r.leases[shard].until = time.Time{}
		}
	}
	return nil
}

func (r *registry) Leave(_ context.Context, me store.Instance) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.alive, me.ID)
	for i := range r.leases {
		if r.leases[i].owner == me.ID {
			r.leases[i].until = time.Time{}
		}
	}
	return nil
}

// line is what lies between an instance and the registry.
type line struct {
	*registry

	mu     sync.Mutex
	fault  fault
	thawed chan struct{} // closed when the instance is not frozen any more
}

type fault string

// What can be wrong with a line. In a frozen instance no code runs, whatever the time: a question ends when it is thawed.
const (
	none         fault = ""
	refuses      fault = "refuses"
	hangs        fault = "hangs"
	losesAnswers fault = "loses answers" // what is asked for is done
	frozenBefore fault = "frozen before it asked"
	frozenAfter  fault = "frozen before it heard the answer"
)

var errAway = errors.New("the database is away")

func (l *line) set(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == f {
		return
	}
	if l.thawed != nil {
		close(l.thawed)
		l.thawed = nil
	}
	l.fault = f
	if f == frozenBefore || f == frozenAfter {
		l.thawed = make(chan struct{})
	}
}

func over[T any](ctx context.Context, l *line, question func() (T, error)) (answer T, err error) {
	l.mu.Lock()
	f, thawed := l.fault, l.thawed
	l.mu.Unlock()
	switch f {
	case refuses:
		return answer, errAway
	case hangs:
		<-ctx.Done()
		return answer, ctx.Err()
	case losesAnswers:
		_, _ = question()
		<-ctx.Done()
		return answer, ctx.Err()
	case frozenBefore:
		<-thawed
		if err := ctx.Err(); err != nil {
			return answer, err
		}
		return question()
	case frozenAfter:
		answer, err = question()
		<-thawed
		return answer, err
	}
	return question()
}

func (l *line) Shift(ctx context.Context, me store.Instance, ttl time.Duration) (store.Shift, error) {
	return over(ctx, l, func() (store.Shift, error) { return l.registry.Shift(ctx, me, ttl) })
}

func (l *line) Glance(ctx context.Context, me store.Instance) (store.Glance, error) {
	return over(ctx, l, func() (store.Glance, error) { return l.registry.Glance(ctx, me) })
}

func (l *line) Release(ctx context.Context, me store.Instance, shards []int) error {
	_, err := over(ctx, l, func() (struct{}, error) { return struct{}{}, l.registry.Release(ctx, me, shards) })
	return err
}

func (l *line) Leave(ctx context.Context, me store.Instance) error {
	_, err := over(ctx, l, func() (struct{}, error) { return struct{}{}, l.registry.Leave(ctx, me) })
	return err
}

// member is an instance that has leases.
type member struct {
	*scheduler.Leases
	line    *line
	metrics *prometheus.Registry
	stop    func() // as an operator would

	mu       sync.Mutex
	drained  []int
	changes  int
	refusals int           // how often Changed is still to fail
	drainFor time.Duration // how long probes under way take to end
}

// frozen reports whether no code of the instance runs.
func (m *member) frozen() bool {
	m.line.mu.Lock()
	defer m.line.mu.Unlock()
	return m.line.thawed != nil
}

// changed counts the calls of Changed.
func (m *member) changed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// taken returns the shards that were drained.
func (m *member) taken() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.drained)
}

// dither sets how long probes under way take to end.
func (m *member) dither(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drainFor = d
}

// kill ends the instance without a word.
func (m *member) kill() {
	m.line.set(refuses)
	m.stop()
}

// shards counts what the instance owns.
func (m *member) shards() (n int) {
	for shard := range store.Shards {
		if _, ok := m.Owns(idOf(shard)); ok {
			n++
		}
	}
	return n
}

func (m *member) metric(t *testing.T, name string) float64 {
	t.Helper()
	families, err := m.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// join starts an instance, which is stopped with the test.
func join(t *testing.T, r *registry) *member {
	t.Helper()
	m := &member{line: &line{registry: r}, metrics: prometheus.NewRegistry()}
	m.Leases = scheduler.NewLeases(scheduler.LeasesConfig{
		Leaser: m.line, Location: "here", Log: slog.New(slog.DiscardHandler), Registerer: m.metrics,
		Changed: func(context.Context) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.changes++
			if m.refusals > 0 {
				m.refusals--
				return errAway
			}
			return nil
		},
		Drain: func(ctx context.Context, shards []int) {
			m.mu.Lock()
			m.drained = append(m.drained, shards...)
			wait := m.drainFor
			m.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		if m.frozen() {
			m.line.set(none)
		}
		m.stop()
	})
	return m
}

// idOf returns the id of an endpoint in a shard.
func idOf(shard int) string { return endpointIDs()[shard] }

var endpointIDs = sync.OnceValue(func() (ids [store.Shards]string) {
	for found, n := 0, 0; found < store.Shards; n++ {
		id := fmt.Sprintf("ep_%d", n)
		if shard := store.ShardOf(id); ids[shard] == "" {
			ids[shard] = id
			found++
		}
	}
	return ids
})

// wantDivided makes sure that each shard is owned by exactly one instance, and none has more than is fair.
func wantDivided(t *testing.T, when string, members ...*member) {
	t.Helper()
	for shard := range store.Shards {
		owners := 0
		for _, m := range members {
			if _, ok := m.Owns(idOf(shard)); ok {
				owners++
			}
		}
		if owners != 1 {
			t.Errorf("%s: shard %d has %d owners, want one", when, shard, owners)
		}
	}
	for i, m := range members {
		fair := store.Shards / len(members)
		if n := m.shards(); n < fair || n > fair+1 {
			t.Errorf("%s: instance %d owns %d shards, want %d or one more", when, i, n, fair)
		}
	}
}

func TestInstancesThatJoinAreGivenTheirShare(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRegistry()
				var members []*member
				for range n {
					members = append(members, join(t, r))
					time.Sleep(4 * time.Second)
					wantDivided(t, fmt.Sprintf("four seconds after %d joined", len(members)), members...)
				}
				if got := members[0].metric(t, "rollcall_instances_live"); got != float64(n) {
					t.Errorf("%v instances are said to be alive, want %d", got, n)
				}
				if got, want := members[0].metric(t, "rollcall_leases_held"), float64(members[0].shards()); got != want {
					t.Errorf("%v leases are said to be held, want %v", got, want)
				}
				changes := members[0].changed()
				time.Sleep(time.Hour)
				wantDivided(t, "an hour later", members...)
				if members[0].changed() != changes {
					t.Errorf("%d changes in an hour of peace", members[0].changed()-changes)
				}
			})
		})
	}
}

func TestWhatIsHandedOverIsDrainedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		a := join(t, r)
		synctest.Wait()
		a.dither(5 * time.Second)
		b := join(t, r)
		time.Sleep(3 * time.Second)
		if len(a.taken()) != store.Shards/2 {
			t.Fatalf("%d shards are being drained, want half of them", len(a.taken()))
		}
		leaving := idOf(a.taken()[0])
		if _, ok := a.Owns(leaving); !ok {
			t.Error("a shard that is being drained is not owned: what is under way could not be recorded")
		}
		if a.Holds(leaving) {
			t.Error("a shard that is being drained is still to be scheduled")
		}
		if b.shards() != 0 {
			t.Error("the other instance has shards before they were drained")
		}
		time.Sleep(5 * time.Second)
		wantDivided(t, "after the drain", a, b)
		if _, ok := a.Owns(leaving); ok || !b.Holds(leaving) {
			t.Error("a shard that was drained is where it was")
		}
		if lost := a.metric(t, "rollcall_leases_lost_total"); lost != 0 {
			t.Errorf("%v leases are said to be lost that were handed over", lost)
		}
	})
}

func TestDrainThatNeverEndsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		a := join(t, r)
		a.dither(time.Hour)
		b := join(t, r)
		time.Sleep(16 * time.Second)
		wantDivided(t, "in time", a, b)
	})
}

func TestInstanceThatStopsIsFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		a, b, c := join(t, r), join(t, r), join(t, r)
		time.Sleep(10 * time.Second)
		a.stop()
		if a.shards() != 0 {
			t.Error("an instance that has left owns shards")
		}
		time.Sleep(2 * time.Second)
		wantDivided(t, "two seconds after one left", b, c)
		if got := b.metric(t, "rollcall_lease_takeovers_total"); got == 0 {
			t.Error("nothing is said to be taken over")
		}
	})
}

func TestInstanceThatDiesIsFollowedInTime(t *testing.T) {
	for wait := range 8 { // at each point of the beat
		synctest.Test(t, func(t *testing.T) {
			r := newRegistry()
			a, b, c := join(t, r), join(t, r), join(t, r)
			time.Sleep(20*time.Second + time.Duration(wait)*500*time.Millisecond)
			a.kill()
			time.Sleep(16 * time.Second)
			wantDivided(t, "16 seconds after one died", b, c)
		})
	}
}

func TestInstanceThatWasFrozenKnowsThatItDoesNotKnow(t *testing.T) {
	for _, how := range []fault{frozenBefore, frozenAfter} {
		for _, long := range []time.Duration{13 * time.Second, 20 * time.Second, time.Hour} {
			t.Run(fmt.Sprintf("%s, %s", how, long), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRegistry()
					a, b := join(t, r), join(t, r)
					time.Sleep(20 * time.Second)
					id := idOf(slices.IndexFunc(all(), func(shard int) bool { return a.Holds(idOf(shard)) }))
					began := time.Now()
					a.line.set(how)
					time.Sleep(time.Second + long) // it asks within a second, and then stands still
					wantDivided(t, "while one is frozen", b)
					if _, ok := a.Owns(id); ok {
						t.Error("the first thing that it does is what it has no right to")
					}
					a.line.set(none)
					synctest.Wait()
					if _, ok := a.Owns(id); ok {
						t.Error("it owns what was taken from it")
					}
					time.Sleep(12 * time.Second)
					wantDivided(t, "when it has its share again", a, b)
					for shard := range store.Shards {
						if a.OwnsSince(idOf(shard), began) {
							t.Errorf("shard %d was owned through the freeze", shard)
						}
						if a.OwnsSince(idOf(shard), time.Now()) != a.Holds(idOf(shard)) {
							t.Errorf("shard %d is not owned since a moment ago", shard)
						}
					}
					if lost := a.metric(t, "rollcall_leases_lost_total"); lost != store.Shards/2 {
						t.Errorf("%v leases are said to be lost, want half of all", lost)
					}
				})
			})
		}
	}
}

func TestQuestionThatFellIntoAFreezeDoesNotSayThatTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		a, b := join(t, r), join(t, r)
		time.Sleep(20 * time.Second)
		a.line.set(frozenBefore)
		time.Sleep(time.Minute)
		a.line.set(hangs) // the question that was under way fails, and the next is not answered yet
		time.Sleep(time.Second)
		if n := a.shards(); n != 0 {
			t.Errorf("it owns %d shards, all of which others took", n)
		}
		a.line.set(none)
		time.Sleep(15 * time.Second)
		wantDivided(t, "in the end", a, b)
	})
}

func TestFrozenAloneItKeepsItsLeasesButNotWhatItSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := join(t, newRegistry())
		time.Sleep(10 * time.Second)
		before, _ := a.Owns(idOf(7))
		began := time.Now()
		a.line.set(frozenBefore)
		time.Sleep(time.Minute)
		a.line.set(none)
		time.Sleep(2 * time.Second)
		after, ok := a.Owns(idOf(7))
		if !ok || after != before {
			t.Errorf("Owns = %d, %v, want the lease that it had, of epoch %d", after, ok, before)
		}
		if a.OwnsSince(idOf(7), began) {
			t.Error("a probe that ran through the freeze would be believed")
		}
		if lost := a.metric(t, "rollcall_leases_lost_total"); lost != 0 {
			t.Errorf("%v leases are said to be lost", lost)
		}
	})
}

func TestDatabaseThatIsAwayStopsNothing(t *testing.T) {
	for _, how := range []fault{refuses, hangs} {
		t.Run(string(how), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRegistry()
				a, b := join(t, r), join(t, r)
				time.Sleep(10 * time.Second)
				changes, began := a.changed()+b.changed(), time.Now()
				a.line.set(how)
				b.line.set(how)
				for range 4 * 60 {
					time.Sleep(700 * time.Millisecond)
					if a.shards() != store.Shards/2 || b.shards() != store.Shards/2 {
						t.Fatalf("%s after it went away: %d and %d shards, want each its own", time.Since(began), a.shards(), b.shards())
					}
				}
				a.line.set(none)
				b.line.set(none)
				time.Sleep(5 * time.Second)
				wantDivided(t, "when it is back", a, b)
				if a.changed()+b.changed() != changes {
					t.Errorf("%d changes, want none", a.changed()+b.changed()-changes)
				}
				for shard := range store.Shards {
					if a.Holds(idOf(shard)) && !a.OwnsSince(idOf(shard), began) {
						t.Errorf("shard %d was given up for a moment", shard)
					}
				}
			})
		})
	}
}

func TestDatabaseThatIsAwayAtTheEndDelaysItNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := join(t, newRegistry())
		time.Sleep(10 * time.Second)
		a.line.set(hangs)
		began := time.Now()
		a.stop()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Run ended after %s", took)
		}
	})
}

func TestDatabaseThatComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		a, b := join(t, r), join(t, r)
		time.Sleep(10 * time.Second)
		changes := a.changed() + b.changed()
		for i := range 150 {
			a.line.set([]fault{none, refuses, none, hangs}[i%4])
			b.line.set([]fault{refuses, none, hangs, hangs, none}[i%5])
			time.Sleep(1700 * time.Millisecond)
			if a.shards() != store.Shards/2 || b.shards() != store.Shards/2 {
				t.Fatalf("round %d: %d and %d shards, want each its own", i, a.shards(), b.shards())
			}
		}
		if a.changed()+b.changed() != changes {
			t.Errorf("%d changes, want none", a.changed()+b.changed()-changes)
		}
	})
}

func TestInstanceThatIsCutOffGivesUpWhatOthersTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		a, b := join(t, r), join(t, r)
		time.Sleep(10 * time.Second)
		a.line.set(hangs)
		time.Sleep(20 * time.Second)
		if a.shards() != store.Shards/2 || b.shards() != store.Shards {
			t.Errorf("%d and %d shards; want who is cut off to go on, and the other to do its work", a.shards(), b.shards())
		}
		before, _ := a.Owns(idOf(7))
		other, _ := b.Owns(idOf(7))
		if a.Holds(idOf(7)) && other <= before {
			t.Errorf("epochs %d of who is cut off and %d of who took over: its checks could not be told apart", before, other)
		}
		a.line.set(none)
		time.Sleep(10 * time.Second)
		wantDivided(t, "when it is back", a, b)
	})
}

func TestScheduleFollowsAlthoughTheDatabaseRefusesForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := join(t, newRegistry())
		synctest.Wait()
		b := join(t, a.line.registry)
		b.mu.Lock()
		b.refusals = 2
		b.mu.Unlock()
		time.Sleep(6 * time.Second)
		if got := b.changed(); got != 3 {
			t.Errorf("Changed was called %d times, want it called once more each second until it was done", got)
		}
	})
}

// Whatever happens, in whatever order, no two instances are sure of one shard, and in the end all is divided.
func TestNoShardIsSurelyOwnedTwice(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 4))
			s := &story{t: t, registry: newRegistry(), chance: chance, seed: seed}
			s.members = append(s.members, join(t, s.registry))
			for range 100 {
				what := s.happen()
				for range 1 + chance.IntN(20) {
					time.Sleep(time.Duration(1+chance.IntN(500)) * time.Millisecond)
					s.look(what)
				}
			}
			s.end()
		})
	}
}

// story is what happens to instances by chance.
type story struct {
	t        *testing.T
	registry *registry
	chance   *rand.Rand
	seed     uint64
	members  []*member // those that were neither stopped nor killed
}

// happen does something to one of the instances and says what.
func (s *story) happen() string {
	i := s.chance.IntN(len(s.members))
	m := s.members[i]
	m.dither(time.Duration(s.chance.IntN(12)) * time.Second)
	switch what := s.chance.IntN(12); {
	case what < 2 && len(s.members) < 6:
		s.members = append(s.members, join(s.t, s.registry))
		return "join"
	case what == 2 && len(s.members) > 1 && !m.frozen():
		s.members = slices.Delete(s.members, i, i+1)
		m.stop()
		return "stop"
	case what == 3 && len(s.members) > 1:
		s.members = slices.Delete(s.members, i, i+1)
		m.kill()
		return "kill"
	case what == 4 || what == 5:
		m.line.set([]fault{frozenBefore, frozenAfter}[what-4])
		return "freeze"
	case what >= 6 && what <= 8:
		m.line.set([]fault{refuses, hangs, losesAnswers}[what-6])
		return "away"
	}
	m.line.set(none)
	return "well"
}

func (s *story) look(what string) {
	s.t.Helper()
	var owners [store.Shards]int
	for _, m := range s.members {
		if m.frozen() {
			continue
		}
		for _, shard := range m.Sure() {
			if owners[shard]++; owners[shard] > 1 {
				s.t.Fatalf("seed %d: shard %d is surely owned by two after: %s", s.seed, shard, what)
			}
		}
	}
}

func (s *story) end() {
	s.t.Helper()
	for _, m := range s.members {
		m.line.set(none)
		m.dither(0)
	}
	time.Sleep(45 * time.Second)
	wantDivided(s.t, fmt.Sprintf("seed %d, in the end", s.seed), s.members...)
}

// Instances come, go, die and freeze, one each half minute, and no shard is without an owner for longer than it may be.
func TestNoShardIsWithoutAnOwnerForLong(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 5))
			r := newRegistry()
			members := []*member{join(t, r), join(t, r)}
			var owned [store.Shards]time.Time
			synctest.Wait()
			for shard := range owned {
				owned[shard] = time.Now()
			}
			for range 20 {
				slices.SortFunc(members, func(a, b *member) int { return cmp.Compare(chance.Int(), chance.Int()) })
				m := members[0]
				switch what := chance.IntN(4); {
				case m.frozen():
					m.line.set(none)
				case what == 0 || awake(members) < 3:
					members = append(members, join(t, r))
				case what == 1:
					members = members[1:]
					m.stop()
				case what == 2:
					members = members[1:]
					m.kill()
				default:
					m.line.set([]fault{frozenBefore, frozenAfter}[chance.IntN(2)])
				}
				for range 60 + chance.IntN(40) {
					time.Sleep(500 * time.Millisecond)
					watch(t, seed, members, &owned)
				}
			}
		})
	}
}

func awake(members []*member) (n int) {
	for _, m := range members {
		if !m.frozen() {
			n++
		}
	}
	return n
}

// watch notes who is owned and complains of who was not for 16 seconds.
func watch(t *testing.T, seed uint64, members []*member, owned *[store.Shards]time.Time) {
	t.Helper()
	now := time.Now()
	for _, m := range members {
		if m.frozen() {
			continue
		}
		for _, shard := range m.Sure() {
			owned[shard] = now
		}
	}
	for shard := range owned {
		if alone := now.Sub(owned[shard]); alone > 16*time.Second {
			t.Fatalf("seed %d: shard %d is owned by nobody for %s", seed, shard, alone)
		}
	}
}

func all() (shards []int) {
	for shard := range store.Shards {
		shards = append(shards, shard)
	}
	return shards
}
