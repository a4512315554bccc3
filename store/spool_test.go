package store_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// strict is a database that can be away, takes every slot once, and notes checks of an endpoint that come out of order.
type strict struct {
	takes  time.Duration
	before func(group []store.Check) // called in each transaction that succeeds

	mu       sync.Mutex
	away     bool
	count    int
	repeated int
	latest   map[string]time.Time
	wrong    []string
}

func (d *strict) Record(_ context.Context, checks []store.Check, _ store.Judge) ([]store.Outcome, error) {
	time.Sleep(d.takes)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return nil, errAway
	}
	if d.before != nil {
		d.before(checks)
	}
	if d.latest == nil {
		d.latest = map[string]time.Time{}
	}
	for _, c := range checks {
		switch latest := d.latest[c.EndpointID]; {
		case c.ScheduledAt.Equal(latest):
			d.repeated++
			continue
		case c.ScheduledAt.Before(latest):
			d.wrong = append(d.wrong, c.ID)
		}
		d.latest[c.EndpointID] = c.ScheduledAt
		d.count++
	}
	return make([]store.Outcome, len(checks)), nil
}

func (d *strict) setAway(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

// expect fails the test unless the database has count checks, each endpoint's in order.
func (d *strict) expect(t *testing.T, count int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count != count || len(d.wrong) > 0 {
		t.Errorf("%d checks are kept, %d of them out of order, want %d in order", d.count, len(d.wrong), count)
	}
}

// tick returns the n-th check of a service that makes one every millisecond, of a hundred endpoints in turn.
func tick(n int) store.Check {
	return store.NewCheck(endpoints[n%len(endpoints)], "eu", start.Add(time.Duration(n)*time.Millisecond), probe.Result{Verdict: probe.Up})
}

var endpoints = func() (ids []string) {
	for i := range 100 {
		ids = append(ids, fmt.Sprintf("ep_%02d", i))
	}
	return ids
}()

func openSpool(t testing.TB, path string) (*store.Spool, store.Recovered) {
	t.Helper()
	s, recovered, err := store.OpenSpool(path, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, recovered
}

// counter is a database that takes everything.
type counter struct{ count int }

func (d *counter) Record(_ context.Context, checks []store.Check, _ store.Judge) ([]store.Outcome, error) {
	d.count += len(checks)
	return make([]store.Outcome, len(checks)), nil
}

type recorderDB interface {
	Record(ctx context.Context, checks []store.Check, judge store.Judge) ([]store.Outcome, error)
}

// runSpooling runs a recorder that keeps little in memory. stop may be called twice.
func runSpooling(t *testing.T, db recorderDB, spool *store.Spool, keep int) (r *store.Recorder, stop func()) {
	t.Helper()
	r = store.NewRecorder(store.RecorderConfig{Store: db, Spool: spool, Keep: keep, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return r, stop
}

// put brings the checks [from, to) to a recorder whose database is away.
func put(t *testing.T, r *store.Recorder, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := r.Record(t.Context(), tick(i)); !errors.Is(err, store.ErrWaiting) {
			t.Fatalf("Record of check %d while the database is away: %v, want ErrWaiting", i, err)
		}
	}
}

// copyOf returns the path of a copy of a spool as it is: as a process leaves it that is killed here.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fileWith(t, data)
}

func fileWith(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spool")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// drained returns how many checks a recorder brings from a spool to a database that is there.
func drained(t *testing.T, spool *store.Spool) *strict {
	t.Helper()
	db := &strict{}
	r, stop := runSpooling(t, db, spool, 0)
	synctest.Wait()
	if s := r.Stats(); s.Waiting+s.Spooled != 0 {
		t.Errorf("%d checks still wait, %d in the spool, though the database is there", s.Waiting, s.Spooled)
	}
	stop()
	return db
}

func TestNothingIsLostInThirtyMinutesWithoutADatabase(t *testing.T) {
	const keep = 1 << 20
	checks := 30 * 60 * 1000
	if raceDetector {
		checks /= 20
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // so little is in memory that it would be looked through a thousand times
	synctest.Test(t, func(t *testing.T) {
		db := &strict{away: true}
		spool, _ := openSpool(t, filepath.Join(t.TempDir(), "spool"))
		r, _ := runSpooling(t, db, spool, keep)
		most := 0
		for i := range checks {
			_, err := r.Record(t.Context(), tick(i))
			if !errors.Is(err, store.ErrWaiting) {
				t.Fatal(err)
			}
			if i%1000 == 0 {
				most = max(most, r.Stats().Bytes)
			}
		}
		s := r.Stats()
		if s.Waiting+s.Spooled != checks || s.GivenUp != 0 || s.AwaySince.IsZero() {
			t.Errorf("%+v, want %d checks to wait and none given up", s, checks)
		}
		if most > 2*keep {
			t.Errorf("%d bytes in memory, want at most %d", most, 2*keep)
		}
		db.setAway(false)
		time.Sleep(11 * time.Second)
		db.expect(t, checks)
		if s := r.Stats(); s.Waiting+s.Spooled != 0 || s.SpoolBytes > 4096 || !s.AwaySince.IsZero() || s.Groups < checks/1000 {
			t.Errorf("%+v after the return, want nothing to wait and the spool to be empty", s)
		}
		if _, err := r.Record(t.Context(), tick(checks)); err != nil {
			t.Errorf("Record after all was written: %v", err)
		}
	})
}

func TestChecksThatComeWhileTheSpoolIsDrainedKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &strict{away: true, takes: 200 * time.Millisecond}
		spool, _ := openSpool(t, filepath.Join(t.TempDir(), "spool"))
		r, _ := runSpooling(t, db, spool, 64<<10)
		put(t, r, 0, 20_000)
		db.setAway(false)
		next, waited := 20_000, 0
		for r.Waiting() > 0 || waited == 0 {
			if _, err := r.Record(t.Context(), tick(next)); err == nil {
				waited++
			}
			next++
			time.Sleep(time.Millisecond)
			if next > 60_000 {
				t.Fatalf("%d checks still wait", r.Waiting())
			}
		}
		db.expect(t, next)
	})
}

func TestADatabaseThatGoesAwayWhileTheSpoolIsDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &strict{away: true, takes: 10 * time.Millisecond}
		spool, _ := openSpool(t, filepath.Join(t.TempDir(), "spool"))
		r, _ := runSpooling(t, db, spool, 64<<10)
		next := 0
		for range 20 {
			db.setAway(true)
			for range 3000 {
				_, _ = r.Record(t.Context(), tick(next)) // some wait, others are recorded at once
				next++
			}
			time.Sleep(time.Second)
			db.setAway(false)
			time.Sleep(11*time.Second + time.Duration(next%7)*7*time.Millisecond)
		}
		time.Sleep(time.Minute)
		db.expect(t, next)
	})
}

func TestAStopWhileTheDatabaseIsAwayLosesNothing(t *testing.T) {
	for name, checks := range map[string]int{"when all waits in memory": 50, "when most is in the spool": 50_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "spool")
				away := &strict{away: true}
				spool, _ := openSpool(t, path)
				r, stop := runSpooling(t, away, spool, 256<<10)
				put(t, r, 0, checks)
				stop()
				if s := r.Stats(); s.GivenUp != 0 {
					t.Errorf("%d checks given up, want none", s.GivenUp)
				}
				if err := spool.Close(); err != nil {
					t.Fatal(err)
				}
				again, recovered := openSpool(t, path)
				if want := (store.Recovered{Checks: checks}); recovered != want {
					t.Errorf("the next process finds %+v, want %+v", recovered, want)
				}
				drained(t, again).expect(t, checks)
			})
		})
	}
}

// silent is a database that neither answers nor says no.
type silent struct{}

func (silent) Record(ctx context.Context, _ []store.Check, _ store.Judge) ([]store.Outcome, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestAStopDoesNotWaitForADatabaseThatDoesNotAnswer holds the time that a stop takes against the ten seconds after which
// container engines kill: whatever waits is in the spool by then.
func TestAStopDoesNotWaitForADatabaseThatDoesNotAnswer(t *testing.T) {
	for name, after := range map[string]time.Duration{"at its first write": 5 * time.Second, "between two tries": 30100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "spool")
				spool, _ := openSpool(t, path)
				r, stop := runSpooling(t, silent{}, spool, 0)
				began := time.Now()
				put(t, r, 0, 20)
				time.Sleep(time.Until(began.Add(after)))
				stopped := time.Now()
				stop()
				if took := time.Since(stopped); took > 4*time.Second {
					t.Errorf("the stop took %s", took)
				}
				if err := spool.Close(); err != nil {
					t.Fatal(err)
				}
				again, recovered := openSpool(t, path)
				if want := (store.Recovered{Checks: 20}); recovered != want {
					t.Errorf("the next process finds %+v, want %+v", recovered, want)
				}
				drained(t, again).expect(t, 20)
			})
		})
	}
}

func TestAStopWhileTheSpoolIsDrainedLeavesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "spool")
		db := &strict{away: true, takes: 10 * time.Second}
		spool, _ := openSpool(t, path)
		r, stop := runSpooling(t, db, spool, 16<<10)
		put(t, r, 0, 10_000)
		db.setAway(false)
		time.Sleep(time.Minute)
		stop()
		spool.Close()
		again, recovered := openSpool(t, path)
		if want := (store.Recovered{Checks: 10_000 - db.count}); recovered != want || db.count == 0 {
			t.Errorf("the next process finds %+v, want %+v and some to be recorded", recovered, want)
		}
		rest := drained(t, again)
		rest.expect(t, 10_000-db.count)
	})
}

// Wherever a process is killed, what it had recorded, what the spool holds and what is said to be lost make up all there was.
func TestAKillAtAnyMomentIsAccountedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "spool")
		db := &strict{away: true}
		spool, _ := openSpool(t, path)
		r, _ := runSpooling(t, db, spool, 32<<10)
		put(t, r, 0, 1) // so that the recorder knows
		synctest.Wait()
		next := 1
		killed := func(recorded int) {
			copied, recovered := openSpool(t, copyOf(t, path))
			if got, want := recovered.Checks+recovered.Lost, next-recorded; got != want || recovered.Torn+recovered.Damaged > 0 {
				t.Errorf("killed after %d of %d were recorded: %+v, which is %d in all, want %d", recorded, next, recovered, got, want)
			}
			copied.Close()
		}
		for range 60 {
			put(t, r, next, next+97)
			next += 97
			killed(0)
		}
		time.Sleep(time.Second)
		killed(0)
		db.mu.Lock()
		db.before = func([]store.Check) { killed(db.count) }
		db.mu.Unlock()
		db.setAway(false)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		db.expect(t, next)
		killed(next)
	})
}

func TestAKillWhileTheSpoolIsDrainedRepeatsAGroupAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "spool")
		db := &strict{away: true}
		spool, _ := openSpool(t, path)
		r, _ := runSpooling(t, db, spool, 16<<10)
		put(t, r, 0, 5500)
		var copies []string
		var recorded []int
		db.mu.Lock()
		db.before = func(group []store.Check) {
			copies = append(copies, copyOf(t, path))
			recorded = append(recorded, db.count+len(group)) // the transaction is committed, and then the process is killed
		}
		db.mu.Unlock()
		db.setAway(false)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if len(copies) < 5 {
			t.Fatalf("%d transactions, want one for each 1,000 checks", len(copies))
		}
		for i, path := range copies {
			copied, recovered := openSpool(t, path)
			if repeats := recovered.Checks + recovered.Lost - (5500 - recorded[i]); repeats < 0 || repeats > 1000 {
				t.Errorf("%d checks are repeated after %d were recorded, want a group at most", repeats, recorded[i])
			}
			copied.Close()
		}
	})
}

func TestASpoolHasOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool")
	first, _ := openSpool(t, path)
	if _, _, err := store.OpenSpool(path, 0, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "each needs one of its own") {
		t.Errorf("a second process on the same spool: %v, want it refused", err)
	}
	first.Close()
	openSpool(t, path)
}

// spoolOf returns a spool file that holds the checks [0, n), and where each of their frames ends.
func spoolOf(t testing.TB, n int) (data []byte, ends []int) {
	t.Helper()
	empty := filepath.Join(t.TempDir(), "empty")
	s, _ := openSpool(t, empty)
	s.Close()
	data, err := os.ReadFile(empty)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		data = append(data, store.Frame(t, tick(i))...)
		ends = append(ends, len(data))
	}
	return withHead(data, 64, n, 0), ends
}

// withHead gives a spool file a head with these numbers.
func withHead(data []byte, next, checks, memory int) []byte {
	for i, n := range []int{next, checks, memory} {
		binary.BigEndian.PutUint64(data[8+8*i:], uint64(n))
	}
	binary.BigEndian.PutUint32(data[32:], crc32.Checksum(data[:32], crc32.MakeTable(crc32.Castagnoli)))
	return data
}

func TestWhatIsLeftOfASpool(t *testing.T) {
	type damage func(data []byte, ends []int) []byte
	for name, tc := range map[string]struct {
		damage damage
		want   store.Recovered
		aside  bool
	}{
		"whole":                       {func(d []byte, _ []int) []byte { return d }, store.Recovered{Checks: 10}, false},
		"half recorded":               {func(d []byte, ends []int) []byte { return withHead(d, ends[4], 5, 0) }, store.Recovered{Checks: 5}, false},
		"all recorded":                {func(d []byte, ends []int) []byte { return withHead(d, ends[9], 0, 0) }, store.Recovered{}, false},
		"killed with 7 in memory":     {func(d []byte, _ []int) []byte { return withHead(d, 64, 10, 7) }, store.Recovered{Checks: 10, Lost: 7}, false},
		"killed before it wrote 3":    {func(d []byte, _ []int) []byte { return withHead(d, 64, 13, 7) }, store.Recovered{Checks: 10, Lost: 10}, false},
		"killed amid a frame":         {func(d []byte, ends []int) []byte { return d[:ends[9]-5] }, store.Recovered{Checks: 9, Lost: 1, Torn: 1}, false},
		"killed amid a head":          {func(d []byte, ends []int) []byte { return d[:ends[8]+5] }, store.Recovered{Checks: 9, Lost: 1, Torn: 1}, false},
		"zeros after a power loss":    {func(d []byte, ends []int) []byte { clear(d[ends[6]:]); return d }, store.Recovered{Checks: 7, Lost: 3, Torn: 1}, false},
		"cut off by a power loss":     {func(d []byte, ends []int) []byte { return d[:ends[6]] }, store.Recovered{Checks: 7, Lost: 3}, false},
		"cut off before what is left": {func(d []byte, ends []int) []byte { return withHead(d, ends[6], 3, 0)[:ends[2]] }, store.Recovered{Lost: 3}, false},
		"a damaged frame":             {func(d []byte, ends []int) []byte { d[ends[3]-1]++; return d }, store.Recovered{Checks: 9, Damaged: 1}, true},
		"the last frame damaged":      {func(d []byte, ends []int) []byte { d[ends[9]-1]++; return d }, store.Recovered{Checks: 9, Damaged: 1}, true},
		"all frames damaged": {func(d []byte, ends []int) []byte {
			for _, end := range ends {
				d[end-1]++
			}
			return d
		}, store.Recovered{Damaged: 10}, true},
		"a damaged head of a frame": {func(d []byte, ends []int) []byte { d[ends[3]]++; return d }, store.Recovered{Checks: 4, Lost: 6}, true},
		"no head":                   {func(d []byte, _ []int) []byte { d[20]++; return d }, store.Recovered{Checks: 10}, false},
		"half a head":               {func(d []byte, _ []int) []byte { return d[:40] }, store.Recovered{}, false},
		"made when the power failed": {
			func([]byte, []int) []byte { return make([]byte, 64) }, store.Recovered{}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := fileWith(t, tc.damage(spoolOf(t, 10)))
				spool, recovered := openSpool(t, path)
				if diff := cmp.Diff(tc.want, recovered); diff != "" {
					t.Errorf("found (-want +got):\n%s", diff)
				}
				drained(t, spool).expect(t, tc.want.Checks)
				spool.Close()
				again, recovered := openSpool(t, path)
				if recovered != (store.Recovered{}) {
					t.Errorf("%+v is left after all was recorded", recovered)
				}
				again.Close()
				_, err := os.Stat(path + ".damaged")
				if got := !errors.Is(err, fs.ErrNotExist); got != tc.aside {
					t.Errorf("put aside: %t (%v), want %t", got, err, tc.aside)
				}
			})
		})
	}
}

func TestAFileThatIsNoSpoolIsLeftAlone(t *testing.T) {
	whole, _ := spoolOf(t, 3)
	whole[7]++
	for name, tc := range map[string]struct{ data, want string }{
		"a database":            {"SQLite format 3\x00" + strings.Repeat("x", 200), "is not a spool file"},
		"a short text":          {"hello\n", "is not a spool file"},
		"one of another format": {string(whole), "another version of this program"},
	} {
		path := fileWith(t, []byte(tc.data))
		if _, _, err := store.OpenSpool(path, 0, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != tc.data {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}
}

func TestASpoolThatWasDamagedWhileItWasOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "spool")
		db := &strict{away: true}
		spool, _ := openSpool(t, path)
		r, _ := runSpooling(t, db, spool, 16<<10)
		put(t, r, 0, 30_000)
		time.Sleep(time.Second)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		for at := int64(1_000_000); at < 1_000_100; at++ { // what was not read ahead, the head of a frame within it
			if _, err := f.WriteAt([]byte{'x'}, at); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
		db.setAway(false)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		s := r.Stats()
		if db.count == 0 || s.GivenUp == 0 || db.count+s.GivenUp != 30_000 || s.Waiting+s.Spooled != 0 {
			t.Errorf("%d recorded, %+v; want all to be recorded or given up", db.count, s)
		}
		if _, err := os.Stat(path + ".damaged"); err != nil {
			t.Errorf("what cannot be read was not put aside: %v", err)
		}
		if _, err := r.Record(t.Context(), tick(30_000)); err != nil {
			t.Errorf("Record after it: %v", err)
		}
	})
}

// mute is a file that cannot be read for a while.
type mute struct {
	*os.File
	mu    sync.Mutex
	fails int // so many times
}

func (f *mute) ReadAt(b []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails > 0 {
		f.fails--
		return 0, syscall.EIO
	}
	return f.File.ReadAt(b, at)
}

func TestASpoolThatCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct{ fails, lost int }{
		"for a moment": {2, 0},
		"ever":         {1_000_000, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data, _ := spoolOf(t, 5000)
				path := fileWith(t, data)
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				disk := &mute{File: f}
				spool, _, err := store.OpenSpoolOn(disk, int64(len(data)), path, 0, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { spool.Close() })
				disk.fails = tc.fails
				db := &strict{}
				r, _ := runSpooling(t, db, spool, 0)
				for i := 5000; i < 5100; i++ { // they wait behind the others
					if _, err := r.Record(t.Context(), tick(i)); err != nil && !errors.Is(err, store.ErrWaiting) {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				synctest.Wait()
				s := r.Stats()
				if s.GivenUp < tc.lost || tc.lost == 0 && s.GivenUp > 0 || s.Waiting+s.Spooled != 0 || s.GivenUp == 5100 {
					t.Errorf("%+v, want %d of the first 5,000 to be lost and nothing to wait", s, tc.lost)
				}
				db.expect(t, 5100-s.GivenUp)
			})
		})
	}
}

// full is a file on a disk that has no room beyond a size.
type full struct {
	*os.File
	mu      sync.Mutex
	room    int64
	partial bool // writes what there is room for, as a real disk does
}

func (f *full) WriteAt(b []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at+int64(len(b)) <= f.room {
		return f.File.WriteAt(b, at)
	}
	if !f.partial || at >= f.room {
		return 0, syscall.ENOSPC
	}
	n, err := f.File.WriteAt(b[:f.room-at], at)
	return n, errors.Join(syscall.ENOSPC, err)
}

func (f *full) setRoom(room int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = room
}

func TestAFullDisk(t *testing.T) {
	const keep = 64 << 10
	for name, partial := range map[string]bool{"that takes a part": true, "that takes nothing": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var text strings.Builder
				log := slog.New(slog.NewTextHandler(&text, nil))
				path := filepath.Join(t.TempDir(), "spool")
				file, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				disk := &full{File: file, room: 300_000, partial: partial}
				spool, _, err := store.OpenSpoolOn(disk, 0, path, 0, log)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { spool.Close() })
				db := &strict{away: true}
				r := store.NewRecorder(store.RecorderConfig{Store: db, Spool: spool, Keep: keep, Log: log})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- r.Run(ctx) }()

				put(t, r, 0, 20_000)
				s := r.Stats()
				if s.Bytes > 2*keep+1000 || s.GivenUp == 0 || !s.SpoolFails || s.Waiting+s.Spooled+s.GivenUp != 20_000 {
					t.Errorf("%+v on a full disk, want at most %d bytes in memory and the rest to be counted", s, 2*keep)
				}
				if copied, recovered := openSpool(t, copyOf(t, path)); recovered.Checks != s.Spooled || recovered.Lost != s.Waiting || recovered.Torn+recovered.Damaged > 0 {
					t.Errorf("a kill leaves %+v, want %d in the spool and %d lost", recovered, s.Spooled, s.Waiting)
				} else {
					copied.Close()
				}
				lost := s.GivenUp
				disk.setRoom(10 << 20)
				time.Sleep(2 * time.Second)
				put(t, r, 20_000, 30_000)
				time.Sleep(time.Second)
				if s := r.Stats(); s.GivenUp != lost || s.SpoolFails || s.Waiting > 1 {
					t.Errorf("%+v after there is room again, want no more to be lost than %d, and all to be in the spool", s, lost)
				}
				db.setAway(false)
				time.Sleep(11 * time.Second)
				db.expect(t, 30_000-lost)
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				for _, line := range []string{"spool takes no more: checks wait in memory", "checks given up: too many wait for the database", "spool can be written again"} {
					if got := strings.Count(text.String(), line); got != 1 {
						t.Errorf("%d times %q in the log, want once:\n%s", got, line, text.String())
					}
				}
			})
		})
	}
}

func TestASpoolStaysWithinItsLimit(t *testing.T) {
	const keep, limit = 32 << 10, 200_000
	synctest.Test(t, func(t *testing.T) {
		db := &strict{away: true}
		path := filepath.Join(t.TempDir(), "spool")
		spool, _, err := store.OpenSpool(path, limit, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { spool.Close() })
		r, _ := runSpooling(t, db, spool, keep)
		put(t, r, 0, 20_000)
		s := r.Stats()
		info, err := os.Stat(path)
		if err != nil || info.Size() > limit || s.SpoolBytes != info.Size() {
			t.Errorf("the file has %d bytes (%v), %d as is said, want at most %d", info.Size(), err, s.SpoolBytes, limit)
		}
		var kept []time.Time
		db.mu.Lock()
		db.before = func(group []store.Check) {
			for _, c := range group {
				kept = append(kept, c.ScheduledAt)
			}
		}
		db.mu.Unlock()
		db.setAway(false)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		db.expect(t, 20_000-s.GivenUp)
		if !kept[0].Equal(tick(0).ScheduledAt) || !kept[len(kept)-1].Equal(tick(19_999).ScheduledAt) || !slices.IsSortedFunc(kept, time.Time.Compare) {
			t.Errorf("kept from %s to %s, want the beginning and the end of the outage", kept[0], kept[len(kept)-1])
		}
	})
}

func TestADatabaseThatIsTooSlowFillsTheSpoolAndNotMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &strict{takes: time.Second}
		spool, _ := openSpool(t, filepath.Join(t.TempDir(), "spool"))
		r, _ := runSpooling(t, db, spool, 64<<10)
		var all sync.WaitGroup
		for i := range 20_000 {
			all.Go(func() {
				if _, err := r.Record(t.Context(), tick(i)); err != nil && !errors.Is(err, store.ErrWaiting) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if s := r.Stats(); s.Bytes > 128<<10 || s.Spooled < 15_000 || !s.AwaySince.IsZero() {
			t.Errorf("%+v, want most of it in the spool of a database that is not away", s)
		}
		time.Sleep(time.Minute)
		all.Wait()
		db.expect(t, 20_000)
	})
}

func TestWhatWaitedIsRecordedWithoutTheLeaseItWasMadeUnder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &strict{away: true, takes: time.Millisecond}
		r, _ := runSpooling(t, db, nil, 0)
		var epochs []int64
		db.before = func(group []store.Check) {
			for _, c := range group {
				epochs = append(epochs, c.Epoch)
			}
		}
		for i := range 3 {
			c := tick(i)
			c.Epoch = 7
			_, _ = r.Record(t.Context(), c)
		}
		db.setAway(false)
		time.Sleep(11 * time.Second)
		c := tick(3)
		c.Epoch = 8
		if _, err := r.Record(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if want := []int64{0, 0, 0, 8}; !slices.Equal(epochs, want) {
			t.Errorf("recorded under the leases %v, want %v", epochs, want)
		}
	})
}
