//go:build unix

package store_test

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// benchGroup is how many checks one turn of these benchmarks moves.
const benchGroup = 10_000

// BenchmarkSpoolPush measures what it costs to keep a check while the database is away: Recorder.Record until the check is in
// the spool. ×bare is how much more processor time that takes than to write the same bytes to a file through a buffer.
func BenchmarkSpoolPush(b *testing.B) {
	checks, frames := benchChecks(b)
	spool, _ := openSpool(b, filepath.Join(b.TempDir(), "spool"))
	r := store.NewRecorder(store.RecorderConfig{Store: &strict{away: true}, Spool: spool, Keep: 64 << 10, Log: slog.New(slog.DiscardHandler)})
	run(b, r)
	var bare, ours time.Duration
	for b.Loop() {
		begin := processor(b)
		bareWrite(b, frames)
		middle := processor(b)
		for _, c := range checks {
			if _, err := r.Record(b.Context(), c); !errors.Is(err, store.ErrWaiting) {
				b.Fatal(err)
			}
		}
		bare += middle - begin
		ours += processor(b) - middle
	}
	reportSpool(b, bare, ours, len(frames))
	if s := r.Stats(); s.GivenUp > 0 || s.Spooled < benchGroup/2 {
		b.Errorf("%+v, want most in the spool", s)
	}
}

// BenchmarkSpoolDrain measures what it costs to bring a check from the spool to a database that takes it at once. ×bare is
// as in BenchmarkSpoolPush.
func BenchmarkSpoolDrain(b *testing.B) {
	_, frames := benchChecks(b)
	empty, _ := spoolOf(b, 0)
	left := withHead(append(empty, frames...), 64, benchGroup, 0)
	var bare, ours time.Duration
	for b.Loop() {
		begin := processor(b)
		bareWrite(b, frames)
		bare += processor(b) - begin
		path := filepath.Join(b.TempDir(), "spool")
		if err := os.WriteFile(path, left, 0o600); err != nil {
			b.Fatal(err)
		}
		spool, recovered, err := store.OpenSpool(path, 0, slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		if recovered.Checks != benchGroup {
			b.Fatalf("%+v", recovered)
		}
		all := make(chan struct{})
		taken := 0
		db := &strict{before: func(group []store.Check) {
			if taken += len(group); taken == benchGroup {
				close(all)
			}
		}}
		begin = processor(b)
		stop := run(b, store.NewRecorder(store.RecorderConfig{Store: db, Spool: spool, Log: slog.New(slog.DiscardHandler)}))
		<-all
		ours += processor(b) - begin
		stop()
		if err := errors.Join(spool.Close(), os.Remove(path)); err != nil {
			b.Fatal(err)
		}
	}
	reportSpool(b, bare, ours, len(frames))
}

// run runs a recorder until stop is called or the benchmark ends.
func run(b *testing.B, r *store.Recorder) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := r.Run(ctx); err != nil {
			b.Error(err)
		}
	}()
	stop = func() { cancel(); <-ended }
	b.Cleanup(stop)
	return stop
}

func benchChecks(b *testing.B) (checks []store.Check, frames []byte) {
	for i := range benchGroup {
		checks = append(checks, usual(i))
		frames = append(frames, store.Frame(b, usual(i))...)
	}
	return checks, frames
}

// bareWrite writes frames to a file, one check after the other, through a buffer as large as what the spool writes at once.
func bareWrite(b *testing.B, frames []byte) {
	f, err := os.CreateTemp(b.TempDir(), "bare")
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 64<<10)
	for size := len(frames) / benchGroup; len(frames) > 0; {
		n, err := w.Write(frames[:min(size, len(frames))])
		if err != nil {
			b.Fatal(err)
		}
		frames = frames[n:]
	}
	if err := errors.Join(w.Flush(), f.Close(), os.Remove(f.Name())); err != nil {
		b.Fatal(err)
	}
}

func reportSpool(b *testing.B, bare, ours time.Duration, bytes int) {
	b.ReportMetric(float64(ours)/float64(bare), "×bare")
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N*benchGroup), "cpu-ns/check")
	b.ReportMetric(float64(bytes)/benchGroup, "B/check")
	b.ReportMetric(float64(b.N*benchGroup)/ours.Seconds(), "checks/cpu-s")
}

// processor returns how much processor time this process has used up: on a machine that has other work to do, too, the clock
// on the wall says little.
func processor(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
