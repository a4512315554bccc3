package scheduler_test

import (
	"container/heap"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

const benchEndpoints = 10_000

// BenchmarkDispatch is what one check costs beside probing and recording, with 10,000 endpoints that are due every 60 s:
// finding out that it is due, taking slots, a goroutine, making the check, planning the next one. x/floor holds it against
// the least that any such schedule does: taking the soonest off a heap, starting a goroutine, putting it back.
func BenchmarkDispatch(b *testing.B) {
	var now atomic.Int64
	now.Store(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC).UnixNano())
	var probes atomic.Int64
	s := scheduler.New(scheduler.Config{
		Location: "here", Concurrency: 100, Record: silentRecord, Log: slog.New(slog.DiscardHandler),
		Now:        func() time.Time { return time.Unix(0, now.Load()) },
		Registerer: prometheus.NewRegistry(),
		Probe: func(context.Context, probe.Target) probe.Result {
			probes.Add(1)
			return probe.Result{Verdict: probe.Up, Kind: probe.KindMCP}
		},
	})
	for _, id := range uuids(benchEndpoints) {
		if err := s.Set(endpoint(id), store.State{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		now.Add(int64(time.Minute / benchEndpoints))
		s.StartDue(b.Context())
		s.WaitForProbes()
	}
	took := b.Elapsed()
	floor := bareDispatch(b.N)
	perCheck := float64(took.Nanoseconds()) / float64(max(1, probes.Load()))
	b.ReportMetric(perCheck, "ns/check")
	b.ReportMetric(perCheck/floor, "x/floor")
}

// bareDispatch returns how long one step of a bare schedule takes, in nanoseconds.
func bareDispatch(steps int) float64 {
	random := rand.New(rand.NewPCG(1, 2))
	due := make(times, benchEndpoints)
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for i := range due {
		due[i] = start.Add(time.Duration(random.Int64N(int64(time.Minute))))
	}
	heap.Init(&due)
	var probes sync.WaitGroup
	began := time.Now()
	for range steps {
		t := heap.Pop(&due).(time.Time)
		probes.Go(func() {})
		probes.Wait()
		heap.Push(&due, t.Add(time.Minute))
	}
	return float64(time.Since(began).Nanoseconds()) / float64(steps)
}

// times is a heap of times.
type times []time.Time

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i].Before(t[j]) }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(time.Time)) }
func (t *times) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	*t = (*t)[:last]
	return x
}

// BenchmarkSet is a start with 10,000 endpoints, and what they take in memory beside what they were read as.
func BenchmarkSet(b *testing.B) {
	endpoints := make([]store.Endpoint, benchEndpoints)
	for i, id := range uuids(benchEndpoints) {
		endpoints[i] = endpoint(id)
	}
	var s *scheduler.Scheduler
	before := heapBytes()
	for b.Loop() {
		s = scheduler.New(scheduler.Config{Concurrency: 100, Log: slog.New(slog.DiscardHandler)})
		for _, e := range endpoints {
			if err := s.Set(e, store.State{}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(heapBytes()-before)/benchEndpoints, "bytes/endpoint")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchEndpoints, "ns/endpoint")
	runtime.KeepAlive(s)
	runtime.KeepAlive(endpoints)
}

// BenchmarkSetAgain is what it costs to be told of 10,000 endpoints that have not changed.
func BenchmarkSetAgain(b *testing.B) {
	endpoints := make([]store.Endpoint, benchEndpoints)
	s := scheduler.New(scheduler.Config{Concurrency: 100, Log: slog.New(slog.DiscardHandler)})
	set := func() {
		for _, e := range endpoints {
			if err := s.Set(e, store.State{}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for i, id := range uuids(benchEndpoints) {
		endpoints[i] = endpoint(id)
	}
	set()
	b.ReportAllocs()
	for b.Loop() {
		set()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchEndpoints, "ns/endpoint")
}

// BenchmarkGather is what it costs that somebody looks at the metrics while everything is due and waits.
func BenchmarkGather(b *testing.B) {
	for name, at := range map[string]time.Time{
		"nothing due":    time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC),
		"everything due": time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
	} {
		b.Run(name, func(b *testing.B) {
			now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
			registry := prometheus.NewRegistry()
			s := scheduler.New(scheduler.Config{
				Concurrency: 1, Log: slog.New(slog.DiscardHandler), Registerer: registry, Now: func() time.Time { return now },
			})
			for i := range benchEndpoints {
				if err := s.Set(endpoint(fmt.Sprintf("e%d", i)), store.State{}); err != nil {
					b.Fatal(err)
				}
			}
			now = at
			for b.Loop() {
				if _, err := registry.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
