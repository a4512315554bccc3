package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How the garbage collector is set, in per cent of the memory in use that may be added before the next collection. Much of
// what this process holds is where each endpoint stands, so that Go's own 100 would hold a small service of few checks to
// twice what it needs, while one that checks thousands a second spends a sixth of its time collecting.
const (
	collectOften  = 50
	collectUsual  = 100
	collectSeldom = 200

	// plenty is what may be added between two collections for the sake of time: whoever has much more than that in use does not
	// expect three times as much.
	plenty = 128 << 20 // bytes

	// A collector that takes more of the machine than busyShare is asked less, one that takes less than idleShare more. They
	// lie so far apart that one step does not lead from the one to the other.
	busyShare = 0.05
	idleShare = 0.01

	collectorEvery = 5 * time.Second
)

// collector sets the garbage collector by what it costs: little memory where there is time, little time where there is none.
type collector struct {
	percent    int
	used, time float64 // seconds of processors: those of the collector, and all that there were
}

// newCollector sets the garbage collector, unless the environment does by GOGC or GOMEMLIMIT: nil then. restore puts back what
// was set.
func newCollector(env func(name string) (value string, set bool)) (c *collector, restore func()) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if value, _ := env(name); value != "" {
			return nil, func() {}
		}
	}
	before := debug.SetGCPercent(collectOften)
	c = &collector{percent: collectOften}
	c.used, c.time = collectorTime()
	return c, func() { debug.SetGCPercent(before) }
}

// run follows the load until ctx ends.
func (c *collector) run(ctx context.Context) error {
	if c == nil {
		return nil
	}
	return every(ctx, collectorEvery, func(context.Context) { c.look() })
}

// look sets the garbage collector by what it took since the last look.
func (c *collector) look() {
	used, all := collectorTime()
	if all <= c.time {
		return // the figures are as of the latest collection
	}
	percent := percentFor(c.percent, (used-c.used)/(all-c.time), heapInUse())
	c.used, c.time = used, all
	if percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent) // stops the world, for a moment
	}
}

// percentFor returns what follows a percentage with which the collector took that share of the machine, so many bytes being in
// use.
func percentFor(percent int, share float64, heap uint64) int {
	switch {
	case share > busyShare:
		percent *= 2
	case share < idleShare:
		percent /= 2
	}
	most := collectSeldom
	if heap > plenty*100/collectSeldom {
		most = max(int(plenty*100/heap), collectUsual) //nolint:gosec // less than collectSeldom
	}
	return min(max(percent, collectOften), most)
}

// collectorTime returns what the collector took of the processors, apart from what nobody else wanted, and all there was, in
// seconds.
func collectorTime() (used, all float64) {
	samples := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"},
	}
	metrics.Read(samples)
	return samples[0].Value.Float64() - samples[1].Value.Float64(), samples[2].Value.Float64()
}

// heapInUse returns how many bytes the latest collection left.
func heapInUse() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}
