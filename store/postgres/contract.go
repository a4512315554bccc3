package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// toolsBefore returns the tools of the contracts whose place others take, by id. They are rare enough for a round trip of
// their own.
func (db *DB) toolsBefore(ctx context.Context, contracts []store.NewContract) (map[string][]byte, error) {
	tools := map[string][]byte{}
	var ids []string
	for _, n := range contracts {
		if n.Before != nil {
			ids = append(ids, n.Before.ID)
		}
	}
	if len(ids) == 0 {
		return tools, nil
	}
	rows, err := db.pool.Query(ctx, `SELECT id, tools FROM contracts WHERE id = ANY ($1)`, ids)
	if err != nil {
		return nil, err
	}
	var id string
	var squeezed []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &squeezed}, func() (err error) {
		tools[id], err = store.Expand(squeezed)
		return err
	})
	return tools, err
}

// queueContracts compares each contract with the one whose place it takes, and keeps it with its event. The order counts: one
// may take the place of another of the same group.
func queueContracts(batch *pgx.Batch, contracts []store.NewContract, tools map[string][]byte) error {
	for i := range contracts {
		n := &contracts[i]
		if n.Before != nil {
			n.Compare(tools[n.Before.ID])
		}
		tools[n.Contract.ID] = n.Contract.Tools
		if err := queueContract(batch, *n); err != nil {
			return err
		}
	}
	return nil
}

func queueContract(batch *pgx.Batch, n store.NewContract) error {
	c := n.Contract
	tools, changes, err := store.EncodeContract(c)
	if err != nil {
		return err
	}
	batch.Queue(`
		INSERT INTO contracts (id, endpoint_id, key, hash, first_seen_at, tools, changes)
		VALUES ($1, $2, $3, $4, $5, $6, $7::text::jsonb)`, c.ID, c.EndpointID, c.Key, c.Hash, c.FirstSeen, tools, string(changes))
	if n.Before != nil {
		batch.Queue(`UPDATE contracts SET last_seen_at = $2 WHERE id = $1`, n.Before.ID, n.Before.Seen)
	}
	forgetContracts(batch, c.EndpointID)
	if n.Event != nil {
		insertEvent(batch, *n.Event)
	}
	return nil
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
		SELECT ` + contractColumns + `, NULL::bytea
		FROM contracts c
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
		SELECT `+contractColumns+`, c.tools
		FROM contracts c
		WHERE c.id = $1`, id)
	return c, explain("read contract", err)
}

// contractColumns are what scanContract scans, of contracts c; tools follow.
const contractColumns = `
	c.id, c.endpoint_id, c.key, c.hash, c.first_seen_at, c.last_seen_at, c.changes,
	ARRAY (SELECT p.evidence::text FROM places p WHERE p.endpoint_id = c.endpoint_id)`

func scanContract(row pgx.CollectableRow) (store.Contract, error) {
	var (
		c              store.Contract
		lastSeen       *time.Time
		changes, tools []byte
		evidences      []string
	)
	err := row.Scan(&c.ID, &c.EndpointID, &c.Key, &c.Hash, &c.FirstSeen, &lastSeen, &changes, &evidences, &tools)
	if err != nil {
		return store.Contract{}, err
	}
	c.LastSeen = orZero(lastSeen)
	var known []store.KnownContract
	for _, evidence := range evidences {
		var s store.State
		if err := store.DecodeEvidence(&s, []byte(evidence)); err != nil {
			return store.Contract{}, err
		}
		known = append(known, s.Contracts...)
	}
	err = store.DecodeContract(&c, known, tools, changes)
	return c, err
}
