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
const stateColumns = `s.status, s.since, s.failure, s.flips, s.hushed`

// stateRow is the state of an endpoint being scanned.
type stateRow struct {
	status                 store.Status
	since                  *time.Time
	failure, flips, hushed []byte
}

func (r *stateRow) dest() []any { return []any{&r.status, &r.since, &r.failure, &r.flips, &r.hushed} }

func (r *stateRow) state() (store.State, error) {
	s := store.State{Status: r.status, Since: orZero(r.since)}
	var err error
	if s.Failure, err = readFailure(r.failure); err != nil {
		return s, err
	}
	if len(r.flips) > 0 {
		if err := json.Unmarshal(r.flips, &s.Flips); err != nil {
			return s, err
		}
	}
	if len(r.hushed) > 0 {
		s.Hushed = new(store.Hushed)
		err = json.Unmarshal(r.hushed, s.Hushed)
	}
	return s, err
}

// readFailure is the inverse of failureText.
func readFailure(text []byte) (*probe.Failure, error) {
	if len(text) == 0 {
		return nil, nil
	}
	f := new(probe.Failure)
	return f, json.Unmarshal(text, f)
}

// failureText returns the column of a failure: JSON, or NULL.
func failureText(f *probe.Failure) (*string, error) {
	if f == nil {
		return nil, nil
	}
	text, err := json.Marshal(f)
	return new(string(text)), err
}

// courseTexts returns the columns of what a state says about incidents: JSON, or NULL.
func courseTexts(s store.State) (flips, hushed *string, err error) {
	if len(s.Flips) > 0 {
		text, err := json.Marshal(s.Flips)
		if err != nil {
			return nil, nil, err
		}
		flips = new(string(text))
	}
	if s.Hushed != nil {
		text, err := json.Marshal(s.Hushed)
		if err != nil {
			return nil, nil, err
		}
		hushed = new(string(text))
	}
	return flips, hushed, nil
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
		flips, hushed, err := courseTexts(s)
		if err != nil {
			return err
		}
		batch.Queue(`
			UPDATE endpoint_states
			SET version = version + 1, status = $2, since = $3, failure = $4::text::json, flips = $5::text::json, hushed = $6::text::json
			WHERE endpoint_id = $1`, es.EndpointID, s.Status, orNil(s.Since), failure, flips, hushed)
	}
	return nil
}
