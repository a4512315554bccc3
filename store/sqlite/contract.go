package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rollcallhq/rollcall/store"
)

// insertContracts compares each contract with the one whose place it takes, and keeps it with its event. The order counts:
// one may take the place of another of the same group.
func insertContracts(ctx context.Context, tx *sql.Tx, contracts []store.NewContract) error {
	for i := range contracts {
		n := &contracts[i]
		if n.Before != nil {
			before, err := toolsOf(ctx, tx, n.Before.ID)
			if err != nil {
				return err
			}
			n.Compare(before)
		}
		if err := insertContract(ctx, tx, *n); err != nil {
			return err
		}
	}
	return nil
}

// toolsOf returns the tools of a contract, nil when they are not kept.
func toolsOf(ctx context.Context, tx *sql.Tx, id string) ([]byte, error) {
	var tools []byte
	err := tx.QueryRowContext(ctx, `SELECT tools FROM contracts WHERE id = ?`, id).Scan(&tools)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	return store.Expand(tools)
}

func insertContract(ctx context.Context, tx *sql.Tx, n store.NewContract) error {
	c := n.Contract
	tools, changes, err := store.EncodeContract(c)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO contracts (id, endpoint_id, key, hash, first_seen_at, tools, changes)
		VALUES (?, ?, ?, ?, ?, ?, ?)`, c.ID, c.EndpointID, c.Key, c.Hash, c.FirstSeen.UnixMicro(), tools, string(changes))
	if err != nil {
		return err
	}
	if n.Before != nil {
		_, err := tx.ExecContext(ctx, `UPDATE contracts SET last_seen_at = ? WHERE id = ?`, n.Before.Seen.UnixMicro(), n.Before.ID)
		if err != nil {
			return err
		}
	}
	if err := forgetContracts(ctx, tx, c.EndpointID); err != nil || n.Event == nil {
		return err
	}
	return insertEvent(ctx, tx, *n.Event)
}

// forgetContracts lets go of the contracts that are too many, and of the tools of those that are long past.
func forgetContracts(ctx context.Context, tx *sql.Tx, endpointID string) error {
	const older = `
		SELECT id FROM contracts WHERE endpoint_id = ? AND last_seen_at IS NOT NULL
		ORDER BY first_seen_at DESC, id DESC
		LIMIT -1 OFFSET ?`
	_, err := tx.ExecContext(ctx, `DELETE FROM contracts WHERE id IN (`+older+`)`, endpointID, store.MaxContracts)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE contracts SET tools = NULL WHERE tools IS NOT NULL AND id IN (`+older+`)`,
		endpointID, store.MaxToolLists)
	return err
}

// contractList is the name of the list of contracts in its cursors.
const contractList = "contracts"

// Contracts implements store.Store.
func (db *DB) Contracts(ctx context.Context, f store.ContractFilter) (store.Page[store.Contract], error) {
	var w where
	w.and(`c.endpoint_id = ?`, f.EndpointID)
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(contractList, f.Cursor)
		if err != nil {
			return store.Page[store.Contract]{}, err
		}
		w.and(`(c.first_seen_at, c.id) < (?, ?)`, at.UnixMicro(), id)
	}
	limit := store.PageLimit(f.Limit)
	var found []store.Contract
	err := db.read(ctx, "list contracts", func(tx *sql.Tx) error {
		known, err := knownContracts(ctx, tx, f.EndpointID)
		if err != nil {
			return err
		}
		scan := func(row scanner) (store.Contract, error) {
			var r contractRow
			if err := row.Scan(r.dest()...); err != nil {
				return store.Contract{}, err
			}
			return r.contract(known)
		}
		found, err = query(ctx, tx, scan, `
			SELECT `+contractColumns+`, NULL
			FROM contracts c
			`+w.String()+`
			ORDER BY c.first_seen_at DESC, c.id DESC
			LIMIT ?`, append(w.args, limit+1)...)
		return err
	})
	if err != nil {
		return store.Page[store.Contract]{}, err
	}
	return store.PageOf(found, limit, func(c store.Contract) string {
		return store.TimeCursor(contractList, c.FirstSeen, c.ID)
	}), nil
}

// Contract implements store.Store.
func (db *DB) Contract(ctx context.Context, id string) (store.Contract, error) {
	var c store.Contract
	err := db.read(ctx, "read contract", func(tx *sql.Tx) error {
		var r contractRow
		err := tx.QueryRowContext(ctx, `
			SELECT `+contractColumns+`, c.tools
			FROM contracts c
			WHERE c.id = ?`, id).Scan(r.dest()...)
		if err != nil {
			return notFound(err)
		}
		known, err := knownContracts(ctx, tx, r.c.EndpointID)
		if err != nil {
			return err
		}
		c, err = r.contract(known)
		return err
	})
	return c, err
}

// knownContracts returns the present contracts of the places of an endpoint.
func knownContracts(ctx context.Context, tx *sql.Tx, endpointID string) ([]store.KnownContract, error) {
	places, err := query(ctx, tx, scanPlace, `SELECT `+placeColumns+` FROM places p WHERE p.endpoint_id = ?`, endpointID)
	if err != nil {
		return nil, err
	}
	var known []store.KnownContract
	for _, p := range places {
		known = append(known, p.State.Contracts...)
	}
	return known, nil
}

// contractColumns are what contractRow scans, of contracts c; the tools, or NULL, follow.
const contractColumns = `c.id, c.endpoint_id, c.key, c.hash, c.first_seen_at, c.last_seen_at, c.changes`

// contractRow is a contract being scanned.
type contractRow struct {
	c              store.Contract
	changes, tools []byte
}

func (r *contractRow) dest() []any {
	c := &r.c
	return []any{&c.ID, &c.EndpointID, &c.Key, &c.Hash, timeInto{&c.FirstSeen}, timeInto{&c.LastSeen}, &r.changes, &r.tools}
}

func (r *contractRow) contract(known []store.KnownContract) (store.Contract, error) {
	c := r.c
	err := store.DecodeContract(&c, known, r.tools, r.changes)
	return c, err
}
