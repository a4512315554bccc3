package postgres

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rollcallhq/rollcall/store"
)

// shapes are the latest shapes of the checks of one place that are known to be kept, all of one day and for as long as no
// partition comes or goes: see rooms.
type shapes struct {
	day time.Time
	age int
	ids []int32
}

// maxShapes is how many shapes of a place are kept in mind: an endpoint that is up and down again has a few, one that says
// something else each time has no use for it.
const maxShapes = 4

func (s *shapes) has(day time.Time, age int, id int32) bool {
	return s.day.Equal(day) && s.age == age && slices.Contains(s.ids, id)
}

func (s *shapes) add(day time.Time, age int, id int32) {
	if !s.day.Equal(day) || s.age != age {
		s.day, s.age, s.ids = day, age, nil
	}
	if len(s.ids) == maxShapes {
		s.ids = slices.Delete(s.ids, 0, 1)
	}
	s.ids = append(s.ids, id)
}

// packedChecks are checks to be inserted, column by column, and the shapes that they are the first of.
type packedChecks struct {
	places, shapes     []int32
	times              []time.Time
	verdicts           []string
	latencies, numbers [][]byte

	shapePlaces, shapeIDs []int32
	shapeDays             []pgtype.Date // a time would be taken for a date where the server is
	shapeTexts            []string

	known []func() // to be called when they are written
	needs []need
}

// packChecks packs checks, with the shapes that are not known to be kept at this age of the rooms.
func packChecks(checks []store.Check, group map[string]*known, age int) (*packedChecks, error) {
	var p packedChecks
	days := map[time.Time]bool{}
	for _, c := range checks {
		r := group[c.EndpointID].rows[c.Location]
		packed, err := store.PackCheck(c)
		if err != nil {
			return nil, err
		}
		p.places, p.shapes = append(p.places, r.num), append(p.shapes, packed.ShapeID)
		p.times, p.verdicts = append(p.times, c.ScheduledAt), append(p.verdicts, string(rune(packed.Verdict)))
		p.latencies, p.numbers = append(p.latencies, packed.Latencies), append(p.numbers, packed.Numbers)
		day := store.DayOf(c.ScheduledAt)
		if !days[day] {
			days[day] = true
			p.needs = append(p.needs, forDay(day)...)
		}
		if r.shapes.has(day, age, packed.ShapeID) {
			continue
		}
		text, err := store.EncodeShape(c.Result)
		if err != nil {
			return nil, err
		}
		p.shapePlaces, p.shapeIDs = append(p.shapePlaces, r.num), append(p.shapeIDs, packed.ShapeID)
		p.shapeDays, p.shapeTexts = append(p.shapeDays, pgDate(day)), append(p.shapeTexts, string(text))
		p.known = append(p.known, func() { r.shapes.add(day, age, packed.ShapeID) })
	}
	return &p, nil
}

func (p *packedChecks) done() {
	for _, known := range p.known {
		known()
	}
}

func (p *packedChecks) queueChecks(batch *pgx.Batch) {
	batch.Queue(`
		INSERT INTO checks (place, shape, scheduled_at, verdict, latencies, numbers)
		SELECT v.place, v.shape, v.scheduled_at, v.verdict::"char", v.latencies, v.numbers
		FROM unnest($1::integer[], $2::integer[], $3::timestamptz[], $4::text[], $5::bytea[], $6::bytea[])
		     v (place, shape, scheduled_at, verdict, latencies, numbers)`,
		p.places, p.shapes, p.times, p.verdicts, p.latencies, p.numbers)
}

func (p *packedChecks) queueShapes(batch *pgx.Batch) {
	if len(p.shapeIDs) == 0 {
		return
	}
	batch.Queue(`
		INSERT INTO check_shapes (place, day, id, shape)
		SELECT v.place, v.day, v.id, v.shape::jsonb
		FROM unnest($1::integer[], $2::date[], $3::integer[], $4::text[]) v (place, day, id, shape)
		ON CONFLICT DO NOTHING`, p.shapePlaces, p.shapeDays, p.shapeIDs, p.shapeTexts)
}

// checkColumns are what scanCheck scans: of checks c, places p and endpoints e. Shapes are looked up for each check, and not
// joined, which might read those of all days.
const checkColumns = `
	p.endpoint_id, e.slug, p.location, c.scheduled_at, c.verdict::text, c.latencies, c.numbers, (
	    SELECT s.shape
	    FROM check_shapes s
	    WHERE s.place = c.place AND s.day = (c.scheduled_at AT TIME ZONE 'UTC')::date AND s.id = c.shape
	)`

func checkDest(c *store.Check, verdict *string, latencies, numbers, shape *[]byte) []any {
	return []any{&c.EndpointID, &c.Slug, &c.Location, &c.ScheduledAt, verdict, latencies, numbers, shape}
}

func scanCheck(row pgx.CollectableRow) (store.Check, error) {
	c, _, err := scanNumbered(row, false)
	return c, err
}

// scanNumbered scans checkColumns and, when they are followed by it, the number of the place.
func scanNumbered(row pgx.CollectableRow, numbered bool) (c store.Check, num int32, err error) {
	var verdict string
	var latencies, numbers, shape []byte
	dest := checkDest(&c, &verdict, &latencies, &numbers, &shape)
	if numbered {
		dest = append(dest, &num)
	}
	if err := row.Scan(dest...); err != nil {
		return c, 0, err
	}
	c.ID, c.Maintenance = store.CheckID(c.EndpointID, c.Location, c.ScheduledAt), store.Maintained(numbers)
	if shape == nil { // its day is being let go of, or somebody dropped the shapes by hand
		c.Result.StartedAt = c.ScheduledAt
		c.Result.Verdict, _ = store.VerdictOf(verdict[0])
		return c, num, nil
	}
	c.Result, err = store.Unpack(c.ScheduledAt, verdict[0], latencies, numbers, shape)
	return c, num, err
}

// checkList is the name of the list of checks in its cursors.
const checkList = "checks"

// numberedCheck is a check with the number of its place, by which checks of one time are ordered.
type numberedCheck struct {
	check store.Check
	place int32
}

// Checks implements store.Store. Each place is asked for as many as the page has room for, newest first, by the key of checks.
func (db *DB) Checks(ctx context.Context, f store.CheckFilter) (store.Page[store.Check], error) {
	w, err := whereChecks(f)
	if err != nil {
		return store.Page[store.Check]{}, err
	}
	limit := store.PageLimit(f.Limit)
	room := w.arg(limit + 1)
	text := `
		SELECT ` + checkColumns + `, p.num
		FROM places p
		JOIN endpoints e ON e.id = p.endpoint_id
		CROSS JOIN LATERAL (
		    SELECT c.*
		    FROM checks c
		    ` + w.String() + `
		    ORDER BY c.scheduled_at DESC
		    LIMIT ` + room + `
		) c
		WHERE p.endpoint_id = ` + w.arg(f.EndpointID) + `
		ORDER BY c.scheduled_at DESC, p.num DESC
		LIMIT ` + room
	scan := func(row pgx.CollectableRow) (numberedCheck, error) {
		c, num, err := scanNumbered(row, true)
		return numberedCheck{c, num}, err
	}
	found, err := query(ctx, db.pool, scan, text, w.args...)
	if err != nil {
		return store.Page[store.Check]{}, explain("list checks", err)
	}
	page := store.PageOf(found, limit, func(n numberedCheck) string {
		return store.TimeCursor(checkList, n.check.ScheduledAt, strconv.Itoa(int(n.place)))
	})
	checks := store.Page[store.Check]{Next: page.Next}
	for _, n := range page.Items {
		checks.Items = append(checks.Items, n.check)
	}
	return checks, nil
}

func whereChecks(f store.CheckFilter) (where, error) {
	var w where
	w.and(`c.place = p.num`)
	if !f.Since.IsZero() {
		w.and(`c.scheduled_at >= ?`, f.Since)
	}
	if !f.Until.IsZero() {
		w.and(`c.scheduled_at < ?`, f.Until)
	}
	if f.Verdict != "" {
		w.and(`c.verdict = ?::text::"char"`, string(rune(store.VerdictCode(f.Verdict))))
	}
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(checkList, f.Cursor)
		if err != nil {
			return where{}, err
		}
		num, err := strconv.ParseInt(id, 10, 32)
		if err != nil {
			return where{}, store.ErrBadCursor
		}
		// The first says less than the second, but in terms of the key.
		w.and(`c.scheduled_at <= ?`, at)
		w.and(`(c.scheduled_at, p.num) < (?, ?)`, at, int32(num))
	}
	return w, nil
}

// Check implements store.Store.
func (db *DB) Check(ctx context.Context, id string) (store.Check, error) {
	key, ok := store.ParseCheckID(id)
	if !ok {
		return store.Check{}, store.ErrNotFound
	}
	scan := func(row pgx.CollectableRow) (numberedCheck, error) {
		c, num, err := scanNumbered(row, true)
		return numberedCheck{c, num}, err
	}
	found, err := query(ctx, db.pool, scan, `
		SELECT `+checkColumns+`, p.num
		FROM places p
		JOIN endpoints e ON e.id = p.endpoint_id
		JOIN checks c ON c.place = p.num
		WHERE p.endpoint_id = $1 AND c.scheduled_at = $2`, store.CleanText(key.EndpointID), key.ScheduledAt)
	if err != nil {
		return store.Check{}, explain("read check", err)
	}
	i := slices.IndexFunc(found, func(n numberedCheck) bool { return key.At(n.check.Location) })
	if i < 0 {
		return store.Check{}, store.ErrNotFound
	}
	c := found[i].check
	body, err := query(ctx, db.pool, pgx.RowTo[[]byte], `
		SELECT body FROM transcripts WHERE place = $1 AND scheduled_at = $2`, found[i].place, c.ScheduledAt)
	if len(body) > 0 {
		c.Transcript = body[0]
	}
	return c, explain("read transcript", err)
}
