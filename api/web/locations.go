package web

import (
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// LocationsPage shows where endpoints are probed from, and by which instances.
type LocationsPage struct {
	Frame
	Locations []LocationRow
	Shards    int // that the endpoints of each location are divided into
}

func (LocationsPage) template() string { return "locations" }

// LocationRow is one location.
type LocationRow struct {
	store.Location
	Own     bool   // this instance probes from there
	Offline string // id of the incident while it has lost its network; empty while it has not
}

// Late reports whether checks start so long after they were due that somebody should look.
func (l LocationRow) Late() bool { return l.Lag > lateAfter }

// lateAfter is how late a check may start: confirmations and a busy minute stay well below it.
const lateAfter = 5 * time.Second

// Tone is how a location is shown.
func (l LocationRow) Tone() Tag {
	switch {
	case l.Offline != "":
		return Tag{"down", "Offline"}
	case l.Recent == 0 && l.Endpoints > 0 && !l.live():
		return Tag{"unknown", "Silent"}
	case l.Late():
		return Tag{"degraded", "Late"}
	case l.Recent == 0:
		return Tag{"pending", "Waiting"}
	}
	return Tag{"up", "At work"}
}

func (l LocationRow) live() bool {
	for _, i := range l.Instances {
		if i.Live {
			return true
		}
	}
	return l.Own
}
