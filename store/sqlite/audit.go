package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// audit writes a line about a change by the actor of ctx, if there is one; see store.NewAudit.
func audit(ctx context.Context, tx *sql.Tx, verb string, before, after store.Audited) error {
	a, ok := store.NewAudit(ctx, verb, before, after, time.Now())
	if !ok {
		return nil
	}
	changes, err := jsonText(append([]store.Change{}, a.Changes...))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO audits (id, at, author, author_kind, address, noun, action, target, name, changes)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, a.At.UnixMicro(), a.Author, a.AuthorKind, a.Address, a.Noun(), a.Action, a.Target, a.Name, changes)
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
		w.and(`(at, id) < (?, ?)`, at.UnixMicro(), id)
	}
	limit := store.PageLimit(f.Limit)
	var found []store.Audit
	err := db.read(ctx, "list changes", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanAudit, `
			SELECT id, at, author, author_kind, address, action, target, name, changes
			FROM audits
			`+w.String()+`
			ORDER BY at DESC, id DESC
			LIMIT ?`, append(w.args, limit+1)...)
		return err
	})
	if err != nil {
		return store.Page[store.Audit]{}, err
	}
	return store.PageOf(found, limit, func(a store.Audit) string { return store.TimeCursor(auditList, a.At, a.ID) }), nil
}

func scanAudit(row scanner) (store.Audit, error) {
	var a store.Audit
	err := row.Scan(&a.ID, timeInto{&a.At}, &a.Author, &a.AuthorKind, &a.Address, &a.Action, &a.Target, &a.Name, jsonInto{&a.Changes})
	if len(a.Changes) == 0 {
		a.Changes = nil
	}
	return a, err
}
