package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// CopyKind says of what type the values of a column are while they move from one database to another. NULL is nil in any
// column.
type CopyKind byte

// The kinds of columns.
const (
	CopyText    CopyKind = iota // string
	CopyBytes                   // []byte
	CopyInteger                 // int64
	CopyNumber                  // float64
	CopyFlag                    // bool
	CopyTime                    // time.Time in UTC and whole microseconds
	CopyDay                     // time.Time, the beginning of a day in UTC
	CopyTexts                   // []string
	CopyJSON                    // string
)

// CopyColumn is a column that both databases have.
type CopyColumn struct {
	Name string
	Kind CopyKind
}

// CopyTable is a table whose rows move as they are.
type CopyTable struct {
	Name    string
	Columns []CopyColumn // none of checks, which move as [Check]
	// Placed means that a row belongs to a place, which its first two columns name: endpoint_id and location. Postgres keeps
	// the number of the place instead.
	Placed bool
}

// Checks reports whether t is the table of checks.
func (t CopyTable) Checks() bool { return t.Name == "checks" }

// CopyTables are all tables that hold what Rollcall remembers, those that others refer to first. Tests of both databases
// fail when a schema has a table or a column that is not among them.
var CopyTables = []CopyTable{
	{Name: "secret_key", Columns: columns(integers("id"), blobs("proof"))},
	{Name: "channels", Columns: columns(
		texts("id", "name", "name_key", "type"), jsons("settings"), blobs("secrets"), texts("broken"),
		times("broken_at", "created_at", "updated_at"), texts("audience"))},
	{Name: "endpoints", Columns: columns(
		texts("id", "slug", "name", "name_key", "search", "kind", "url"), blobs("headers"), texts("request_method"),
		blobs("request_params"), texts("schedule"), numbers("timeout_ms", "degraded_over_ms"),
		integers("confirm_failures", "confirm_successes"), numbers("confirm_after_ms"), flags("public", "paused"),
		lists("tags"), times("created_at", "updated_at"), blobs("options"), flags("contract_notices"), lists("locations"),
		integers("quorum"), jsons("alerting", "objectives"))},
	{Name: "endpoint_parents", Columns: columns(texts("endpoint_id", "parent_id"), integers("position"))},
	{Name: "endpoint_channels", Columns: columns(texts("endpoint_id", "channel_id"), integers("position"))},
	{Name: "endpoint_states", Columns: columns(
		texts("endpoint_id", "status"), times("since"), integers("version"), jsons("failure", "flips", "hushed"))},
	{Name: "places", Columns: columns(
		integers("num"), texts("endpoint_id", "location"), integers("version"), texts("status"),
		times("since", "last_scheduled_at", "last_check_at"), texts("chain"), times("head_at"), jsons("evidence"),
		times("hour"), blobs("sums"))},
	{Name: "checks", Placed: true},
	{Name: "transcripts", Placed: true, Columns: columns(
		texts("endpoint_id", "location"), times("scheduled_at"), flags("good"), times("at"), blobs("body"))},
	{Name: "uptime_hours", Placed: true, Columns: columns(
		texts("endpoint_id", "location"), times("hour"), integers("up", "degraded", "down", "gated", "unknown"),
		jsons("classes"), blobs("latencies"), integers("maintenance"))},
	{Name: "uptime_days", Placed: true, Columns: columns(
		texts("endpoint_id", "location"), days("day"), integers("up", "degraded", "down", "gated", "unknown"),
		jsons("classes"), blobs("latencies"), integers("maintenance"))},
	{Name: "contracts", Columns: columns(
		texts("id", "endpoint_id", "key", "hash"), times("first_seen_at", "last_seen_at"), blobs("tools"), jsons("changes"))},
	{Name: "events", Columns: columns(
		texts("id", "endpoint_id"), times("at"), texts("kind", "severity", "title"), jsons("data"))},
	{Name: "incidents", Columns: columns(
		texts("id", "kind", "subject", "endpoint_id", "title", "severity", "worst"), times("started_at", "opened_at", "resolved_at"),
		texts("resolution", "cause_step", "cause_class"), integers("cause_code"), texts("cause_message", "check_id"),
		lists("seen_from"), flags("flapping"), times("acknowledged_at"), texts("acknowledged_by"), times("snoozed_until"),
		flags("names_endpoints"))},
	{Name: "incident_endpoints", Columns: columns(texts("incident_id", "endpoint_id"), times("joined_at", "left_at"))},
	{Name: "incident_entries", Columns: columns(
		texts("id", "incident_id"), times("at"), texts("kind", "author", "text"), flags("public"), texts("severity"), jsons("cause"))},
	{Name: "notices", Columns: columns(
		integers("seq"), texts("id", "incident_id", "event_id", "entry_id", "channel_id", "kind", "status"),
		times("created_at", "due_at"), integers("attempts"), texts("lease_id", "holder"), times("leased_until"), texts("ref"))},
	{Name: "notice_attempts", Columns: columns(
		texts("notice_id"), integers("attempt"), times("at"), texts("outcome", "error"), numbers("took_ms"))},
	{Name: "maintenances", Columns: columns(
		texts("id", "title", "text"), times("starts_at", "ends_at"), texts("schedule"), numbers("duration_ms"), flags("everything"),
		lists("endpoints", "tags"), flags("public"), texts("author"), times("created_at", "updated_at"))},
	{Name: "status_pages", Columns: columns(
		texts("id", "slug", "name", "text"), blobs("logo"), texts("logo_type", "accent"), jsons("sections"), texts("domain", "domain_token"),
		times("domain_proven_at"), texts("password_hash"), flags("hidden"), times("created_at", "updated_at"))},
	{Name: "users", Columns: columns(
		texts("id", "name", "name_key", "password_hash", "role"), times("created_at", "disabled_at"), texts("issuer", "subject"))},
	{Name: "subscriptions", Columns: columns(
		texts("id", "user_id", "page_id"), flags("everything"), lists("endpoints", "tags", "severities"), jsons("quiet"),
		blobs("address_hash"), times("confirmed_at"), blobs("confirm_hash", "manage_hash"), times("created_at"))},
	{Name: "sessions", Columns: columns(
		blobs("token_hash"), texts("user_id"), times("created_at", "expires_at"), texts("address", "user_agent"), times("last_seen_at"))},
	{Name: "invitations", Columns: columns(
		texts("id"), blobs("hash"), texts("user_id", "name", "role", "author"), times("created_at", "expires_at"))},
	{Name: "second_factors", Columns: columns(
		texts("user_id"), blobs("secret"), times("confirmed_at"), integers("last_step"), lists("recovery"), times("created_at"))},
	{Name: "tokens", Columns: columns(
		texts("id", "name"), blobs("hash"), texts("role"), times("created_at", "last_used_at", "revoked_at"), lists("scopes"),
		times("expires_at"))},
	{Name: "audits", Columns: columns(
		texts("id"), times("at"), texts("author", "author_kind", "address", "noun", "action", "target", "name"), jsons("changes"))},
	{Name: "setup_token", Columns: columns(integers("id"), blobs("hash"), times("created_at"))},
}

func columns(groups ...[]CopyColumn) []CopyColumn { return slices.Concat(groups...) }

func ofKind(kind CopyKind, names []string) (list []CopyColumn) {
	for _, name := range names {
		list = append(list, CopyColumn{name, kind})
	}
	return list
}

func texts(names ...string) []CopyColumn    { return ofKind(CopyText, names) }
func blobs(names ...string) []CopyColumn    { return ofKind(CopyBytes, names) }
func integers(names ...string) []CopyColumn { return ofKind(CopyInteger, names) }
func numbers(names ...string) []CopyColumn  { return ofKind(CopyNumber, names) }
func flags(names ...string) []CopyColumn    { return ofKind(CopyFlag, names) }
func times(names ...string) []CopyColumn    { return ofKind(CopyTime, names) }
func days(names ...string) []CopyColumn     { return ofKind(CopyDay, names) }
func lists(names ...string) []CopyColumn    { return ofKind(CopyTexts, names) }
func jsons(names ...string) []CopyColumn    { return ofKind(CopyJSON, names) }

// CopyBatch is a part of a table: some rows in the order of its key.
type CopyBatch struct {
	Rows   [][]any // in the order of the columns; nil of checks
	Checks []Check // of checks alone, without transcripts
	After  string  // where the next batch begins, in words of the database that it was read from
}

// Len returns how many rows there are.
func (b CopyBatch) Len() int { return len(b.Rows) + len(b.Checks) }

// CopySum is what the rows of a table add up to, in any order. The zero value is that of no rows.
type CopySum struct {
	Rows   int64
	Digest uint64                  // sum of hashes over all that the rows say
	Places map[PlaceKey]*PlacedSum // of checks alone
}

// PlacedSum is what the checks of one place add up to.
type PlacedSum struct {
	Verdicts    map[byte]int64 // by letter, as VerdictCode returns it
	Latencies   []uint64       // in microseconds, by the position of the step
	First, Last time.Time      // scheduled times
	Digest      uint64
}

// Add takes in a batch of the table, checks as they are packed.
func (s *CopySum) Add(t CopyTable, b CopyBatch) error {
	for _, row := range b.Rows {
		s.AddRow(t, row)
	}
	for _, c := range b.Checks {
		packed, err := PackCheck(c)
		if err != nil {
			return fmt.Errorf("check %s: %w", c.ID, err)
		}
		s.AddPacked(PlaceKey{EndpointID: c.EndpointID, Location: c.Location}, c.ScheduledAt, packed)
	}
	return nil
}

// AddRow takes in one row.
func (s *CopySum) AddRow(t CopyTable, row []any) {
	var text []byte
	for i, c := range t.Columns {
		text = appendCopied(text, c.Kind, row[i])
	}
	s.Rows++
	s.Digest += digest(text)
}

// AddPacked takes in a check. The shape counts by its id.
func (s *CopySum) AddPacked(place PlaceKey, scheduledAt time.Time, p Packed) {
	s.Rows++
	if s.Places == nil {
		s.Places = map[PlaceKey]*PlacedSum{}
	}
	sum := s.Places[place]
	if sum == nil {
		sum = &PlacedSum{Verdicts: map[byte]int64{}, First: scheduledAt, Last: scheduledAt}
		s.Places[place] = sum
	}
	sum.Verdicts[p.Verdict]++
	for i := 0; i+4 <= len(p.Latencies); i += 4 {
		if i/4 == len(sum.Latencies) {
			sum.Latencies = append(sum.Latencies, 0)
		}
		sum.Latencies[i/4] += uint64(binary.BigEndian.Uint32(p.Latencies[i:]))
	}
	if scheduledAt.Before(sum.First) {
		sum.First = scheduledAt
	}
	if scheduledAt.After(sum.Last) {
		sum.Last = scheduledAt
	}
	var head [17]byte
	binary.BigEndian.PutUint64(head[:], uint64(scheduledAt.UnixMicro())) //nolint:gosec // any bits will do
	binary.BigEndian.PutUint32(head[8:], uint32(p.ShapeID))              //nolint:gosec // any bits will do
	binary.BigEndian.PutUint32(head[12:], uint32(len(p.Latencies)))      //nolint:gosec // four bytes for each step
	head[16] = p.Verdict
	of := digest(slices.Concat(head[:], p.Latencies, p.Numbers))
	sum.Digest += of
	s.Digest += of
}

// Verdicts returns how many checks there are by letter, of all places.
func (s CopySum) Verdicts() map[byte]int64 {
	all := map[byte]int64{}
	for _, p := range s.Places {
		for letter, n := range p.Verdicts {
			all[letter] += n
		}
	}
	return all
}

// maxDifferences bounds how many places are named that differ.
const maxDifferences = 20

// Differences says in what two sums of a table differ, the first being that of the source; nothing when they are alike.
func (s CopySum) Differences(copied CopySum) []string {
	var found []string
	if s.Rows != copied.Rows {
		found = append(found, fmt.Sprintf("%d rows in the source, %d in the copy", s.Rows, copied.Rows))
	}
	keys := maps.Clone(s.Places)
	if keys == nil {
		keys = map[PlaceKey]*PlacedSum{}
	}
	maps.Copy(keys, copied.Places)
	differ := 0
	for _, key := range slices.SortedFunc(maps.Keys(keys), func(a, b PlaceKey) int {
		return strings.Compare(a.EndpointID+"\x00"+a.Location, b.EndpointID+"\x00"+b.Location)
	}) {
		what := s.Places[key].difference(copied.Places[key])
		if what == "" {
			continue
		}
		if differ++; differ <= maxDifferences {
			found = append(found, fmt.Sprintf("endpoint %s at %s: %s", key.EndpointID, key.Location, what))
		}
	}
	if differ > maxDifferences {
		found = append(found, fmt.Sprintf("and %d places more", differ-maxDifferences))
	}
	if len(found) == 0 && s.Digest != copied.Digest {
		found = append(found, fmt.Sprintf("as many rows (%d), but they do not say the same", s.Rows))
	}
	return found
}

func (p *PlacedSum) difference(copied *PlacedSum) string {
	switch {
	case p == nil:
		return "it has no checks in the source"
	case copied == nil:
		return "its checks are missing"
	case !maps.Equal(p.Verdicts, copied.Verdicts):
		return fmt.Sprintf("checks by verdict are %s in the source, %s in the copy", countWords(p.Verdicts), countWords(copied.Verdicts))
	case !p.First.Equal(copied.First) || !p.Last.Equal(copied.Last):
		return fmt.Sprintf("checks are from %s to %s in the source, from %s to %s in the copy",
			instant(p.First), instant(p.Last), instant(copied.First), instant(copied.Last))
	case !slices.Equal(p.Latencies, copied.Latencies):
		return fmt.Sprintf("latencies by step add up to %v µs in the source, %v µs in the copy", p.Latencies, copied.Latencies)
	case p.Digest != copied.Digest:
		return "as many checks, but they do not say the same"
	}
	return ""
}

// countWords names verdicts with their numbers.
func countWords(counts map[byte]int64) string {
	var words []string
	for _, letter := range slices.Sorted(maps.Keys(counts)) {
		verdict, _ := VerdictOf(letter)
		words = append(words, fmt.Sprintf("%s %d", verdict, counts[letter]))
	}
	return strings.Join(words, ", ")
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func digest(text []byte) uint64 {
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:8])
}

// appendCopied appends a value in a form of its own: whatever differs in one database differs here, and JSON that a database
// has set anew does not.
func appendCopied(b []byte, kind CopyKind, v any) []byte {
	if v == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	switch v := v.(type) {
	case string:
		if kind == CopyJSON {
			v = canonical(v)
		}
		return appendText(b, v)
	case []byte:
		return appendText(b, string(v))
	case int64:
		return binary.AppendVarint(b, v)
	case float64:
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	case bool:
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	case time.Time:
		return binary.AppendVarint(b, v.UnixMicro())
	case []string:
		b = binary.AppendUvarint(b, uint64(len(v)))
		for _, text := range v {
			b = appendText(b, text)
		}
		return b
	}
	return appendText(b, fmt.Sprintf("%T", v)) // not reached: these are all kinds
}

// canonical returns JSON without regard to white space and the order of members; what is no JSON as it is.
func canonical(text string) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	again, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(again)
}
