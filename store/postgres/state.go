package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// stateColumns are what stateRow scans, of endpoint_states s.
const stateColumns = `s.status, s.since, COALESCE(s.last_check_id, ''), s.last_check_at, s.evidence`

// stateRow is a state being scanned.
type stateRow struct {
	s                  store.State
	since, lastCheckAt *time.Time
	evidence           []byte
}

func (r *stateRow) dest() []any {
	return []any{&r.s.Status, &r.since, &r.s.LastCheckID, &r.lastCheckAt, &r.evidence}
}

func (r *stateRow) state() (store.State, error) {
	s := r.s
	s.Since, s.LastCheckAt = orZero(r.since), orZero(r.lastCheckAt)
	err := store.DecodeEvidence(&s, r.evidence)
	return s, err
}

func insertState(ctx context.Context, tx pgx.Tx, endpointID string, s store.State) error {
	evidence, err := store.EncodeEvidence(s)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO endpoint_states (endpoint_id, status, since, evidence)
		VALUES ($1, $2, $3, $4)`, endpointID, s.Status, orNil(s.Since), evidence)
	return err
}

func updateStates(batch *pgx.Batch, states []store.EndpointState) error {
	for _, es := range states {
		evidence, err := store.EncodeEvidence(es.State)
		if err != nil {
			return err
		}
		s := es.State
		if s.Status == "" {
			s.Status = store.StatusPending
		}
		head, err := store.EncodeHead(s)
		if err != nil {
			return err
		}
		batch.Queue(`
			UPDATE endpoint_states
			SET status = $2, since = $3, last_check_id = NULLIF($4, ''), last_check_at = $5, evidence = $6,
			    chain = NULLIF($7, ''), head = $8, head_at = $9
			WHERE endpoint_id = $1`,
			es.EndpointID, s.Status, orNil(s.Since), s.LastCheckID, orNil(s.LastCheckAt), evidence,
			head.Chain, head.JSON, orNil(head.At))
	}
	return nil
}

// writeAmended keeps what the edit of an endpoint changed beside the endpoint.
func writeAmended(ctx context.Context, tx pgx.Tx, endpointID string, a store.Amended) error {
	var batch pgx.Batch
	if err := updateStates(&batch, []store.EndpointState{{EndpointID: endpointID, State: a.State}}); err != nil {
		return err
	}
	if a.Resolve != nil {
		resolveIncidents(&batch, []store.Incident{*a.Resolve})
		insertNotices(&batch, a.Notices)
	}
	return send(ctx, tx, &batch)
}
