package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// stateColumns are what stateRow scans, of endpoint_states s: what the places of an endpoint add up to.
const stateColumns = `s.status, s.since, s.failure`

// stateRow is the state of an endpoint being scanned.
type stateRow struct {
	status  store.Status
	since   *time.Time
	failure []byte
}

func (r *stateRow) dest() []any { return []any{&r.status, &r.since, &r.failure} }

func (r *stateRow) state() (store.State, error) {
	s := store.State{Status: r.status, Since: orZero(r.since)}
	if len(r.failure) == 0 {
		return s, nil
	}
	s.Failure = new(probe.Failure)
	err := json.Unmarshal(r.failure, s.Failure)
	return s, err
}

// failureText returns the column of a failure: JSON, or NULL.
func failureText(f *probe.Failure) (*string, error) {
	if f == nil {
		return nil, nil
	}
	text, err := json.Marshal(f)
	return new(string(text)), err
}

func insertState(ctx context.Context, tx pgx.Tx, endpointID string, s store.State) error {
	_, err := tx.Exec(ctx, `INSERT INTO endpoint_states (endpoint_id, status, since) VALUES ($1, $2, $3)`,
		endpointID, s.Status, orNil(s.Since))
	return err
}

func updateStates(batch *pgx.Batch, states []store.EndpointState) error {
	for _, es := range states {
		s := es.State
		if s.Status == "" {
			s.Status = store.StatusPending
		}
		failure, err := failureText(s.Failure)
		if err != nil {
			return err
		}
		batch.Queue(`
			UPDATE endpoint_states
			SET version = version + 1, status = $2, since = $3, failure = $4::text::json
			WHERE endpoint_id = $1`, es.EndpointID, s.Status, orNil(s.Since), failure)
	}
	return nil
}
