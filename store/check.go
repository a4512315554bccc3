package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Check is one probe of an endpoint, kept.
type Check struct {
	ID          string
	EndpointID  string
	Slug        string // of the endpoint; filled in by reads, ignored by writes
	Location    string
	ScheduledAt time.Time
	// Epoch is that of the lease under which the check was made; 0 when none was needed. See [Lease].
	Epoch int64
	// Asked means that somebody asked for the check: its transcript is kept even when that of a good one was kept lately. Known
	// until it is recorded, or written to a spool, where transcripts are left out.
	Asked  bool
	Result probe.Result // without a transcript
	// Maintenance means that the endpoint was under maintenance; filled in when the check is recorded.
	Maintenance bool
	Transcript  Transcript // nil when none was kept, and in lists
}

// NewCheck turns what a probe saw into a check to be kept. The transcript is bounded and compressed here, where many checks
// are made at once, and not where they are written, one group at a time.
func NewCheck(endpointID, location string, scheduledAt time.Time, r probe.Result) Check {
	t := NewTranscript(r.Transcript)
	r.Transcript = nil
	scheduledAt = Stamp(scheduledAt)
	return Check{
		ID:         CheckID(endpointID, location, scheduledAt),
		EndpointID: endpointID, Location: location, ScheduledAt: scheduledAt, Result: r, Transcript: t,
	}
}

// CheckID returns the id of the check of a slot. It follows from the slot alone, so that it takes no room where checks are
// kept by the million: the id of the endpoint, the scheduled time in microseconds since 1970 and the beginning of the
// location's SHA-256, in hexadecimal, like "chk_0198…_00064…3f2a91c0".
func CheckID(endpointID, location string, scheduledAt time.Time) string {
	return fmt.Sprintf("chk_%s_%016x%08x", strings.TrimPrefix(endpointID, "ep_"), uint64(scheduledAt.UnixMicro()), hashLocation(location))
}

// CheckKey is what the id of a check says. Location is known by its hash alone; see [CheckKey.At].
type CheckKey struct {
	EndpointID   string
	ScheduledAt  time.Time
	locationHash uint32
}

// At reports whether the check was made from a location.
func (k CheckKey) At(location string) bool { return hashLocation(location) == k.locationHash }

// ParseCheckID reads what CheckID returned; false for any other text.
func ParseCheckID(id string) (CheckKey, bool) {
	rest, ok := strings.CutPrefix(id, "chk_")
	endpoint, slot, cut := strings.Cut(rest, "_")
	if !ok || !cut || len(slot) != 24 {
		return CheckKey{}, false
	}
	at, err := strconv.ParseUint(slot[:16], 16, 64)
	if err != nil {
		return CheckKey{}, false
	}
	hash, err := strconv.ParseUint(slot[16:], 16, 32)
	if err != nil {
		return CheckKey{}, false
	}
	k := CheckKey{"ep_" + endpoint, time.UnixMicro(int64(at)).UTC(), uint32(hash)}
	return k, true
}

// hashLocation returns the beginning of a hash that SQL can work out as well.
func hashLocation(location string) uint32 {
	sum := sha256.Sum256([]byte(location))
	return binary.BigEndian.Uint32(sum[:4])
}

// CheckFilter selects checks of one endpoint. Zero members do not select.
type CheckFilter struct {
	EndpointID string // required
	Since      time.Time
	Until      time.Time // exclusive
	Verdict    probe.Verdict
	Limit      int
	Cursor     string
}
