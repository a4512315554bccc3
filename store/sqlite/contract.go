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
	err := db.read(ctx, "list contracts", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanContract, `
			SELECT `+contractColumns+`, NULL, `+stateColumns+`
			FROM contracts c
			JOIN endpoint_states s ON s.endpoint_id = c.endpoint_id
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
	err := db.read(ctx, "read contract", func(tx *sql.Tx) (err error) {
		c, err = scanContract(tx.QueryRowContext(ctx, `
			SELECT `+contractColumns+`, c.tools, `+stateColumns+`
			FROM contracts c
			JOIN endpoint_states s ON s.endpoint_id = c.endpoint_id
			WHERE c.id = ?`, id))
		return notFound(err)
	})
	return c, err
}

// contractColumns are what scanContract scans, of contracts c; tools and the state of the endpoint follow.
const contractColumns = `c.id, c.endpoint_id, c.key, c.hash, c.first_seen_at, c.last_seen_at, c.changes`

func scanContract(row scanner) (store.Contract, error) {
	var (
		c       store.Contract
		changes string
		tools   []byte
		s       stateRow
	)
	dest := []any{
		&c.ID, &c.EndpointID, &c.Key, &c.Hash, timeInto{&c.FirstSeen}, timeInto{&c.LastSeen}, &changes, &tools,
	}
	if err := row.Scan(append(dest, s.dest()...)...); err != nil {
		return store.Contract{}, err
	}
	state, err := s.state()
	if err != nil {
		return store.Contract{}, err
	}
	err = store.DecodeContract(&c, state, tools, []byte(changes))
	return c, err
}
