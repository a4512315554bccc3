package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// daysAhead is how many days there is room for before they begin.
const daysAhead = 7

// partitioned is a table whose rows go, all at once, by their age.
type partitioned struct {
	table  string
	step   func(t time.Time) (begin, end time.Time) // the partition in which t lies
	layout string                                   // of a partition's name behind the table's
	date   bool                                     // the key is a date, not a time
}

var (
	checkDays  = partitioned{"checks", dayOf, "20060102", false}
	shapeDays  = partitioned{"check_shapes", dayOf, "20060102", true}
	hourMonths = partitioned{"uptime_hours", monthOf, "200601", false}
)

func dayOf(t time.Time) (begin, end time.Time) {
	begin = store.DayOf(t)
	return begin, begin.AddDate(0, 0, 1)
}

func monthOf(t time.Time) (begin, end time.Time) {
	t = t.UTC()
	begin = time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	return begin, begin.AddDate(0, 1, 0)
}

// name returns the name of the partition that begins at a time.
func (p partitioned) name(begin time.Time) string { return p.table + "_" + begin.Format(p.layout) }

// make returns the statements that make the partition in which t lies. A table of its own that is attached, rather than one
// that is made in place, keeps nobody from writing meanwhile.
func (p partitioned) make(t time.Time) string {
	begin, end := p.step(t)
	name, layout := p.name(begin), time.RFC3339
	if p.date {
		layout = time.DateOnly
	}
	return fmt.Sprintf(`
		CREATE TABLE IF NOT EXISTS %[1]s (LIKE %[2]s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE);
		ALTER TABLE %[2]s ATTACH PARTITION %[1]s FOR VALUES FROM ('%[3]s') TO ('%[4]s')`,
		name, p.table, begin.Format(layout), end.Format(layout))
}

// rooms knows which partitions are there. The zero value knows none. Their age grows when a partition came or went as far as
// we know: what was known to be in one may be there no longer.
type rooms struct {
	mu sync.Mutex
	// guarded by mu:
	there map[string]bool // by name
	age   int
}

func (r *rooms) ageNow() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.age
}

func (r *rooms) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.there[name]
}

func (r *rooms) set(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.there = setOf(names)
	r.age++
}

// need is a partition that has to be there.
type need struct {
	partitioned
	at time.Time
}

func (n need) name() string {
	begin, _ := n.step(n.at)
	return n.partitioned.name(begin)
}

// forDay is what the checks of a day need.
func forDay(t time.Time) []need { return []need{{checkDays, t}, {shapeDays, t}} }

// makeRoom makes sure that partitions are there. It costs nothing when they are known to be.
func (db *DB) makeRoom(ctx context.Context, needs []need) error {
	missing := false
	for _, n := range needs {
		missing = missing || !db.rooms.has(n.name())
	}
	if !missing {
		return nil
	}
	return db.write(ctx, "make partitions", func(tx pgx.Tx) error {
		if err := lock(ctx, tx, lockPartitions); err != nil {
			return err
		}
		names, err := partitions(ctx, tx)
		if err != nil {
			return err
		}
		there := setOf(names)
		for _, n := range needs {
			name := n.name()
			if there[name] {
				continue
			}
			if _, err := tx.Exec(ctx, n.make(n.at)); err != nil {
				return err
			}
			there[name] = true
			names = append(names, name)
		}
		db.rooms.set(names)
		return nil
	})
}

// partitions lists all partitions by name.
func partitions(ctx context.Context, q querier) ([]string, error) {
	return query(ctx, q, pgx.RowTo[string], `
		SELECT part.relname
		FROM pg_inherits i
		JOIN pg_class part ON part.oid = i.inhrelid
		WHERE i.inhparent IN ('checks'::regclass, 'check_shapes'::regclass, 'uptime_hours'::regclass)`)
}

// Tend implements store.Store: it makes the partitions of the days and months ahead, and drops those that are over by the
// times given.
func (db *DB) Tend(ctx context.Context, r store.Retention) (int, error) {
	var needs []need
	for day := -1; day <= daysAhead; day++ {
		needs = append(needs, forDay(r.Now.AddDate(0, 0, day))...)
	}
	needs = append(needs, need{hourMonths, r.Now}, need{hourMonths, r.Now.AddDate(0, 0, daysAhead)})
	if err := db.makeRoom(ctx, needs); err != nil {
		return 0, err
	}
	names, err := partitions(ctx, db.pool)
	if err != nil {
		return 0, explain("list partitions", err)
	}
	dropped := 0
	for _, name := range names {
		if !over(name, r) {
			continue
		}
		if err := db.drop(ctx, name); err != nil {
			return dropped, err
		}
		dropped++
	}
	if err := db.pruneTranscripts(ctx, store.DayOf(r.Checks)); err != nil {
		return dropped, err
	}
	return dropped, db.pruneAudits(ctx, r.Audit)
}

// pruneTranscripts lets go of transcripts of checks before a time, so many at once that a statement is soon over.
func (db *DB) pruneTranscripts(ctx context.Context, before time.Time) error {
	const atOnce = 5000
	for {
		tag, err := db.pool.Exec(ctx, `
			DELETE FROM transcripts
			WHERE ctid = ANY (ARRAY (SELECT ctid FROM transcripts WHERE scheduled_at < $1 ORDER BY scheduled_at LIMIT $2))`, before, atOnce)
		if err != nil || tag.RowsAffected() < atOnce {
			return explain("prune transcripts", err)
		}
	}
}

// over reports whether a partition holds nothing that has to be kept.
func over(name string, r store.Retention) bool {
	for _, p := range []struct {
		partitioned
		before time.Time
	}{{checkDays, r.Checks}, {shapeDays, r.Checks}, {hourMonths, r.Hours}} {
		suffix, ok := strings.CutPrefix(name, p.table+"_")
		if !ok {
			continue
		}
		if begin, err := time.Parse(p.layout, suffix); err == nil {
			_, end := p.step(begin)
			return !end.After(p.before)
		}
	}
	return false
}

// dropPatience is how long the drop of a partition waits for those who read it. Whoever writes waits behind it.
const dropPatience = 2 * time.Second

func (db *DB) drop(ctx context.Context, name string) error {
	return db.write(ctx, "drop partition "+name, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, lockPartitions); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = %d; DROP TABLE IF EXISTS %s`,
			dropPatience.Milliseconds(), pgx.Identifier{name}.Sanitize()))
		db.rooms.set(nil) // to be looked up again
		return err
	})
}
