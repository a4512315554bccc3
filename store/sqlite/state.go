package sqlite

import (
	"context"
	"database/sql"

	"github.com/rollcallhq/rollcall/store"
)

// stateColumns are what stateRow scans, of endpoint_states s.
const stateColumns = `s.status, s.since, COALESCE(s.last_check_id, ''), s.last_check_at, s.evidence`

// stateRow is a state being scanned.
type stateRow struct {
	s        store.State
	evidence string
}

func (r *stateRow) dest() []any {
	return []any{&r.s.Status, timeInto{&r.s.Since}, &r.s.LastCheckID, timeInto{&r.s.LastCheckAt}, &r.evidence}
}

func (r *stateRow) state() (store.State, error) {
	s := r.s
	err := store.DecodeEvidence(&s, []byte(r.evidence))
	return s, err
}

func insertState(ctx context.Context, tx *sql.Tx, endpointID string, s store.State) error {
	evidence, err := store.EncodeEvidence(s)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO endpoint_states (endpoint_id, status, since, evidence)
		VALUES (?, ?, ?, ?)`, endpointID, s.Status, micros(s.Since), string(evidence))
	return err
}

func updateStates(ctx context.Context, tx *sql.Tx, states []store.EndpointState) error {
	var args [][]any
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
		args = append(args, []any{
			s.Status, micros(s.Since), s.LastCheckID, micros(s.LastCheckAt), string(evidence),
			head.Chain, string(head.JSON), micros(head.At), es.EndpointID,
		})
	}
	return execEach(ctx, tx, `
		UPDATE endpoint_states
		SET status = ?, since = ?, last_check_id = NULLIF(?, ''), last_check_at = ?, evidence = ?,
		    chain = NULLIF(?, ''), head = NULLIF(?, ''), head_at = ?
		WHERE endpoint_id = ?`, args)
}

// writeAmended keeps what the edit of an endpoint changed beside the endpoint.
func writeAmended(ctx context.Context, tx *sql.Tx, endpointID string, a store.Amended) error {
	if err := updateStates(ctx, tx, []store.EndpointState{{EndpointID: endpointID, State: a.State}}); err != nil {
		return err
	}
	if a.Resolve == nil {
		return nil
	}
	if err := resolveIncidents(ctx, tx, []store.Incident{*a.Resolve}); err != nil {
		return err
	}
	return insertNotices(ctx, tx, a.Notices)
}
