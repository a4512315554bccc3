package store_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

var stepNames = []string{"initialize", "initialized", "tools/list", "close"}

// mcpResult is a good check of an MCP server whose steps take about 40 ms, spread as network latencies are.
func mcpResult(random *rand.Rand) probe.Result {
	r := probe.Result{Verdict: probe.Up}
	for _, name := range stepNames {
		latency := time.Duration(40e6 * math.Exp(0.3*random.NormFloat64()))
		r.Steps = append(r.Steps, probe.Step{Name: name, Latency: latency})
		r.Duration += latency
	}
	return r
}

func rollupOf(random *rand.Rand, checks int) (h store.Rollup) {
	for range checks {
		h.Add(mcpResult(random))
	}
	return h
}

// BenchmarkLatenciesAdd is one MCP check, five latencies, taken into the running hour of an endpoint.
func BenchmarkLatenciesAdd(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	results := make([]probe.Result, 60)
	for i := range results {
		results[i] = mcpResult(random)
	}
	b.ReportAllocs()
	var l store.Latencies
	for i := 0; b.Loop(); i++ {
		if i%60 == 0 {
			l = store.Latencies{}
		}
		l.Add(results[i%60])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(5*b.N), "ns/latency")
}

// BenchmarkRollupMarshal is what each check of a place costs when its running hour is written.
func BenchmarkRollupMarshal(b *testing.B) {
	h := rollupOf(rand.New(rand.NewPCG(1, 2)), 60)
	b.ReportAllocs()
	var data []byte
	for b.Loop() {
		data, _ = h.MarshalBinary()
	}
	b.ReportMetric(float64(len(data)), "bytes")
}

// BenchmarkRollupMerge365 is what a page reads for a year: 365 days of a check a minute, with five sketches each, are
// decoded and merged, and four percentiles are taken of each. The floor is a loop that adds up the same bins from an array.
func BenchmarkRollupMerge365(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	day, err := rollupOf(random, 1440).Latencies.MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	rows := make([][]byte, 365)
	for i := range rows {
		rows[i] = day
		if i%10 == 0 { // making each of them takes longer than the benchmark
			if day, err = rollupOf(random, 1440).Latencies.MarshalBinary(); err != nil {
				b.Fatal(err)
			}
		}
	}
	percentiles := func(b *testing.B, sum store.Latencies) {
		for _, step := range append([]string{""}, stepNames...) {
			if q := sum.Quantiles(step, 0.5, 0.9, 0.95, 0.99); len(q) != 4 {
				b.Fatalf("quantiles of %q: %v", step, q)
			}
		}
	}
	b.Run("decoded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var sum store.Rollup
			for _, row := range rows {
				var h store.Rollup
				if err := h.Latencies.UnmarshalBinary(row); err != nil {
					b.Fatal(err)
				}
				if err := sum.Merge(h); err != nil {
					b.Fatal(err)
				}
			}
			percentiles(b, sum.Latencies)
		}
		b.ReportMetric(float64(len(day)), "bytes/day")
	})
	b.Run("straight", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var sum store.Latencies
			for _, row := range rows {
				if err := sum.MergeBinary(row); err != nil {
					b.Fatal(err)
				}
			}
			percentiles(b, sum)
		}
	})
	b.Run("floor", func(b *testing.B) {
		type bin struct {
			index int32
			count uint32
		}
		bins := make([]bin, 110)
		for i := range bins {
			bins[i] = bin{int32(i), uint32(i)}
		}
		for b.Loop() {
			var sum [5][2048]uint64
			for range rows {
				for step := range sum {
					for _, bin := range bins {
						sum[step][bin.index&2047] += uint64(bin.count)
					}
				}
			}
			runtime.KeepAlive(&sum)
		}
	})
}
