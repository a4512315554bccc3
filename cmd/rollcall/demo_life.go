package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"
)

// demoPace is how long the demo's servers take for an answer at a time of day: some 40 ms at night and twice as much in the afternoon.
func demoPace(at time.Time) time.Duration {
	at = at.UTC()
	hours := float64(at.Hour()) + float64(at.Minute())/60
	return time.Duration(float64(60*time.Millisecond) * (1 + 0.35*math.Cos((hours-15)/24*2*math.Pi)))
}

// jittered is a length of time as a network makes it: mostly a little more or less, now and then a good deal more.
func jittered(d time.Duration, by func() float64) time.Duration {
	return time.Duration(float64(d) * math.Exp(0.25*by()))
}

// leisurely answers no faster than a server far away would, so that there is something to be seen in the charts.
func leisurely(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wait := time.NewTimer(jittered(demoPace(time.Now()), rand.NormFloat64))
		defer wait.Stop()
		select {
		case <-wait.C:
			h.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// How the server that comes and goes does so: rarely enough for its incidents to be told apart, and not taken for a flapping one.
const (
	demoRound   = 7 * time.Minute
	demoTrouble = 100 * time.Second // of each round
	demoCalm    = 30 * time.Second  // at its beginning
)

// troubledAt reports whether the server that comes and goes is in trouble so long after its start.
func troubledAt(since time.Duration) bool {
	at := since % demoRound
	return at >= demoCalm && at < demoCalm+demoTrouble
}

// comingAndGoing answers in place of a server that is away for a part of each round, as the gateway before it would.
func comingAndGoing(begun time.Time, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if troubledAt(time.Since(begun)) {
			http.Error(w, "upstream connect error", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// demoRelease is how often the server whose tools change gets another list.
const demoRelease = 10 * time.Minute

// demoLists is how many lists there are of it.
const demoLists = 3

func changingTools() []map[string]any {
	return toolsOf(int(time.Now().Unix() / int64(demoRelease/time.Second) % demoLists))
}

// toolsOf returns one of the lists of the server whose tools change: as others have it, with a tool more, with one that wants more.
func toolsOf(release int) []map[string]any {
	tools := demoTools()
	switch release {
	case 1:
		return append(tools, demoTool("pollen", "Says what is in bloom.", "place"))
	case 2:
		tools[0] = demoTool("forecast", "Says what the weather will be like on a day.", "place", "day")
	}
	return tools
}

// demoReleases are where each of its lists is to be found whatever the time.
func demoReleases() (paths []string) {
	for release := range demoLists {
		paths = append(paths, fmt.Sprintf("/mcp/changing/%d", release))
	}
	return paths
}
