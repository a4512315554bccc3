package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// micros returns t as a nullable column keeps it: NULL for the zero time.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// microsOrNil returns t as a nullable column keeps it.
func microsOrNil(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixMicro()
}

// fromMicros returns a time that a column keeps.
func fromMicros(v int64) time.Time { return time.UnixMicro(v).UTC() }

// timeInto scans microseconds into a time; NULL is the zero time.
type timeInto struct{ t *time.Time }

// Scan implements sql.Scanner.
func (d timeInto) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*d.t = time.Time{}
	case int64:
		*d.t = fromMicros(v)
	default:
		return fmt.Errorf("a time is kept as %T", src)
	}
	return nil
}

// timeOrNil scans microseconds into a time; NULL is nil.
type timeOrNil struct{ t **time.Time }

// Scan implements sql.Scanner.
func (d timeOrNil) Scan(src any) error {
	*d.t = nil
	if src == nil {
		return nil
	}
	*d.t = new(time.Time)
	return timeInto{*d.t}.Scan(src)
}

// jsonInto scans JSON text into a value.
type jsonInto struct{ v any }

// Scan implements sql.Scanner.
func (d jsonInto) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("JSON is kept as %T", src)
	}
	return json.Unmarshal([]byte(text), d.v)
}

// jsonOrNil scans JSON text into a value, which NULL leaves as it is.
type jsonOrNil struct{ v any }

// Scan implements sql.Scanner.
func (d jsonOrNil) Scan(src any) error {
	if src == nil {
		return nil
	}
	return jsonInto(d).Scan(src)
}

// textsInto scans an array of texts; an empty one is nil.
type textsInto struct{ texts *[]string }

// Scan implements sql.Scanner.
func (d textsInto) Scan(src any) error {
	*d.texts = nil
	if err := (jsonInto{d.texts}).Scan(src); err != nil {
		return err
	}
	if len(*d.texts) == 0 {
		*d.texts = nil
	}
	return nil
}

// jsonText returns v as JSON text. SQLite would take bytes for its own binary form.
func jsonText(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

// query returns the rows of a query, each made by scan, which must not query itself: the connection is taken.
func query[T any](ctx context.Context, tx *sql.Tx, scan func(scanner) (T, error), text string, args ...any) ([]T, error) {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what matters
	var items []T
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, rows.Err()
}

// scanner is a *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

// scanString scans a row of one text.
func scanString(row scanner) (string, error) {
	var s string
	err := row.Scan(&s)
	return s, err
}

// execEach runs one statement with each of the arguments.
func execEach(ctx context.Context, tx *sql.Tx, statement string, args [][]any) error {
	if len(args) == 0 {
		return nil
	}
	prepared, err := tx.PrepareContext(ctx, statement)
	if err != nil {
		return err
	}
	defer prepared.Close() //nolint:errcheck // it ends with the transaction in any case
	for _, a := range args {
		if _, err := prepared.ExecContext(ctx, a...); err != nil {
			return err
		}
	}
	return nil
}

// where gathers conditions that must all hold.
type where struct {
	conditions []string
	args       []any
}

func (w *where) and(condition string, args ...any) {
	w.conditions = append(w.conditions, condition)
	w.args = append(w.args, args...)
}

// String returns the clause, empty when there are no conditions.
func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return "WHERE " + strings.Join(w.conditions, " AND ")
}
