package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/rollcallhq/rollcall/store"
)

// Export is one state of a file, being read out. It is for one goroutine at a time.
type Export struct{ tx *sql.Tx }

// Export begins to read out everything. Others may write meanwhile: what they write is not in it. The caller closes the Export.
func (db *DB) Export(ctx context.Context) (*Export, error) {
	if err := db.write(ctx, "fill in places", func(tx *sql.Tx) error { return fillPlaces(ctx, tx) }); err != nil {
		return nil, err
	}
	tx, err := db.readers.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return &Export{tx}, nil
}

// Close ends the reading.
func (e *Export) Close() error {
	if err := e.tx.Rollback(); !errors.Is(err, sql.ErrTxDone) { // it is over when its context is
		return err
	}
	return nil
}

// fillPlaces makes the places that history names and that are not there, because nothing was heard from them since there are
// places: where history is kept by the place, it needs one.
func fillPlaces(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO places (endpoint_id, location, status, evidence)
		SELECT h.endpoint_id, h.location, 'pending', '{}'
		FROM (
		    SELECT endpoint_id, location FROM checks
		    UNION
		    SELECT endpoint_id, location FROM uptime_hours
		    UNION
		    SELECT endpoint_id, location FROM uptime_days
		) h
		WHERE true
		ON CONFLICT DO NOTHING`)
	return err
}

// elsewhere are columns of a table that stand in another one, by "table.column"; t is the table.
var elsewhere = map[string]string{
	"transcripts.scheduled_at": `(SELECT c.scheduled_at FROM checks c WHERE c.id = t.check_id)`,
}

// Count returns how many rows a table has.
func (e *Export) Count(ctx context.Context, t store.CopyTable) (n int64, err error) {
	err = e.tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+t.Name).Scan(&n)
	return n, wrapTable("count", t, err)
}

// Fingerprint names the state that is read: it is another one after a service has run on the file, or somebody has edited
// what is in it.
func (e *Export) Fingerprint(ctx context.Context) (string, error) {
	h := sha256.New()
	for _, t := range store.CopyTables {
		n, err := e.Count(ctx, t)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, t.Name, n)
	}
	var proof []byte
	var changes string
	err := e.tx.QueryRowContext(ctx, `
		SELECT (SELECT proof FROM secret_key),
		       COALESCE((SELECT SUM(version) FROM places), 0)
		       || ' ' || COALESCE((SELECT SUM(version) FROM endpoint_states), 0)
		       || ' ' || COALESCE((SELECT MAX(updated_at) FROM endpoints), 0)
		       || ' ' || COALESCE((SELECT MAX(updated_at) FROM channels), 0)
		       || ' ' || COALESCE((SELECT MAX(updated_at) FROM maintenances), 0)
		       || ' ' || COALESCE((SELECT SUM(attempts) FROM notices), 0)`).Scan(&proof, &changes)
	if err != nil {
		return "", fmt.Errorf("look at the source: %w", err)
	}
	fmt.Fprintf(h, "%x %s", proof, changes)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Bounds of a batch: it has to fit into memory a few times.
const (
	exportRows   = 2000
	exportChecks = 4000
	exportBytes  = 8 << 20
)

// Batches reads a table in the order of its key, from where an earlier batch ended; an empty after is the beginning. It ends
// with the first error.
func (e *Export) Batches(ctx context.Context, t store.CopyTable, after string) iter.Seq2[store.CopyBatch, error] {
	return func(yield func(store.CopyBatch, error) bool) {
		read := e.readRows
		if t.Checks() {
			read = e.readChecks
		}
		err := read(ctx, t, after, func(b store.CopyBatch) bool { return yield(b, nil) })
		if err != nil && !errors.Is(err, errEnough) {
			yield(store.CopyBatch{}, wrapTable("read", t, err))
		}
	}
}

// errEnough means that whoever reads wants no more.
var errEnough = errors.New("enough")

func wrapTable(what string, t store.CopyTable, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, t.Name, err)
}

// readChecks hands out checks in the order in which they were due: each day fills a partition.
func (e *Export) readChecks(ctx context.Context, _ store.CopyTable, after string, take func(store.CopyBatch) bool) error {
	key, err := readPosition(after, 2)
	if err != nil {
		return err
	}
	text := `SELECT ` + strings.Replace(checkColumns, "e.slug", "''", 1) + ` FROM checks c `
	if key != nil {
		text += `WHERE (c.scheduled_at, c.id) > (?, ?) `
	}
	rows, err := e.tx.QueryContext(ctx, text+`ORDER BY c.scheduled_at, c.id`, key...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what matters
	var batch store.CopyBatch
	hand := func() error {
		if len(batch.Checks) == 0 {
			return nil
		}
		last := batch.Checks[len(batch.Checks)-1]
		batch.After = position([]any{last.ScheduledAt.UnixMicro(), last.ID})
		if !take(batch) {
			return errEnough
		}
		batch = store.CopyBatch{}
		return nil
	}
	for rows.Next() {
		c, err := scanCheck(rows)
		if err != nil {
			return err
		}
		batch.Checks = append(batch.Checks, c)
		if len(batch.Checks) == exportChecks {
			if err := hand(); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return hand()
}

// readRows hands out the rows of any other table, in the order of its primary key.
func (e *Export) readRows(ctx context.Context, t store.CopyTable, after string, take func(store.CopyBatch) bool) error {
	names, err := query(ctx, e.tx, scanString, `SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk`, t.Name)
	if err != nil {
		return err
	}
	from, err := readPosition(after, len(names))
	if err != nil {
		return err
	}
	rows, err := e.tx.QueryContext(ctx, selectCopy(t, names, from != nil), from...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what matters
	var batch store.CopyBatch
	var key []any
	size := 0
	hand := func() error {
		if len(batch.Rows) == 0 {
			return nil
		}
		batch.After = position(key)
		if !take(batch) {
			return errEnough
		}
		batch, size = store.CopyBatch{}, 0
		return nil
	}
	for rows.Next() {
		var row []any
		if key, row, err = scanCopy(rows, t, len(names)); err != nil {
			return err
		}
		batch.Rows = append(batch.Rows, row)
		size += sizeOf(row)
		if len(batch.Rows) == exportRows || size >= exportBytes {
			if err := hand(); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return hand()
}

// selectCopy selects the key of a table and then its columns.
func selectCopy(t store.CopyTable, key []string, positioned bool) string {
	columns := "t." + strings.Join(key, ", t.")
	text := `SELECT ` + columns
	for _, c := range t.Columns {
		column := "t." + c.Name
		if other, ok := elsewhere[t.Name+"."+c.Name]; ok {
			column = other
		}
		text += `, ` + column
	}
	text += ` FROM ` + t.Name + ` t`
	if positioned {
		text += ` WHERE (` + columns + `) > (?` + strings.Repeat(`, ?`, len(key)-1) + `)`
	}
	return text + ` ORDER BY ` + columns
}

func scanCopy(row scanner, t store.CopyTable, keys int) (key, values []any, err error) {
	all := make([]any, keys+len(t.Columns))
	dest := make([]any, len(all))
	for i := range all {
		dest[i] = &all[i]
	}
	if err := row.Scan(dest...); err != nil {
		return nil, nil, err
	}
	key, values = all[:keys], all[keys:]
	for i, c := range t.Columns {
		if values[i], err = copied(c.Kind, values[i]); err != nil {
			return nil, nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
	}
	return key, values, nil
}

// copied returns a value that a column keeps as store.CopyKind says it.
func copied(kind store.CopyKind, v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		switch kind {
		case store.CopyText, store.CopyJSON:
			return store.CleanText(v), nil
		case store.CopyTexts:
			list := []string{}
			err := json.Unmarshal([]byte(v), &list)
			return list, err
		}
	case []byte:
		if kind == store.CopyBytes {
			return append([]byte{}, v...), nil
		}
	case int64:
		switch kind {
		case store.CopyInteger:
			return v, nil
		case store.CopyFlag:
			return v != 0, nil
		case store.CopyTime, store.CopyDay:
			return fromMicros(v), nil
		}
	case float64:
		if kind == store.CopyNumber {
			return v, nil
		}
	}
	return nil, fmt.Errorf("a value is kept as %T", v)
}

func sizeOf(row []any) (size int) {
	for _, v := range row {
		switch v := v.(type) {
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		}
		size += 16
	}
	return size
}

// position writes a key as text: each part with a letter for its type in front, as a JSON array.
func position(key []any) string {
	parts := make([]string, 0, len(key))
	for _, v := range key {
		switch v := v.(type) {
		case int64:
			parts = append(parts, "i"+strconv.FormatInt(v, 10))
		case []byte:
			parts = append(parts, "b"+hex.EncodeToString(v))
		default:
			parts = append(parts, fmt.Sprintf("t%v", v))
		}
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return "" // not reached: strings always have a JSON form
	}
	return string(text)
}

// readPosition is the inverse of position; nil for the beginning.
func readPosition(text string, parts int) ([]any, error) {
	if text == "" {
		return nil, nil
	}
	var list []string
	bad := fmt.Errorf("%.100q is not a place to go on from", text)
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != parts {
		return nil, bad
	}
	var key []any
	for _, part := range list {
		kind, value, ok := cutKind(part)
		if !ok {
			return nil, bad
		}
		switch kind {
		case 'i':
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, bad
			}
			key = append(key, n)
		case 'b':
			raw, err := hex.DecodeString(value)
			if err != nil {
				return nil, bad
			}
			key = append(key, raw)
		default:
			key = append(key, value)
		}
	}
	return key, nil
}

func cutKind(part string) (kind byte, value string, ok bool) {
	if part == "" {
		return 0, "", false
	}
	return part[0], part[1:], true
}
