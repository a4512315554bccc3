package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// The demo's endpoints come with an invented past, so that a newcomer sees at once what weeks of watching look like. It is made of checks
// that were never made, recorded as others are: roll-ups, incidents and timelines follow from them. It is made for an empty database alone.

// demoPast is how far the invented past goes back.
const demoPast = 90 * 24 * time.Hour

// episode is a stretch of the invented past in which something was wrong.
type episode struct {
	ago, lasted time.Duration // ago: its beginning
	failure     probe.Failure
}

const aDay = 24 * time.Hour

// What went wrong in the invented past.
var (
	demoErr      = probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error: the tool database is away"}
	demoHung     = probe.Failure{Step: "initialize", Class: probe.ClassTimeout, Message: "no first byte after 4 s"}
	demoAway     = probe.Failure{Step: "server/discover", Class: probe.ClassHTTPStatus, Code: 503, Message: "503 Service Unavailable: upstream connect error"}
	demoNode     = probe.Failure{Step: "eth_blockNumber", Class: probe.ClassConnect, Message: "connection refused"}
	demoBehind   = probe.Failure{Step: "eth_getBlockByNumber", Class: probe.ClassHeadLagging, Message: "the newest block, %d, is 12 min old, more than 10 min"}
	demoOverload = probe.Failure{Step: "tools/list", Class: probe.ClassSlow, Message: "took 3.1 s, more than 2 s: the slowest step was tools/list with 2.8 s"}
)

// demoEpisodes are by slug. Those that have not ended go on with what the servers of the demo answer.
var demoEpisodes = map[string][]episode{
	"demo-mcp-modern": {
		{71*aDay + 5*time.Hour, 35 * time.Minute, demoAway}, {26*aDay + 11*time.Hour, 3 * time.Hour, demoOverload}, {12*aDay + 2*time.Hour, 24 * time.Minute, demoAway},
	},
	"demo-mcp-legacy": {
		{58*aDay + 9*time.Hour, 100 * time.Minute, demoHung}, {33*aDay + 4*time.Hour, 12 * time.Minute, demoErr}, {9*aDay + 15*time.Hour, 2 * time.Hour, demoOverload},
		{9 * time.Hour, 14 * time.Minute, demoErr},
	},
	"demo-mcp-failing": {
		{45*aDay + 7*time.Hour, 50 * time.Minute, demoErr}, {6*aDay + 3*time.Hour, 5 * time.Hour, demoErr}, {3*time.Hour + 10*time.Minute, demoPast, demoErr},
	},
	"demo-mcp-hanging": {
		{62*aDay + 8*time.Hour, 7 * time.Hour, demoHung}, {20*aDay + 13*time.Hour, 90 * time.Minute, demoHung}, {4*aDay + 6*time.Hour, 40 * time.Minute, demoHung},
		{47 * time.Minute, demoPast, demoHung},
	},
	"demo-mcp-flaky": everySo(19*time.Hour, 6*time.Minute, demoAway),
	"demo-mcp-changing": {
		{38*aDay + 10*time.Hour, 18 * time.Minute, demoAway}, {15*aDay + 16*time.Hour, 5 * time.Hour, demoOverload},
	},
	"demo-chain-advancing": {
		{51*aDay + 3*time.Hour, 25 * time.Minute, demoNode}, {17*aDay + 9*time.Hour, 4 * time.Hour, demoBehind}, {2*aDay + 1*time.Hour, 8 * time.Minute, demoNode},
	},
	"demo-chain-frozen": {
		{80*aDay + 12*time.Hour, 6 * time.Hour, demoBehind}, {29*aDay + 5*time.Hour, 9 * time.Hour, demoBehind}, {50 * time.Minute, demoPast, demoBehind},
	},
}

// everySo returns episodes at intervals, which are longer the longer ago they are.
func everySo(between, lasted time.Duration, f probe.Failure) (all []episode) {
	for ago := 2 * time.Hour; ago < demoPast; ago += between {
		all = append(all, episode{ago, lasted, f})
		between += between / 8
	}
	return all
}

// spacing returns how far apart the invented checks of so long ago are: close enough for the bars of the last day, and for the uptime of a
// day with an outage to be near what it would have been, and few enough to be made in a moment.
func spacing(ago time.Duration, episodes []episode, now time.Time) time.Duration {
	day := store.DayOf(now.Add(-ago))
	switch {
	case ago < 26*time.Hour:
		return 12 * time.Minute
	case slices.ContainsFunc(episodes, func(x episode) bool { return store.DayOf(now.Add(-x.ago)).Equal(day) }):
		return 20 * time.Minute
	case ago < 8*aDay:
		return 45 * time.Minute
	}
	return 2 * time.Hour
}

// demoEra is how long a tool list of the invented past lasted.
const demoEra = 19 * 24 * time.Hour

// demoSure is how long a change is looked at more closely, until it is believed.
const demoSure = 3 * time.Minute

// invented returns the checks of an endpoint's invented past, oldest first, which look like its models.
func invented(e store.Endpoint, location string, models []probe.Result, now time.Time) (checks []store.Check) {
	random := rand.New(rand.NewPCG(uint64(len(e.Slug)), uint64(now.Unix()))) //nolint:gosec // nothing is kept secret by it
	episodes := demoEpisodes[e.Slug]
	for ago := demoPast; ago > time.Minute; {
		at := now.Add(-ago)
		r := likewise(models[int(ago/demoEra)%len(models)], at, random)
		next := spacing(ago, episodes, now)
		for _, x := range episodes {
			switch {
			case ago <= x.ago && ago > x.ago-x.lasted:
				r = failed(r, x.failure)
				next = min(next, max(time.Minute, ago-(x.ago-x.lasted)))
				if ago > x.ago-demoSure {
					next = time.Minute
				}
			case ago > x.ago:
				next = min(next, ago-x.ago)
			case ago > x.ago-x.lasted-demoSure:
				next = time.Minute
			}
		}
		checks = append(checks, store.NewCheck(e.ID, location, at, r))
		ago -= next
	}
	return checks
}

// likewise returns a good check as it might have been at a time.
func likewise(like probe.Result, at time.Time, random *rand.Rand) probe.Result {
	r := like
	r.StartedAt, r.Duration, r.Memory, r.Transcript = at, 0, probe.Memory{}, nil
	r.Steps = slices.Clone(like.Steps)
	pace := jittered(demoPace(at), random.NormFloat64)
	for i := range r.Steps {
		step := &r.Steps[i]
		step.Start, step.Latency = r.Duration, jittered(pace, random.NormFloat64)
		step.Phases = probe.Phases{FirstByte: step.Latency * 9 / 10, Body: step.Latency / 10}
		r.Duration += step.Latency
	}
	if like.Facts.Height != nil {
		height := heightAt(at)
		r.Facts.Height, r.Facts.HeadHash, r.Facts.HeadTime = &height, demoHash(height), &at
	}
	return r
}

// failed returns a check that went wrong in place of a good one.
func failed(r probe.Result, f probe.Failure) probe.Result {
	r.Failure, r.Verdict = &f, f.Class.Verdict()
	i := max(0, slices.IndexFunc(r.Steps, func(s probe.Step) bool { return s.Name == f.Step }))
	r.Steps = r.Steps[:min(len(r.Steps), i+1)]
	if len(r.Steps) == 0 {
		return r
	}
	step := &r.Steps[len(r.Steps)-1]
	step.Class, step.Code, step.Message = f.Class, f.Code, f.Message
	switch f.Class {
	case probe.ClassTimeout:
		step.Latency, step.Phases = 4*time.Second, probe.Phases{}
	case probe.ClassHeadLagging:
		f.Message = fmt.Sprintf(f.Message, heightAt(r.StartedAt.Add(-12*time.Minute)))
		step.Message = f.Message
	case probe.ClassSlow:
		step.Latency = time.Duration(math.Round(2.8 * float64(time.Second)))
	}
	if f.Class.Verdict() == probe.Down {
		r.Contract, r.Facts = nil, probe.Facts{}
	}
	r.Duration = step.Start + step.Latency
	return r
}

// invent makes up the past of the demo's endpoints, which must be in the database, and returns of how many checks.
func (d *demo) invent(ctx context.Context, db store.Store, location string, judge store.Judge, now time.Time) (int, error) {
	var checks []store.Check
	asked := map[string]probe.Result{}
	for _, place := range demoPlaces {
		e, err := db.Endpoint(ctx, place.slug)
		if err != nil {
			return 0, err
		}
		models, err := d.models(ctx, e.Endpoint, asked)
		if err != nil {
			return 0, err
		}
		checks = append(checks, invented(e.Endpoint, location, models, now)...)
	}
	slices.SortFunc(checks, func(a, b store.Check) int {
		return cmp.Or(a.ScheduledAt.Compare(b.ScheduledAt), cmp.Compare(a.EndpointID, b.EndpointID))
	})
	for group := range slices.Chunk(checks, demoGroup) {
		if _, err := db.Record(ctx, group, judge); err != nil {
			return 0, fmt.Errorf("record the demo's past: %w", err)
		}
	}
	return len(checks), nil
}

// models makes the good checks that the past of an endpoint is to look like: of the server of its kind that is well, and where its tools
// change, with each of its lists. Those that were asked already, by path, are not asked again.
func (d *demo) models(ctx context.Context, e store.Endpoint, asked map[string]probe.Result) (models []probe.Result, err error) {
	paths := []string{demoWell[e.Kind]}
	if e.Slug == "demo-mcp-changing" {
		paths = demoReleases()
	}
	ask := d.probeWith(&probe.Prober{})
	for _, path := range paths {
		if _, known := asked[path]; !known {
			e.URL = "http://" + d.addr + path
			asked[path] = ask(ctx, e.Target(store.State{}))
		}
		if r := asked[path]; r.Verdict != probe.Up {
			return nil, fmt.Errorf("invent a past like that of %s: %s", path, r.Verdict)
		}
		models = append(models, asked[path])
	}
	return models, nil
}

// demoWell are the servers that are well, by kind.
var demoWell = map[probe.Kind]string{probe.KindMCP: demoReleases()[0], probe.KindEVM: "/chain/advancing"}

// demoGroup is how many invented checks one transaction records.
const demoGroup = 2000
