package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// insertContracts compares each contract with the one whose place it takes, and keeps it with its event. The order counts:
// one may take the place of another of the same group. They are rare enough for round trips of their own.
func insertContracts(ctx context.Context, tx pgx.Tx, contracts []store.NewContract) error {
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
func toolsOf(ctx context.Context, tx pgx.Tx, id string) ([]byte, error) {
	var tools []byte
	err := tx.QueryRow(ctx, `SELECT tools FROM contracts WHERE id = $1`, id).Scan(&tools)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	return store.Expand(tools)
}

func insertContract(ctx context.Context, tx pgx.Tx, n store.NewContract) error {
	c := n.Contract
	tools, changes, err := store.EncodeContract(c)
	if err != nil {
		return err
	}
	var batch pgx.Batch
	batch.Queue(`
		INSERT INTO contracts (id, endpoint_id, key, hash, first_seen_at, tools, changes)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`, c.ID, c.EndpointID, c.Key, c.Hash, c.FirstSeen, tools, changes)
	if n.Before != nil {
		batch.Queue(`UPDATE contracts SET last_seen_at = $2 WHERE id = $1`, n.Before.ID, n.Before.Seen)
	}
	forgetContracts(&batch, c.EndpointID)
	if n.Event != nil {
		insertEvent(&batch, *n.Event)
	}
	return send(ctx, tx, &batch)
}

// forgetContracts lets go of the contracts that are too many, and of the tools of those that are long past.
func forgetContracts(batch *pgx.Batch, endpointID string) {
	const older = `
		SELECT id FROM contracts WHERE endpoint_id = $1 AND last_seen_at IS NOT NULL
		ORDER BY first_seen_at DESC, id DESC
		OFFSET $2`
	batch.Queue(`DELETE FROM contracts WHERE id IN (`+older+`)`, endpointID, store.MaxContracts)
	batch.Queue(`UPDATE contracts SET tools = NULL WHERE tools IS NOT NULL AND id IN (`+older+`)`, endpointID, store.MaxToolLists)
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
		w.and(`(c.first_seen_at, c.id) < (?, ?)`, at, id)
	}
	limit := store.PageLimit(f.Limit)
	text := `
		SELECT ` + contractColumns + `, NULL::bytea, ` + stateColumns + `
		FROM contracts c
		JOIN endpoint_states s ON s.endpoint_id = c.endpoint_id
		` + w.String() + `
		ORDER BY c.first_seen_at DESC, c.id DESC
		LIMIT ` + w.arg(limit+1)
	found, err := query(ctx, db.pool, scanContract, text, w.args...)
	if err != nil {
		return store.Page[store.Contract]{}, explain("list contracts", err)
	}
	return store.PageOf(found, limit, func(c store.Contract) string {
		return store.TimeCursor(contractList, c.FirstSeen, c.ID)
	}), nil
}

// Contract implements store.Store.
func (db *DB) Contract(ctx context.Context, id string) (store.Contract, error) {
	c, err := queryOne(ctx, db.pool, scanContract, `
		SELECT `+contractColumns+`, c.tools, `+stateColumns+`
		FROM contracts c
		JOIN endpoint_states s ON s.endpoint_id = c.endpoint_id
		WHERE c.id = $1`, id)
	return c, explain("read contract", err)
}

// contractColumns are what scanContract scans, of contracts c; tools and the state of the endpoint follow.
const contractColumns = `c.id, c.endpoint_id, c.key, c.hash, c.first_seen_at, c.last_seen_at, c.changes`

func scanContract(row pgx.CollectableRow) (store.Contract, error) {
	var (
		c              store.Contract
		lastSeen       *time.Time
		changes, tools []byte
		s              stateRow
	)
	dest := []any{&c.ID, &c.EndpointID, &c.Key, &c.Hash, &c.FirstSeen, &lastSeen, &changes, &tools}
	if err := row.Scan(append(dest, s.dest()...)...); err != nil {
		return store.Contract{}, err
	}
	c.LastSeen = orZero(lastSeen)
	state, err := s.state()
	if err != nil {
		return store.Contract{}, err
	}
	err = store.DecodeContract(&c, state, tools, changes)
	return c, err
}
