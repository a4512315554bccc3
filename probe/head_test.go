package probe_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

// noon is when the heads of these tests are seen.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// ago is a head of Ethereum as it was seen some time before noon, its block as old as it should be.
func ago(d time.Duration, height uint64) probe.Head {
	seen := noon.Add(-d)
	return probe.Head{Chain: "1", Height: height, Time: seen.Add(-2 * time.Second), Asked: seen.Add(-100 * time.Millisecond), Seen: seen, Since: seen}
}

// since is h with another time at which its height was first seen.
func since(d time.Duration, h probe.Head) probe.Head {
	h.Since = noon.Add(-d)
	return h
}

// aged is h with a block so old at noon.
func aged(d time.Duration, h probe.Head) probe.Head {
	h.Time = noon.Add(-d)
	return h
}

// hashed is h with hashes.
func hashed(h probe.Head, hash, parent string) probe.Head {
	h.Hash, h.Parent = hash, parent
	return h
}

func remembering(h probe.Head) probe.Memory { return probe.Memory{Head: &h} }

func TestHeadVerdicts(t *testing.T) {
	second, minute, hour := time.Second, time.Minute, time.Hour
	number := func(n int64) *int64 { return &n }
	peers := func(heads ...probe.Head) []probe.Head { return heads }
	elsewhere := func(h probe.Head) probe.Head {
		h.Chain = "5"
		return h
	}
	timeless := func(h probe.Head) probe.Head {
		h.Time = time.Time{}
		return h
	}
	forever := func(h probe.Head) probe.Head {
		h.Time = time.Date(9892, 1, 1, 0, 0, 0, 0, time.UTC) // further away than a time.Duration reaches
		return h
	}
	for name, tc := range map[string]struct {
		head    probe.Head
		before  probe.Memory
		peers   []probe.Head
		options probe.Chain
		want    []string
		lag     *int64
		says    string
	}{
		"the first look":                 {head: ago(0, 1000)},
		"one block further":              {head: ago(0, 1001), before: remembering(ago(minute, 1000))},
		"an old block":                   {head: aged(3*minute, ago(0, 1000)), want: []string{"head_lagging"}, says: "3 min old, more than 2 min"},
		"a very old block":               {head: aged(41*hour, ago(0, 1000)), want: []string{"head_behind"}, says: "41 h old, more than 10 min"},
		"a block of tomorrow":            {head: aged(-minute, ago(0, 1000)), want: []string{"clock_skew?"}, says: "1 min in the future"},
		"a block of the last year":       {head: forever(ago(0, 1000)), want: []string{"clock_skew?"}, says: "lies 106751 days 23 h"},
		"a clock that is a little ahead": {head: aged(-4*second, ago(0, 1000))},

		"the same height for a while":     {head: ago(0, 1000), before: remembering(since(110*second, ago(minute, 1000)))},
		"the same height for too long":    {head: timeless(ago(0, 1000)), before: remembering(since(3*minute, ago(minute, 1000))), want: []string{"head_stalled"}, says: "no new block for 3 min"},
		"as long, but on demand":          {head: ago(0, 1000), before: remembering(since(3*minute, ago(minute, 1000))), options: probe.Chain{MaxAge: -1}},
		"as long, but measured slower":    {head: timeless(ago(0, 1000)), before: probe.Memory{Head: ptr(since(3*minute, ago(minute, 1000))), Block: probe.BlockPace{Average: minute, Samples: 3}}},
		"measured faster, with two looks": {head: timeless(ago(0, 1000)), before: probe.Memory{Head: ptr(since(100*second, ago(minute, 1000))), Block: probe.BlockPace{Average: second, Samples: 2}}},
		"measured faster":                 {head: timeless(ago(0, 1000)), before: probe.Memory{Head: ptr(since(100*second, ago(minute, 1000))), Block: probe.BlockPace{Average: second, Samples: 3}}, want: []string{"head_stalled"}},

		"a few blocks lower":           {head: ago(0, 997), before: remembering(ago(minute, 1000)), want: []string{"head_regressed?"}, says: "3 blocks lower"},
		"many blocks lower":            {head: ago(0, 1000), before: remembering(ago(minute, 5000)), want: []string{"head_regressed?"}, says: "a large rollback: 4000 blocks"},
		"lower, and nothing new since": {head: timeless(ago(0, 997)), before: remembering(since(5*minute, ago(minute, 1000))), want: []string{"head_regressed?", "head_stalled"}, says: "still at 1000"},

		"no peers are not zero behind":                {head: ago(0, 1000)},
		"a peer of another chain":                     {head: ago(0, 1000), peers: peers(elsewhere(ago(0, 9000)))},
		"a peer not seen for long":                    {head: ago(0, 1000), peers: peers(ago(2*minute, 9000))},
		"a peer seen as often as it is asked":         {head: ago(0, 1000), peers: peers(every(5*minute, ago(2*minute, 990))), lag: number(0)},
		"a peer at the same height":                   {head: ago(0, 1000), peers: peers(ago(0, 1000)), lag: number(0)},
		"a peer behind":                               {head: ago(0, 1000), peers: peers(ago(0, 990)), lag: number(0)},
		"peers are projected":                         {head: ago(0, 1000), peers: peers(ago(36*second, 1000), ago(36*second, 1000)), lag: number(3)},
		"behind for the first time":                   {head: ago(0, 1000), peers: peers(ago(0, 1005), ago(0, 1005)), lag: number(5), want: []string{"head_lagging?"}, says: "first time"},
		"behind again":                                {head: ago(0, 1000), before: probe.Memory{Head: ptr(ago(minute, 999)), Over: 1}, peers: peers(ago(0, 1005), ago(0, 1006)), lag: number(5), want: []string{"head_lagging"}, says: "5 blocks (1 min) behind"},
		"behind by one":                               {head: ago(0, 1000), before: probe.Memory{Head: ptr(ago(minute, 999)), Over: 5}, peers: peers(ago(0, 1001), ago(0, 1001)), lag: number(1)},
		"far behind, twice":                           {head: ago(0, 1000), before: probe.Memory{Head: ptr(ago(minute, 999)), Over: 1, Far: 1}, peers: peers(ago(0, 1100), ago(0, 1100)), lag: number(100), want: []string{"head_behind"}},
		"far behind for the first time after lagging": {head: ago(0, 1000), before: probe.Memory{Head: ptr(ago(minute, 999)), Over: 3}, peers: peers(ago(0, 1100), ago(0, 1100)), lag: number(100), want: []string{"head_lagging"}},
		"far behind one that nobody confirms":         {head: ago(0, 1000), before: probe.Memory{Head: ptr(ago(minute, 999)), Over: 7, Far: 7}, peers: peers(ago(0, 31_000_000)), lag: number(30_999_000), want: []string{"head_lagging"}, says: "nobody else confirms"},
		"one ahead does not condemn":                  {head: ago(0, 1000), before: probe.Memory{Head: ptr(ago(minute, 999)), Over: 7, Far: 7}, peers: peers(ago(0, 31_000_000), ago(0, 1000)), lag: number(0)},
		"limits of the target":                        {head: ago(0, 1000), before: probe.Memory{Head: ptr(ago(minute, 999)), Over: 1, Far: 1}, peers: peers(ago(0, 1100), ago(0, 1100)), options: probe.Chain{Lagging: 50, Syncing: 200}, lag: number(100), want: []string{"head_lagging"}},

		"all stand still": {head: timeless(ago(0, 1000)), before: remembering(since(5*minute, ago(minute, 1000))), peers: peers(since(5*minute, ago(0, 1000)), since(6*minute, ago(10*second, 1000))),
			lag: number(0), want: []string{"chain_halted"}, says: "all 3 endpoints"},
		"all stand still, as the age of the block tells at the first look": {head: aged(hour, ago(0, 1000)), peers: peers(since(5*minute, ago(0, 1000))), lag: number(0), want: []string{"chain_halted"}},
		"one that is registered twice stands still alone":                  {head: from("node:443", aged(hour, ago(0, 1000))), peers: peers(from("node:443", aged(hour, ago(0, 1000)))), want: []string{"head_behind"}},
		"all were found standing still":                                    {head: aged(hour, ago(0, 1000)), peers: peers(aged(hour, ago(0, 1000)), aged(hour, ago(0, 1000))), lag: number(0), want: []string{"chain_halted"}},
		"the others go on": {head: timeless(ago(0, 1000)), before: remembering(since(5*minute, ago(minute, 1000))), peers: peers(since(5*minute, ago(0, 1000)), ago(0, 1030)),
			lag: number(0), want: []string{"head_stalled"}},
		"the other stands still elsewhere": {head: timeless(ago(0, 1000)), before: remembering(since(5*minute, ago(minute, 1000))), peers: peers(since(5*minute, ago(0, 1001))), lag: number(1), want: []string{"head_stalled"}},

		"a fork of its own":                       {head: hashed(ago(0, 1000), "a", "x"), peers: peers(hashed(ago(0, 1000), "b", "y"), hashed(ago(0, 1000), "b", "y")), lag: number(0), want: []string{"chain_fork"}, says: "b at 2 others"},
		"a fork of the others":                    {head: hashed(ago(0, 1000), "a", "x"), peers: peers(hashed(ago(0, 1000), "b", "y"), hashed(ago(0, 1000), "a", "x")), lag: number(0)},
		"two that disagree":                       {head: hashed(ago(0, 1000), "a", "x"), peers: peers(hashed(ago(0, 1000), "b", "y")), lag: number(0), want: []string{"chain_fork?"}},
		"a parent nobody else has":                {head: hashed(ago(0, 1001), "c", "a"), peers: peers(hashed(ago(0, 1000), "b", "y"), hashed(ago(0, 1000), "b", "y")), lag: number(0), want: []string{"chain_fork"}},
		"others built on another":                 {head: hashed(ago(0, 1000), "a", "x"), peers: peers(hashed(ago(0, 1001), "c", "b"), hashed(ago(0, 1001), "c", "b")), lag: number(1), want: []string{"chain_fork"}},
		"far behind one origin, twice registered": {head: ago(0, 900), before: probe.Memory{Over: 1, Far: 1}, peers: peers(from("liar:80", ago(0, 1000)), from("liar:80", ago(0, 1000))), lag: number(100), want: []string{"head_lagging"}, says: "nobody else confirms"},
		"others built on this":                    {head: hashed(ago(0, 1000), "a", "x"), peers: peers(hashed(ago(0, 1001), "c", "a"), hashed(ago(0, 1001), "c", "a")), lag: number(1)},
	} {
		t.Run(name, func(t *testing.T) {
			got, words, _, lag := probe.JudgeHead(probe.KindEVM, tc.head, tc.before, tc.peers, tc.options)
			if !slices.Equal(got, tc.want) || !strings.Contains(strings.Join(words, "\n"), tc.says) {
				t.Errorf("found %q %q, want %q saying %q", got, words, tc.want, tc.says)
			}
			if diff := cmp.Diff(tc.lag, lag); diff != "" {
				t.Errorf("lag (-want +got):\n%s", diff)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// from is h as an origin of this name told it.
func from(origin string, h probe.Head) probe.Head {
	h.Origin = origin
	return h
}

func every(d time.Duration, h probe.Head) probe.Head {
	h.Every = d
	return h
}

// A node may fall behind and catch up many times a day: each verdict is a matter of what was seen last.
func TestHeadStory(t *testing.T) {
	memory := probe.Memory{}
	look := func(at time.Duration, height uint64, peer uint64) []string {
		t.Helper()
		head := ago(-at, height)
		others := []probe.Head{ago(-at, peer), ago(-at, peer)}
		findings, _, after, _ := probe.JudgeHead(probe.KindEVM, head, memory, others, probe.Chain{})
		memory = after
		return findings
	}
	// A minute between looks, in which the chain makes five blocks.
	var story []string
	for i, heights := range [][2]uint64{{1000, 1000}, {1004, 1005}, {1005, 1010}, {1006, 1015}, {1007, 1020}, {1025, 1025}} {
		findings := look(time.Duration(i)*time.Minute, heights[0], heights[1])
		story = append(story, strings.Join(findings, " "))
	}
	want := []string{"", "", "head_lagging?", "head_lagging", "head_lagging", ""}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
	if memory.Over != 0 || memory.Far != 0 || memory.Head.Height != 1025 {
		t.Errorf("memory %+v", memory)
	}
}

// Behind a load balancer the heights of two nodes alternate. The higher one counts, so that a standstill is noticed all the
// same, until it was not seen for so long that the lower one must be the truth.
func TestHeadBehindLoadBalancer(t *testing.T) {
	memory := probe.Memory{}
	var story []string
	for i, height := range []uint64{1000, 998, 1000, 998, 1000, 998, 998, 998, 998, 998} {
		head := ago(-time.Duration(i)*30*time.Second, height)
		head.Time = time.Time{}
		findings, _, after, _ := probe.JudgeHead(probe.KindEVM, head, memory, nil, probe.Chain{})
		memory = after
		story = append(story, strings.Join(findings, " "))
	}
	want := []string{"", "head_regressed?", "", "head_regressed?", "", "head_regressed? head_stalled", "head_regressed? head_stalled",
		"head_regressed? head_stalled", "head_regressed? head_stalled", "head_regressed?"}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
	if memory.Head.Height != 998 {
		t.Errorf("at the end the height is %d", memory.Head.Height)
	}
}

func TestAnotherChainBeginsAnew(t *testing.T) {
	before := probe.Memory{Head: ptr(since(time.Hour, ago(time.Minute, 1000))), Block: probe.BlockPace{Average: time.Minute, Samples: 9}, Over: 4, Far: 2, Finalized: ptr(uint64(900)), SoundTools: "x"}
	head := ago(0, 10)
	head.Chain = "10"
	findings, _, after, _ := probe.JudgeHead(probe.KindEVM, head, before, nil, probe.Chain{})
	want := probe.Memory{Head: &head, SoundTools: "x"}
	if diff := cmp.Diff(want, after); diff != "" || findings != nil {
		t.Errorf("found %q, memory (-want +got):\n%s", findings, diff)
	}
}

func TestFinality(t *testing.T) {
	n := func(n uint64) *uint64 { return &n }
	before := func(final uint64) probe.Memory {
		return probe.Memory{Head: ptr(ago(time.Minute, 990)), Finalized: &final}
	}
	for name, tc := range map[string]struct {
		finalized, safe *uint64
		before          probe.Memory
		want            []string
		kept            *uint64
	}{
		"none":                       {},
		"in order":                   {n(930), n(960), before(900), nil, n(930)},
		"final above the newest":     {n(1100), nil, probe.Memory{}, []string{"finality"}, n(1100)},
		"a block came between calls": {n(1001), nil, probe.Memory{}, nil, n(1001)},
		"final above safe":           {n(990), n(960), probe.Memory{}, []string{"finality"}, n(990)},
		"safe above the newest":      {n(930), n(1100), probe.Memory{}, []string{"finality"}, n(930)},
		"no finality for long":       {n(800), nil, probe.Memory{}, []string{"finality"}, n(800)},
		"a replica an epoch behind":  {n(898), nil, before(930), []string{"finality?"}, n(930)},
		"final blocks taken back":    {n(880), nil, before(930), []string{"finality"}, n(880)},
		"no answer this time":        {nil, nil, before(930), nil, n(930)},
	} {
		got, kept := probe.JudgeFinality(probe.KindEVM, ago(0, 1000), tc.before, tc.finalized, tc.safe)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: found %q, want %q", name, got, tc.want)
		}
		if diff := cmp.Diff(tc.kept, kept); diff != "" {
			t.Errorf("%s: kept (-want +got):\n%s", name, diff)
		}
	}
}

func TestPace(t *testing.T) {
	clockless := func(h probe.Head) probe.Head {
		h.Time = time.Time{}
		return h
	}
	for name, tc := range map[string]struct {
		before, head probe.Head
		prior        time.Duration
		want         time.Duration // zero: no sample
	}{
		"by the chain's clock":     {ago(time.Minute, 1000), ago(0, 1005), 0, 12 * time.Second},
		"by ours":                  {clockless(ago(time.Minute, 1000)), clockless(ago(0, 1005)), 0, 12 * time.Second},
		"by ours, from the first":  {clockless(since(10*time.Minute, ago(time.Minute, 1000))), clockless(ago(0, 1001)), 10 * time.Minute, 10 * time.Minute},
		"no progress":              {ago(time.Minute, 1000), ago(0, 1000), 0, 0},
		"backwards":                {ago(time.Minute, 1000), ago(0, 999), 0, 0},
		"too fast":                 {ago(time.Minute, 1000), ago(0, 100_000_000), 0, 0},
		"too slow":                 {ago(10*time.Minute, 1000), ago(0, 1001), 0, 0},
		"slow, as its preset says": {ago(10*time.Minute, 1000), ago(0, 1001), 10 * time.Minute, 10 * time.Minute},
		"a clock that goes back":   {aged(0, ago(time.Minute, 1000)), aged(time.Hour, ago(0, 1001)), 0, 0},
	} {
		got := probe.NextPace(probe.BlockPace{}, tc.before, tc.head, tc.prior)
		if got.Average != tc.want || (got.Samples == 1) != (tc.want != 0) {
			t.Errorf("%s: %+v, want %v", name, got, tc.want)
		}
	}
	pace := probe.BlockPace{}
	for i := range 200 {
		wide := time.Duration(10+i%5) * time.Second // 12 s on average
		before := ago(wide, uint64(i))
		before.Time, before.Seen = noon.Add(-wide), noon.Add(-wide)
		head := ago(0, uint64(i)+1)
		head.Time = noon
		pace = probe.NextPace(pace, before, head, 0)
	}
	if pace.Average < 11*time.Second || pace.Average > 13*time.Second || pace.Samples != 200 {
		t.Errorf("after 200 blocks of 12s on average: %+v", pace)
	}
}

func TestMemoryAsJSON(t *testing.T) {
	memory := probe.Memory{Head: ptr(hashed(every(time.Minute, ago(0, 1<<63)), "a", "b")), Block: probe.BlockPace{Average: 12 * time.Second, Samples: 4},
		Finalized: ptr(uint64(7)), Since: &noon, Over: 1, Far: 2}
	text, err := json.Marshal(memory)
	if err != nil {
		t.Fatal(err)
	}
	var back probe.Memory
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(memory, back); diff != "" {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
}

// How often an endpoint is asked is seen from its checks: one that is asked each five minutes is not left out of the
// comparison because its head is two minutes old.
func TestCadence(t *testing.T) {
	memory := probe.Memory{}
	at := func(seconds int) time.Duration {
		seen := ago(0, 0).Seen.Add(time.Duration(seconds) * time.Second)
		_, _, m, _ := probe.JudgeHead(probe.KindEVM, probe.Head{Chain: "1", Height: uint64(1000 + seconds/12), Seen: seen, Asked: seen}, memory, nil, probe.Chain{})
		memory = m
		return memory.Head.Every
	}
	var got []time.Duration
	for _, second := range []int{0, 300, 600, 605, 905, 90_000} {
		got = append(got, at(second))
	}
	want := []time.Duration{0, 5 * time.Minute, 5 * time.Minute, 225 * time.Second, 5 * time.Minute, 10 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cadence (-want +got):\n%s", diff)
	}
}
