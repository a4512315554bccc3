package store

import (
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Line is an endpoint in the index: no more than a long list is sorted, grouped and counted by.
type Line struct {
	ID     string
	Status Status // as [Overview.Status]
	Since  time.Time
	Tags   []string // shared by lines with the same: not to be changed

	// What only an index with checks knows.
	Kind      probe.Kind    // what an auto endpoint turned out to be, where it is known
	CheckedAt time.Time     // when the latest check started; zero when there is none
	Latency   time.Duration // of that check
}

// Lately is how long ago a check may be that tells how a location fares.
const Lately = time.Hour

// Location is a place in the network that endpoints are probed from, as far as the database knows it.
type Location struct {
	Name      string
	Endpoints int // that were probed from there
	Recent    int // of these, probed within the time of Lately
	// CheckedAt is when the latest check started. Lag is how long after it was due the slowest of the recent ones started.
	CheckedAt time.Time
	Lag       time.Duration
	Instances []InstanceState // by id; none where a database belongs to one process
}

// InstanceState is an instance that says that it is alive, or said so last.
type InstanceState struct {
	ID        string
	Shards    int       // that it holds
	ExpiresAt time.Time // when it counts as dead unless it is heard of again
	Since     time.Time // it has been heard of without a long pause
	Live      bool
}

// AddPlace takes in what an endpoint's place says, which counts where its check is the latest.
func (l *Line) AddPlace(kind probe.Kind, checkedAt time.Time, latency time.Duration) {
	if checkedAt.IsZero() || checkedAt.Before(l.CheckedAt) {
		return
	}
	l.CheckedAt, l.Latency = checkedAt, latency
	if l.Kind == probe.KindAuto && kind != "" {
		l.Kind = kind
	}
}
