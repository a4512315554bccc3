package store

import "time"

// Sighting is as much of an endpoint as tells somebody who looks at it whether to look again.
type Sighting struct {
	ID        string
	Slug      string
	Tags      []string
	Public    bool
	Status    Status // as State.Status; StatusPaused for one that is paused
	Since     time.Time
	CheckedAt time.Time // when the newest check from any location started; zero when there is none
}

// Endpoint returns as much of the endpoint as says which status pages show it.
func (s Sighting) Endpoint() Endpoint {
	return Endpoint{ID: s.ID, Slug: s.Slug, Tags: s.Tags, Public: s.Public}
}

// Sight is what there is to see at a moment.
type Sight struct {
	Sightings []Sighting // of the endpoints that were asked for and are there
	// LastEntry is the id of the newest line of any timeline: another one says that some incident began, changed or ended. Empty
	// when there is none.
	LastEntry string
}

// MaxSightings is how many endpoints one look may ask for.
const MaxSightings = 5000
