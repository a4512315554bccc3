package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// audit writes a line about a change by the actor of ctx, if there is one; see store.NewAudit.
func audit(ctx context.Context, tx pgx.Tx, verb string, before, after store.Audited) error {
	a, ok := store.NewAudit(ctx, verb, before, after, time.Now())
	if !ok {
		return nil
	}
	changes, err := json.Marshal(append([]store.Change{}, a.Changes...))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO audits (id, at, author, author_kind, address, noun, action, target, name, changes)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::json)`,
		a.ID, a.At, a.Author, a.AuthorKind, a.Address, a.Noun(), a.Action, a.Target, a.Name, string(changes))
	return err
}

// auditList is the name of the log of changes in its cursors.
const auditList = "audits"

// Audits implements store.Store.
func (db *DB) Audits(ctx context.Context, f store.AuditFilter) (store.Page[store.Audit], error) {
	var w where
	if f.Author != "" {
		w.and(`author = ?`, f.Author)
	}
	if f.Noun != "" {
		w.and(`noun = ?`, f.Noun)
	}
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(auditList, f.Cursor)
		if err != nil {
			return store.Page[store.Audit]{}, err
		}
		w.and(`(at, id) < (?, ?)`, at, id)
	}
	limit := store.PageLimit(f.Limit)
	found, err := query(ctx, db.pool, scanAudit, `
		SELECT id, at, author, author_kind, address, action, target, name, changes
		FROM audits
		`+w.String()+`
		ORDER BY at DESC, id DESC
		LIMIT `+w.arg(limit+1), w.args...)
	if err != nil {
		return store.Page[store.Audit]{}, explain("list changes", err)
	}
	return store.PageOf(found, limit, func(a store.Audit) string { return store.TimeCursor(auditList, a.At, a.ID) }), nil
}

func scanAudit(row pgx.CollectableRow) (store.Audit, error) {
	var a store.Audit
	err := row.Scan(&a.ID, &a.At, &a.Author, &a.AuthorKind, &a.Address, &a.Action, &a.Target, &a.Name, &a.Changes)
	if len(a.Changes) == 0 {
		a.Changes = nil
	}
	return a, err
}

// pruneAudits lets go of the lines older than a bound, not all in one transaction.
func (db *DB) pruneAudits(ctx context.Context, before time.Time) error {
	const most = 10_000
	for {
		tag, err := db.pool.Exec(ctx, `
			DELETE FROM audits
			WHERE id IN (SELECT id FROM audits WHERE at < $1 LIMIT $2)`, before, most)
		if err != nil || tag.RowsAffected() < most {
			return explain("delete old changes", err)
		}
	}
}
