package store_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	ddstore "github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

var percentiles = []float64{0, 0.5, 0.9, 0.95, 0.99, 1}

// distributions are latencies as endpoints have them.
var distributions = map[string]func(*rand.Rand) time.Duration{
	"lognormal": func(r *rand.Rand) time.Duration { return time.Duration(40e6 * math.Exp(r.NormFloat64())) },
	"constant":  func(*rand.Rand) time.Duration { return 84 * time.Millisecond },
	"bimodal": func(r *rand.Rand) time.Duration {
		if r.IntN(10) == 0 {
			return time.Duration(2e9 + 1e8*r.Float64())
		}
		return time.Duration(2e5 + 1e4*r.Float64())
	},
	"often nothing": func(r *rand.Rand) time.Duration { return time.Duration(r.IntN(3)) * time.Nanosecond },
	"anything":      func(r *rand.Rand) time.Duration { return time.Duration(r.Int64() >> r.IntN(63)) },
}

// exact returns the quantile of latencies, sorted, by its definition.
func exact(latencies []time.Duration, q float64) float64 {
	rank := max(1, int(math.Ceil(q*float64(len(latencies))-1e-9)))
	return store.Milliseconds(latencies[rank-1])
}

func whole(d time.Duration) probe.Result { return probe.Result{Verdict: probe.Up, Duration: d} }

func TestQuantilesOfMergedLatenciesAreRight(t *testing.T) {
	for name, next := range distributions {
		for _, n := range []int{1, 2, 3, 10, 99, 100, 101, 5000} {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			all := make([]time.Duration, n)
			parts := make([]store.Latencies, 7)
			for i := range all {
				all[i] = next(random)
				parts[random.IntN(len(parts))].Add(whole(all[i]))
			}
			slices.Sort(all)
			for way, sum := range ways(t, random, parts) {
				got := sum.Quantiles("", percentiles...)
				for i, q := range percentiles {
					want := exact(all, q)
					if len(got) != len(percentiles) || math.Abs(got[i]-want) > 0.0101*want {
						t.Fatalf("%s, %d latencies, %s: quantile %v = %v, want about %v", name, n, way, q, got, want)
					}
				}
			}
		}
	}
}

// ways adds up parts in each way there is, in orders of their own.
func ways(t *testing.T, random *rand.Rand, parts []store.Latencies) map[string]store.Latencies {
	t.Helper()
	sums := map[string]store.Latencies{}
	for _, way := range []string{"merged", "merged shuffled", "merged from bytes", "merged in two halves", "merged and carried over"} {
		parts := slices.Clone(parts)
		random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		var sum, half store.Latencies
		for i, part := range parts {
			data, err := part.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case way == "merged from bytes":
				err = sum.MergeBinary(data)
			case way == "merged in two halves" && i%2 == 0:
				err = half.Merge(part)
			default:
				err = sum.Merge(part)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := sum.Merge(half); err != nil {
			t.Fatal(err)
		}
		if way == "merged and carried over" {
			sum = back(t, sum)
		}
		sums[way] = sum
	}
	return sums
}

// back returns l as it comes back from a database.
func back(t testing.TB, l store.Latencies) (again store.Latencies) {
	t.Helper()
	data, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.UnmarshalBinary(data); err != nil {
		t.Fatalf("%x: %v", data, err)
	}
	return again
}

func TestTheLargestOfFewLatenciesIsTheirP99(t *testing.T) {
	var l store.Latencies
	for _, ms := range []int{10, 20, 1000} {
		l.Add(whole(time.Duration(ms) * time.Millisecond))
	}
	got := l.Quantiles("", 0.01, 0.33, 0.34, 0.5, 0.66, 0.67, 0.99)
	for i, want := range []float64{10, 10, 20, 20, 20, 1000, 1000} {
		if math.Abs(got[i]-want) > 0.0101*want {
			t.Errorf("quantiles %v, want about %v at %d", got, want, i)
		}
	}
}

func TestLatenciesAreReadByTheLibraryAndReadItsOwn(t *testing.T) {
	m, err := mapping.NewLogarithmicMapping(0.01)
	if err != nil {
		t.Fatal(err)
	}
	for name, next := range distributions {
		for _, n := range []int{1, 40, 3000, 70_000} {
			random := rand.New(rand.NewPCG(2, uint64(n)))
			var ours store.Latencies
			theirs := map[string]*ddsketch.DDSketch{
				"sparse":   ddsketch.NewDDSketchFromStoreProvider(m, ddstore.SparseStoreConstructor),
				"dense":    ddsketch.NewDDSketchFromStoreProvider(m, ddstore.DenseStoreConstructor),
				"buffered": ddsketch.NewDDSketchFromStoreProvider(m, ddstore.BufferedPaginatedStoreConstructor),
			}
			for range n {
				d := next(random)
				ours.Add(whole(d))
				for _, s := range theirs {
					if err := s.Add(store.Milliseconds(d)); err != nil {
						t.Fatal(err)
					}
				}
			}
			data, err := ours.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if err := ours.Merge(back(t, ours)); err != nil { // twice the same, to write a sum as well
				t.Fatal(err)
			}
			twice, err := ours.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			sum := ddsketch.NewDDSketchFromStoreProvider(m, ddstore.SparseStoreConstructor)
			for i, written := range [][]byte{data, twice} {
				read, err := ddsketch.DecodeDDSketch(sketchBytes(t, written), ddstore.SparseStoreConstructor, m)
				if err != nil {
					t.Fatal(err)
				}
				if err := sum.MergeWith(theirs["sparse"]); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(binsOf(read), binsOf(sum)); diff != "" {
					t.Errorf("%s, %d times %d: bins as the library reads them (-got +want):\n%s", name, i+1, n, diff)
				}
			}
			for kind, s := range theirs {
				var encoded []byte
				s.Encode(&encoded, true)
				read, err := ddsketch.DecodeDDSketch(sketchBytes(t, marshal(t, encoded)), ddstore.SparseStoreConstructor, m)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(binsOf(read), binsOf(theirs["sparse"])); diff != "" {
					t.Errorf("%s, %d: bins of a %s sketch (-got +want):\n%s", name, n, kind, diff)
				}
			}
		}
	}
}

// marshal reads a sketch of whole checks as rows of the first schema hold it, and writes it again.
func marshal(t *testing.T, encoded []byte) []byte {
	t.Helper()
	row, err := json.Marshal(map[string][]byte{"": encoded})
	if err != nil {
		t.Fatal(err)
	}
	var l store.Latencies
	if err := l.UnmarshalBinary(row); err != nil {
		t.Fatalf("%s: %v", row, err)
	}
	data, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sketchBytes cuts the only sketch, that of whole checks, out of encoded latencies.
func sketchBytes(t *testing.T, data []byte) []byte {
	t.Helper()
	if len(data) < 4 || data[0] != 1 || data[1] != 0 {
		t.Fatalf("%x is not the form of latencies", data)
	}
	n, size := binary.Uvarint(data[2:])
	if int(n) != len(data)-2-size {
		t.Fatalf("a sketch of %d bytes in %x", n, data)
	}
	return data[2+size:]
}

func binsOf(s *ddsketch.DDSketch) map[float64]float64 {
	bins := map[float64]float64{}
	s.ForEach(func(value, count float64) bool {
		bins[value] = count
		return false
	})
	return bins
}

func TestLatenciesOfTheFirstFormAreRead(t *testing.T) {
	m, err := mapping.NewLogarithmicMapping(0.01)
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string][]float64{"": {10, 20, 20, 0}, "initialize": {5}}
	encoded := map[string][]byte{}
	for step, latencies := range steps {
		s := ddsketch.NewDDSketchFromStoreProvider(m, ddstore.SparseStoreConstructor)
		for _, ms := range latencies {
			if err := s.Add(ms); err != nil {
				t.Fatal(err)
			}
		}
		var b []byte
		s.Encode(&b, true)
		encoded[step] = b
	}
	data, err := json.Marshal(encoded)
	if err != nil {
		t.Fatal(err)
	}
	var l store.Latencies
	if err := l.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	for step, want := range map[string][]float64{"": {0, 10, 20}, "initialize": {5, 5, 5}} {
		got := l.Quantiles(step, 0, 0.5, 1)
		for i := range want {
			if len(got) != 3 || math.Abs(got[i]-want[i]) > 0.0101*want[i] {
				t.Errorf("quantiles of step %q = %v, want about %v", step, got, want)
			}
		}
	}
}

func TestACloneGoesItsOwnWay(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, checks := range []int{10, 2000} {
		h := rollupOf(random, checks)
		if err := h.Merge(rollupOf(random, checks)); err != nil { // a sum, held in another form
			t.Fatal(err)
		}
		for _, h := range []store.Rollup{h, rollupOf(random, checks)} {
			before, err := h.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			c := h.Clone()
			for range 100 {
				c.Add(mcpResult(random))
			}
			after, err := h.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(after, before); diff != "" {
				t.Errorf("adding to a clone changed the original (-got +want):\n%s", diff)
			}
		}
	}
}

func TestLatenciesMergedWithThemselvesAreThereTwice(t *testing.T) {
	once := rollupOf(rand.New(rand.NewPCG(8, 8)), 60).Latencies
	want, got := once.Clone(), once
	for range 2 { // of bins, then of a sum
		if err := want.Merge(want.Clone()); err != nil {
			t.Fatal(err)
		}
		if err := got.Merge(got); err != nil {
			t.Fatal(err)
		}
	}
	a, errA := got.MarshalBinary()
	b, errB := want.MarshalBinary()
	if diff := cmp.Diff(a, b); diff != "" || errA != nil || errB != nil {
		t.Errorf("%v %v (-got +want):\n%s", errA, errB, diff)
	}
}

func TestMergingLeavesTheOtherAlone(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	var sum store.Latencies
	part := rollupOf(random, 60).Latencies
	before, err := part.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := sum.Merge(part); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		sum.Add(mcpResult(random))
	}
	after, err := part.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, before); diff != "" {
		t.Errorf("what was merged is shared (-got +want):\n%s", diff)
	}
}

// TestRunningHoursFitInMemory holds the running hour of 10,000 endpoints, each checked every minute.
func TestRunningHoursFitInMemory(t *testing.T) {
	const endpoints, sample, most = 10_000, 1000, 15 << 20
	random := rand.New(rand.NewPCG(5, 5))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	hours := make([]store.Rollup, sample)
	for i := range hours {
		hours[i] = rollupOf(random, 60)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	got := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) * endpoints / sample
	t.Logf("%d hours of 5 sketches take %.1f MB", endpoints, float64(got)/(1<<20))
	if got > most {
		t.Errorf("%d hours of 5 sketches take %d bytes, want at most %d", endpoints, got, most)
	}
	runtime.KeepAlive(hours)
}

func TestManySumsOfManyStepsAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	var sum store.Latencies
	for range 100 {
		var l store.Latencies
		for range 10 {
			step := probe.Step{Name: store.Numbered("step", random.IntN(1000)+2), Latency: time.Second}
			l.Add(probe.Result{Verdict: probe.Up, Steps: []probe.Step{step}})
		}
		if err := sum.Merge(l); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(sum.Steps()); n > 24 {
		t.Errorf("%d steps in a sum, want a bound", n)
	}
}

func TestBrokenLatenciesAreErrors(t *testing.T) {
	sketch := func(bytes ...byte) []byte { return append([]byte{1, 0, byte(len(bytes))}, bytes...) }
	const zeros, deltas, counts, contiguous = 0x04, 0x09, 0x05, 0x0d
	for name, data := range map[string][]byte{
		"a later version":               {2},
		"no length of a name":           {1, 0x80},
		"a name that is cut short":      {1, 5, 'a'},
		"no sketch":                     {1, 1, 'a'},
		"a sketch that is cut short":    {1, 0, 9, deltas, 1},
		"a flag that is none":           sketch(0xff),
		"latencies below zero":          sketch(0x0b, 1, 2),
		"a mapping":                     sketch(0x02, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8),
		"half a zero":                   sketch(zeros, 1),
		"fewer bins than said":          sketch(deltas, 3, 2, 2),
		"more bins than there is room":  sketch(deltas, 0xff, 0xff, 0xff, 0x7f, 2),
		"a bin beyond all durations":    sketch(deltas, 1, 0xfe, 0x7f),
		"half a latency":                sketch(counts, 1, 2, 1),
		"a count that is cut short":     sketch(counts, 1, 2, 0x80),
		"neighbours that are not there": sketch(contiguous, 5, 0, 2, 2),
		"neighbours two apart":          sketch(contiguous, 2, 0, 4, 2, 2),
		"neighbours beyond durations":   sketch(contiguous, 2, 0xfe, 0x7f, 2, 2, 2),
		"too many latencies":            sketch(counts, 1, 2, 0xd4, 0x80, 0x80, 0x80, 0x80, 0x40),
		"JSON that is cut short":        []byte(`{"":`),
		"JSON of something else":        []byte(`{"":7}`),
	} {
		var l store.Latencies
		if err := l.UnmarshalBinary(data); err == nil {
			t.Errorf("%s: %x is read", name, data)
		}
	}
}

func FuzzLatencies(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, checks := range []int{0, 1, 5, 60, 3000} {
		data, err := rollupOf(random, checks).Latencies.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{1, 0, 5, 0x0d, 2, 0, 2, 2, 3})
	f.Add([]byte{1, 0, 6, 0x05, 2, 2, 4, 1, 6, 0x04})
	f.Add([]byte(`{"":"BAI=","a":"CQECAg=="}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var l store.Latencies
		err := l.UnmarshalBinary(data)
		runtime.ReadMemStats(&after)
		if grown, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+64*len(data)); grown > most {
			t.Errorf("%d bytes made %d, want at most %d", len(data), grown, most)
		}
		if err != nil {
			return
		}
		again := back(t, l)
		for _, step := range append(l.Steps(), "") {
			got := l.Quantiles(step, percentiles...)
			if diff := cmp.Diff(again.Quantiles(step, percentiles...), got); diff != "" {
				t.Errorf("quantiles of step %q, written and read (-got +want):\n%s", step, diff)
			}
			if !slices.IsSorted(got) {
				t.Errorf("quantiles of step %q are %v, want them to rise", step, got)
			}
		}
		if err := again.Merge(l); err == nil {
			back(t, again)
		}
	})
}

func TestLatenciesThatWereNotReadYetAreAsGoodAsOthers(t *testing.T) {
	var l store.Latencies
	for i := range 100 {
		l.Add(probe.Result{Verdict: probe.Up, Duration: time.Duration(i+1) * time.Millisecond})
	}
	data, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	want := l.Quantiles("", 0.5, 0.99)
	packed := store.PackedLatencies(data)
	if diff := cmp.Diff(packed.Quantiles("", 0.5, 0.99), want); diff != "" {
		t.Errorf("quantiles (-packed +read):\n%s", diff)
	}
	again, err := packed.MarshalBinary()
	if err != nil || !bytes.Equal(again, data) {
		t.Errorf("MarshalBinary of what was packed: %v, equal %t", err, bytes.Equal(again, data))
	}
	var sum store.Latencies
	for range 2 {
		if err := sum.Merge(packed); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(sum.Quantiles("", 0.5, 0.99), want); diff != "" {
		t.Errorf("quantiles of twice the same (-merged +once):\n%s", diff)
	}
	if err := sum.Merge(store.PackedLatencies([]byte{9, 9})); err == nil {
		t.Error("what is no sketch was merged")
	}
}

func TestOneStepIsMergedWithoutTheOthers(t *testing.T) {
	var l store.Latencies
	for i := range 100 {
		step := probe.Step{Name: "initialize", Latency: time.Duration(i) * time.Millisecond}
		l.Add(probe.Result{Verdict: probe.Up, Duration: time.Duration(i+1) * time.Second, Steps: []probe.Step{step}})
	}
	data, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]store.Latencies{"read": l, "packed": store.PackedLatencies(data)} {
		for _, step := range []string{"", "initialize"} {
			var sum store.Latencies
			for range 2 {
				if err := sum.MergeStep(m, step); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(sum.Quantiles(step, 0.5, 0.99), l.Quantiles(step, 0.5, 0.99)); diff != "" {
				t.Errorf("%s, quantiles of %q (-merged +all):\n%s", name, step, diff)
			}
			if other := map[string]string{"": "initialize", "initialize": ""}[step]; sum.Quantiles(other, 0.5) != nil {
				t.Errorf("%s: with %q came %q", name, step, other)
			}
			if err := sum.MergeStep(m, "tools/list"); err != nil {
				t.Errorf("%s: a step that there is nothing of: %v", name, err)
			}
		}
	}
	for name, broken := range map[string][]byte{"of no version": {9, 9}, "cut short": data[:len(data)-1]} {
		if err := new(store.Latencies).MergeStep(store.PackedLatencies(broken), "initialize"); err == nil {
			t.Errorf("what is %s was merged", name)
		}
	}
}
