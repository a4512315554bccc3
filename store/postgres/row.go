package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rollcallhq/rollcall/store"
)

// orNil returns t as a nullable column keeps it: nil for the zero time.
func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// pgDate returns a day as a date column keeps it.
func pgDate(day time.Time) pgtype.Date { return pgtype.Date{Time: day, Valid: true} }

// orZero is the inverse of orNil.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// querier is the pool or a transaction.
type querier interface {
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
	Exec(ctx context.Context, text string, args ...any) (pgconn.CommandTag, error)
}

// query returns the rows of a query, each made by scan.
func query[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], text string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, scan)
}

// collect returns nil, not an empty slice, where there are no rows.
func collect[T any](rows pgx.Rows, scan pgx.RowToFunc[T]) ([]T, error) {
	return pgx.AppendRows([]T(nil), rows, scan)
}

// queryOne returns the first row of a query, made by scan; pgx.ErrNoRows when there is none.
func queryOne[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], text string, args ...any) (T, error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		var none T
		return none, err
	}
	return pgx.CollectOneRow(rows, scan)
}

// execOne runs a statement that changes one row, or returns store.ErrNotFound.
func execOne(ctx context.Context, q querier, statement string, args ...any) error {
	tag, err := q.Exec(ctx, statement, args...)
	if err == nil && tag.RowsAffected() == 0 {
		return store.ErrNotFound
	}
	return err
}

// send runs a batch in one round trip.
func send(ctx context.Context, tx pgx.Tx, batch *pgx.Batch) error {
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, batch).Close()
}

// where gathers conditions that must all hold.
type where struct {
	conditions []string
	args       []any
}

// and adds a condition in which each ? stands for the next argument.
func (w *where) and(condition string, args ...any) {
	for _, arg := range args {
		condition = strings.Replace(condition, "?", w.arg(arg), 1)
	}
	w.conditions = append(w.conditions, condition)
}

// cleanAll returns texts as they can be looked for: what cannot be kept is looked for in vain.
func cleanAll(texts []string) []string {
	clean := make([]string, 0, len(texts))
	for _, text := range texts {
		clean = append(clean, store.CleanText(text))
	}
	return clean
}

// arg adds an argument and returns what stands for it in the query.
func (w *where) arg(arg any) string {
	switch texts := arg.(type) {
	case string:
		arg = store.CleanText(texts) // what cannot be kept is looked for in vain
	case []string:
		arg = cleanAll(texts)
	}
	w.args = append(w.args, arg)
	return "$" + strconv.Itoa(len(w.args))
}

// String returns the clause, empty when there are no conditions.
func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return "WHERE " + strings.Join(w.conditions, " AND ")
}
