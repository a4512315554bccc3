package store

import (
	"context"
	"hash/fnv"
	"time"
)

// Shards is into how many parts the endpoints of each location are divided among instances. It bounds how many instances
// can share a location, and never changes: instances of different versions must divide alike.
const Shards = 128

// ShardOf returns the shard that an endpoint belongs to, from 0 to Shards-1. It follows from the id alone. Ids that were
// made one after the other share most of their text, which a plain FNV-1a would leave visible in its low bits: the
// finalizer of MurmurHash3 spreads them.
func ShardOf(endpointID string) int {
	h := fnv.New64a()
	h.Write([]byte(endpointID))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return int(x % Shards)
}

// Instance is a running service that probes from a location. Its ID is one of its own for each start: what an instance
// that crashed had leased is not taken for that of the next one, which knows nothing of it.
type Instance struct {
	ID       string
	Location string
}

// Lease is the right of one instance to probe the endpoints of a shard. Epoch is greater than zero, and grows each time
// that another instance takes the shard than the one that had it last, so that what was made under an older lease can be
// told from what is made under the present one.
type Lease struct {
	Shard int
	Epoch int64
}

// Shift is what an instance holds after it asked for its share.
type Shift struct {
	Held    []Lease // by shard
	Surplus []int   // shards of Held beyond the fair share, to be released once their probes have ended
	Share   int     // how many shards are fair for this instance
	Live    int     // instances of the location that are alive, this one included
	TTL     time.Duration
}

// Glance is what a cheap look at the leases of a location shows.
type Glance struct {
	Held int // shards that this instance holds by the database's clock
	Free int // shards that nobody holds: handed over, run out, or never taken
	Live int // instances that are alive, whether or not this one is
}

// Leaser divides the shards of a location among the instances that share a database. All times are by the database's clock:
// those of the instances need not agree. Each method is one transaction that a caller who stops in the middle of it
// cannot hold open. A database that belongs to one process, like a SQLite file, needs no Leaser and has none.
type Leaser interface {
	// Shift says that me is alive for another ttl, renews what me holds, those leases included that ran out without
	// anybody taking them, and takes free shards up to me's fair share: Shards divided by the instances that are
	// alive, with the remainder to the first of them by id. It takes nothing beyond that, so that the others find theirs.
	//
	// What was handed over is free at once. A lease that merely ran out is free for those who were heard without a pause
	// for half a ttl, and a pause is longer than half a ttl: when the database was away, or its clock was set, all leases
	// have run out, and the first to come back must leave the others time to do so too.
	Shift(ctx context.Context, me Instance, ttl time.Duration) (Shift, error)
	// Glance reads, and locks nothing.
	Glance(ctx context.Context, me Instance) (Glance, error)
	// Release hands shards over: whoever asks next may take them at once. Those that me does not hold stay as they are.
	Release(ctx context.Context, me Instance, shards []int) error
	// Leave releases everything and says that me is no more.
	Leave(ctx context.Context, me Instance) error
}
