package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rollcallhq/rollcall/store"
)

// Import takes in everything that another database remembers, batch by batch. How far it got is written in the transaction of
// each batch, into a table copy_progress that is there as long as the import is not complete: an import that ended anyhow goes
// on where it was. It is for one goroutine at a time.
type Import struct {
	db    *DB // without a key: only its pool and its partitions are used
	conn  *pgxpool.Conn
	group map[string]*known // places by endpoint and location, with the shapes that are kept
	keys  map[int32]store.PlaceKey
}

// lockCopy is held by the one who imports.
const lockCopy = 0x726f6c6c_00000005

// importPatience is how long an import waits for one before it to end: the server may not have noticed yet that it was killed.
const importPatience = 5 * time.Second

// ErrOccupied means that a database has something of its own, or is in use, and so cannot take in another one.
var ErrOccupied = errors.New("the target is not free")

// NewImport connects to the database at url, whose schema must be up to date: see Migrate. The caller closes the Import.
func NewImport(ctx context.Context, url string) (*Import, error) {
	pool, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	im := &Import{db: &DB{pool: pool}}
	if err := im.claim(ctx); err != nil {
		im.Close()
		return nil, err
	}
	return im, nil
}

// claim takes one connection for the whole import: the claim ends with it.
func (im *Import) claim(ctx context.Context) (err error) {
	if pooled(im.db.pool.Config().ConnConfig) {
		return errors.New("a copy needs a connection of its own: give the URL of Postgres itself, not that of a pooler")
	}
	if im.conn, err = im.db.pool.Acquire(ctx); err != nil {
		return err
	}
	if _, err := im.conn.Exec(ctx, `SET statement_timeout = 0`); err != nil {
		return explain("claim the target", err)
	}
	ctx, cancel := context.WithTimeout(ctx, importPatience)
	defer cancel()
	tick := time.NewTicker(importPatience / 50)
	defer tick.Stop()
	for {
		var free bool
		err := im.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(lockCopy)).Scan(&free)
		// A question may be cut short a moment before ctx says so itself.
		if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			return explain("claim the target", err)
		}
		if free {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: another copy into it is under way", ErrOccupied)
		}
	}
}

// Close ends the import as far as it is. It may be called again.
func (im *Import) Close() {
	if im.conn != nil {
		conn := im.conn.Hijack() // the claim must not go back to the pool
		im.conn = nil
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // the server notices in any case
	}
	im.db.pool.Close()
}

// Begin makes sure that the database may take in the source that fingerprint names: it is empty, or has a part of that same
// source, which resumed says. ErrOccupied otherwise.
func (im *Import) Begin(ctx context.Context, fingerprint string) (resumed bool, err error) {
	err = im.write(ctx, "begin", func(tx pgx.Tx) error {
		if err := nobodyServes(ctx, tx); err != nil {
			return err
		}
		var there bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass('copy_progress') IS NOT NULL`).Scan(&there); err != nil {
			return err
		}
		if there {
			resumed = true
			return sameSource(ctx, tx, fingerprint)
		}
		if err := nothingKept(ctx, tx); err != nil {
			return err
		}
		return startOver(ctx, tx, fingerprint)
	})
	if err != nil {
		return false, err
	}
	return resumed, im.readPlaces(ctx)
}

func nobodyServes(ctx context.Context, tx pgx.Tx) error {
	var live int
	if err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM instances WHERE expires_at > now()`).Scan(&live); err != nil {
		return err
	}
	if live > 0 {
		return fmt.Errorf("%w: a service runs on it: stop it first", ErrOccupied)
	}
	return nil
}

func sameSource(ctx context.Context, tx pgx.Tx, fingerprint string) error {
	var other bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM copy_progress WHERE source <> $1)`, fingerprint).Scan(&other)
	if err == nil && other {
		err = fmt.Errorf("%w: it holds a part of another database, or the source has changed since the copy began: "+
			"empty the target and start again", ErrOccupied)
	}
	return err
}

// replaced are tables that may have something in them before a copy: what an empty database is given when it is first opened.
var replaced = []string{"secret_key", "setup_token"}

func nothingKept(ctx context.Context, tx pgx.Tx) error {
	var kept []string
	for _, t := range store.CopyTables {
		if slices.Contains(replaced, t.Name) {
			continue
		}
		var some bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM `+t.Name+`)`).Scan(&some); err != nil {
			return err
		}
		if some {
			kept = append(kept, strings.ReplaceAll(t.Name, "_", " "))
		}
	}
	if len(kept) > 0 {
		return fmt.Errorf("%w: it has %s of its own: give an empty database", ErrOccupied, strings.Join(kept, ", "))
	}
	return nil
}

func startOver(ctx context.Context, tx pgx.Tx, fingerprint string) error {
	var batch pgx.Batch
	batch.Queue(`
		CREATE TABLE copy_progress (
		    name     text PRIMARY KEY,
		    source   text NOT NULL,
		    position text NOT NULL,
		    copied   bigint NOT NULL,
		    complete boolean NOT NULL
		)`)
	batch.Queue(`COMMENT ON TABLE copy_progress IS 'How far a copy of another database got, by table. A database that has this table is not complete.'`)
	for _, name := range replaced {
		batch.Queue(`DELETE FROM ` + name)
	}
	if err := send(ctx, tx, &batch); err != nil {
		return err
	}
	for _, t := range store.CopyTables {
		_, err := tx.Exec(ctx, `
			INSERT INTO copy_progress (name, source, position, copied, complete)
			VALUES ($1, $2, '', 0, false)`, t.Name, fingerprint)
		if err != nil {
			return err
		}
	}
	return nil
}

// Progress says how far a table got: where to go on, how many rows are there, and whether these are all.
func (im *Import) Progress(ctx context.Context, t store.CopyTable) (after string, rows int64, complete bool, err error) {
	err = im.conn.QueryRow(ctx, `SELECT position, copied, complete FROM copy_progress WHERE name = $1`, t.Name).
		Scan(&after, &rows, &complete)
	return after, rows, complete, explain("read how far the copy got", err)
}

// Put takes in a batch of a table, and notes it.
func (im *Import) Put(ctx context.Context, t store.CopyTable, b store.CopyBatch) error {
	put, needs, err := im.prepare(t, b)
	if err != nil {
		return fmt.Errorf("copy %s: %w", t.Name, err)
	}
	if err := im.db.makeRoom(ctx, needs); err != nil {
		return err
	}
	return im.write(ctx, "copy "+t.Name, func(tx pgx.Tx) error {
		// What the server loses by a crash of its own is lost together with the note that it was there.
		if _, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = off`); err != nil {
			return err
		}
		if err := put(ctx, tx); err != nil {
			return err
		}
		return execOne(ctx, tx, `UPDATE copy_progress SET position = $2, copied = copied + $3 WHERE name = $1`, t.Name, b.After, b.Len())
	})
}

// Complete notes that a table is there as a whole.
func (im *Import) Complete(ctx context.Context, t store.CopyTable) error {
	err := im.write(ctx, "complete "+t.Name, func(tx pgx.Tx) error {
		return execOne(ctx, tx, `UPDATE copy_progress SET complete = true WHERE name = $1`, t.Name)
	})
	if err == nil && t.Name == "places" {
		return im.readPlaces(ctx)
	}
	return err
}

// Finish ends an import that is complete, and found to be right: whoever opens the database from here on may write to it.
func (im *Import) Finish(ctx context.Context) error {
	if err := im.analyze(ctx); err != nil {
		return err
	}
	return im.write(ctx, "finish", func(tx pgx.Tx) error {
		var missing string
		err := tx.QueryRow(ctx, `SELECT COALESCE(string_agg(name, ', '), '') FROM copy_progress WHERE NOT complete`).Scan(&missing)
		if err == nil && missing != "" {
			err = fmt.Errorf("not complete: %s", missing)
		}
		if err != nil {
			return err
		}
		var batch pgx.Batch
		for table, column := range map[string]string{"places": "num", "notices": "seq"} {
			batch.Queue(`
				SELECT setval(pg_get_serial_sequence($1, $2), COALESCE(MAX(`+column+`), 0) + 1, false) FROM `+table, table, column)
		}
		batch.Queue(`DROP TABLE copy_progress`)
		return send(ctx, tx, &batch)
	})
}

// analyze tells the planner about a database that was just filled. Autovacuum would do so later, but not of partitioned tables.
func (im *Import) analyze(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	for _, t := range store.CopyTables {
		if _, err := im.conn.Exec(ctx, `ANALYZE `+t.Name); err != nil {
			return explain("analyze "+t.Name, err)
		}
	}
	return nil
}

// stepPatience bounds a statement that looks at much: an import may take what time it needs, as long as the server answers.
const stepPatience = 30 * time.Minute

func (im *Import) write(ctx context.Context, what string, do func(tx pgx.Tx) error) error {
	return explain(what, pgx.BeginFunc(ctx, im.conn, do))
}

// readPlaces fills in what numbers the places have.
func (im *Import) readPlaces(ctx context.Context) error {
	im.group, im.keys = map[string]*known{}, map[int32]store.PlaceKey{}
	found, err := im.conn.Query(ctx, `SELECT num, endpoint_id, location FROM places`)
	if err != nil {
		return explain("read places", err)
	}
	var num int32
	var key store.PlaceKey
	_, err = pgx.ForEachRow(found, []any{&num, &key.EndpointID, &key.Location}, func() error {
		if im.group[key.EndpointID] == nil {
			im.group[key.EndpointID] = &known{rows: map[string]*rows{}}
		}
		im.group[key.EndpointID].rows[key.Location] = &rows{num: num}
		im.keys[num] = key
		return nil
	})
	return explain("read places", err)
}

// number returns the number of a place.
func (im *Import) number(endpointID, location string) (int32, error) {
	if k := im.group[endpointID]; k != nil && k.rows[location] != nil {
		return k.rows[location].num, nil
	}
	return 0, fmt.Errorf("endpoint %s has no place at %q", endpointID, location)
}

// prepare returns what writes a batch, and the partitions that it needs.
func (im *Import) prepare(t store.CopyTable, b store.CopyBatch) (put func(context.Context, pgx.Tx) error, needs []need, err error) {
	if t.Checks() {
		return im.prepareChecks(b.Checks)
	}
	rows := b.Rows
	if t.Placed {
		if rows, err = im.numbered(b.Rows); err != nil {
			return nil, nil, err
		}
	}
	if t.Name == "uptime_hours" {
		needs = monthsOf(b.Rows)
	}
	if t.Name == "places" {
		if err := checkNumbers(b.Rows); err != nil {
			return nil, nil, err
		}
	}
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{t.Name}, columnsOf(t), pgx.CopyFromRows(rows))
		return err
	}, needs, nil
}

// columnsOf returns the columns of a table here.
func columnsOf(t store.CopyTable) []string {
	var names []string
	if t.Placed {
		names = append(names, "place")
	}
	for _, c := range t.Columns {
		if !t.Placed || c.Name != "endpoint_id" && c.Name != "location" {
			names = append(names, c.Name)
		}
	}
	return names
}

// numbered returns rows with the number of the place in front instead of its endpoint and location.
func (im *Import) numbered(rows [][]any) ([][]any, error) {
	list := make([][]any, 0, len(rows))
	for _, row := range rows {
		endpointID, _ := row[0].(string)
		location, _ := row[1].(string)
		num, err := im.number(endpointID, location)
		if err != nil {
			return nil, err
		}
		list = append(list, append([]any{num}, row[2:]...))
	}
	return list, nil
}

// monthsOf returns the partitions that rows of uptime_hours need. The hour is their third column.
func monthsOf(rows [][]any) (needs []need) {
	months := map[string]bool{}
	for _, row := range rows {
		hour, _ := row[2].(time.Time)
		if n := (need{hourMonths, hour}); !months[n.name()] {
			months[n.name()] = true
			needs = append(needs, n)
		}
	}
	return needs
}

// checkNumbers makes sure that the places can keep their numbers, the first column, which are shorter here.
func checkNumbers(rows [][]any) error {
	for _, row := range rows {
		if num, _ := row[0].(int64); num < 1 || num > math.MaxInt32 {
			return fmt.Errorf("a place has number %v, which is too long", row[0])
		}
	}
	return nil
}

func (im *Import) prepareChecks(checks []store.Check) (put func(context.Context, pgx.Tx) error, needs []need, err error) {
	for _, c := range checks {
		if _, err := im.number(c.EndpointID, c.Location); err != nil {
			return nil, nil, err
		}
	}
	packed, err := packChecks(checks, im.group, 0) // nobody lets go of what is being copied
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, tx pgx.Tx) error {
		var batch pgx.Batch
		packed.queueShapes(&batch)
		if err := send(ctx, tx, &batch); err != nil {
			return err
		}
		columns := []string{"place", "shape", "scheduled_at", "verdict", "latencies", "numbers"}
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"checks"}, columns, packed.source())
		if err == nil {
			packed.done() // a shape that is taken for kept and is not, because the commit failed, ends the import anyhow
		}
		return err
	}, packed.needs, nil
}

// source hands the checks out row by row.
func (p *packedChecks) source() pgx.CopyFromSource {
	return pgx.CopyFromSlice(len(p.places), func(i int) ([]any, error) {
		return []any{p.places[i], p.shapes[i], p.times[i], p.verdicts[i][0], p.latencies[i], p.numbers[i]}, nil
	})
}

// Sum adds up what is kept of a table.
func (im *Import) Sum(ctx context.Context, t store.CopyTable, progress func(rows int64)) (store.CopySum, error) {
	var sum store.CopySum
	oneState := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, im.conn, oneState, func(tx pgx.Tx) error {
		if t.Checks() {
			return im.sumChecks(ctx, tx, &sum, progress)
		}
		return sumRows(ctx, tx, t, &sum, progress)
	})
	return sum, explain("add up "+t.Name, err)
}

// fetchRows is how many rows are read at a time. A cursor keeps each statement short, whatever the size of the table.
const fetchRows = 5000

// fetch hands a query's rows to each, piece by piece.
func fetch(ctx context.Context, tx pgx.Tx, name, text string, each func(rows pgx.Rows) error, progress func(rows int64)) error {
	cursor := pgx.Identifier{"copy_" + name}.Sanitize()
	if _, err := tx.Exec(ctx, `DECLARE `+cursor+` NO SCROLL CURSOR FOR `+text); err != nil {
		return err
	}
	for {
		n, err := fetchSome(ctx, tx, cursor, each)
		if err != nil {
			return err
		}
		if n == 0 {
			_, err := tx.Exec(ctx, `CLOSE `+cursor)
			return err
		}
		progress(n)
	}
}

func fetchSome(ctx context.Context, tx pgx.Tx, cursor string, each func(rows pgx.Rows) error) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	rows, err := tx.Query(ctx, fmt.Sprintf(`FETCH %d FROM %s`, fetchRows, cursor))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		if err := each(rows); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

func sumRows(ctx context.Context, tx pgx.Tx, t store.CopyTable, sum *store.CopySum, progress func(rows int64)) error {
	text := `SELECT `
	for i, c := range t.Columns {
		if i > 0 {
			text += `, `
		}
		column := "t." + c.Name
		if t.Placed && i < 2 {
			column = "p." + c.Name
		}
		if c.Kind == store.CopyJSON {
			column += "::text" // JSON's null is not NULL
		}
		text += column
	}
	text += ` FROM ` + t.Name + ` t`
	if t.Placed {
		text += ` LEFT JOIN places p ON p.num = t.place`
	}
	return fetch(ctx, tx, t.Name, text, func(rows pgx.Rows) error {
		row, err := scanCopied(rows, t)
		if err != nil {
			return err
		}
		sum.AddRow(t, row)
		return nil
	}, progress)
}

// scanCopied scans the columns of a row into the types that store.CopyKind names.
func scanCopied(rows pgx.Rows, t store.CopyTable) ([]any, error) {
	cells := make([]cell, len(t.Columns))
	dest := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		dest[i] = cells[i].dest(c.Kind)
	}
	if err := rows.Scan(dest...); err != nil {
		return nil, err
	}
	row := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		row[i] = cells[i].value(c.Kind)
	}
	return row, nil
}

// cell is one value being scanned: one of its members, as the kind of the column says.
type cell struct {
	text    *string
	bytes   []byte
	integer *int64
	number  *float64
	flag    *bool
	time    *time.Time
	texts   *[]string
}

func (c *cell) dest(kind store.CopyKind) any {
	switch kind {
	case store.CopyBytes:
		return &c.bytes
	case store.CopyInteger:
		return &c.integer
	case store.CopyNumber:
		return &c.number
	case store.CopyFlag:
		return &c.flag
	case store.CopyTime, store.CopyDay:
		return &c.time
	case store.CopyTexts:
		return &c.texts
	default:
		return &c.text
	}
}

func (c *cell) value(kind store.CopyKind) any {
	switch kind {
	case store.CopyBytes:
		if c.bytes == nil {
			return nil
		}
		return c.bytes
	case store.CopyTexts:
		return valueOf(c.texts)
	case store.CopyInteger:
		return valueOf(c.integer)
	case store.CopyNumber:
		return valueOf(c.number)
	case store.CopyFlag:
		return valueOf(c.flag)
	case store.CopyTime, store.CopyDay:
		return valueOf(c.time)
	default:
		return valueOf(c.text)
	}
}

// valueOf returns what p points to; nil, without a type, for nil.
func valueOf[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// shapeName names a shape among all.
type shapeName struct {
	place, id int32
	day       time.Time
}

// sumChecks adds up checks. A check whose shape is missing, or says something else than its id, counts as one of no shape,
// which there is none of.
func (im *Import) sumChecks(ctx context.Context, tx pgx.Tx, sum *store.CopySum, progress func(rows int64)) error {
	spoiled, err := spoiledShapes(ctx, tx)
	if err != nil {
		return err
	}
	return fetch(ctx, tx, "checks", `
		SELECT c.place, c.scheduled_at, c.verdict, c.latencies, c.numbers, COALESCE(s.id, 0)
		FROM checks c
		LEFT JOIN check_shapes s ON s.place = c.place AND s.day = (c.scheduled_at AT TIME ZONE 'UTC')::date AND s.id = c.shape`,
		func(rows pgx.Rows) error {
			var num int32
			var at time.Time
			var p store.Packed
			if err := rows.Scan(&num, &at, &p.Verdict, &p.Latencies, &p.Numbers, &p.ShapeID); err != nil {
				return err
			}
			if len(spoiled) > 0 && spoiled[shapeName{num, p.ShapeID, store.DayOf(at)}] {
				p.ShapeID = 0
			}
			key, ok := im.keys[num]
			if !ok {
				key.EndpointID = fmt.Sprintf("of place %d, which is not there", num)
			}
			sum.AddPacked(key, at, p)
			return nil
		}, progress)
}

// spoiledShapes returns the shapes that do not say what their ids stand for.
func spoiledShapes(ctx context.Context, tx pgx.Tx) (map[shapeName]bool, error) {
	spoiled := map[shapeName]bool{}
	good := string(rune(store.VerdictCode("up")))
	err := fetch(ctx, tx, "shapes", `SELECT place, id, day, shape FROM check_shapes`, func(rows pgx.Rows) error {
		var name shapeName
		var day pgtype.Date
		var shape []byte
		if err := rows.Scan(&name.place, &name.id, &day, &shape); err != nil {
			return err
		}
		name.day = day.Time
		r, err := store.Unpack(name.day, good[0], nil, nil, shape)
		if err != nil || store.ShapeID(r) != name.id {
			spoiled[name] = true
		}
		return nil
	}, func(int64) {})
	return spoiled, err
}
