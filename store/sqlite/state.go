package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// stateColumns are what stateRow scans, of endpoint_states s: what the places of an endpoint add up to.
const stateColumns = `s.status, s.since, s.failure, s.flips, s.hushed`

// stateRow is the state of an endpoint being scanned.
type stateRow struct {
	s       store.State
	failure []byte
}

func (r *stateRow) dest() []any {
	return []any{&r.s.Status, timeInto{&r.s.Since}, &r.failure, jsonOrNil{&r.s.Flips}, jsonOrNil{&r.s.Hushed}}
}

func (r *stateRow) state() (store.State, error) {
	s := r.s
	if len(r.failure) == 0 {
		return s, nil
	}
	s.Failure = new(probe.Failure)
	err := json.Unmarshal(r.failure, s.Failure)
	return s, err
}

func insertState(ctx context.Context, tx *sql.Tx, endpointID string, s store.State) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO endpoint_states (endpoint_id, status, since)
		VALUES (?, ?, ?)`, endpointID, s.Status, micros(s.Since))
	return err
}

func updateStates(ctx context.Context, tx *sql.Tx, states []store.EndpointState) error {
	var args [][]any
	for _, es := range states {
		s := es.State
		if s.Status == "" {
			s.Status = store.StatusPending
		}
		failure, err := failureText(s.Failure)
		if err != nil {
			return err
		}
		flips, hushed, err := changesText(s)
		if err != nil {
			return err
		}
		args = append(args, []any{s.Status, micros(s.Since), failure, flips, hushed, es.EndpointID})
	}
	return execEach(ctx, tx, `
		UPDATE endpoint_states
		SET version = version + 1, status = ?, since = ?, failure = ?, flips = ?, hushed = ?
		WHERE endpoint_id = ?`, args)
}

// changesText returns the columns of what a state knows of its changes: JSON, or NULL.
func changesText(s store.State) (flips, hushed any, err error) {
	if len(s.Flips) > 0 {
		if flips, err = jsonText(s.Flips); err != nil {
			return nil, nil, err
		}
	}
	if s.Hushed != nil {
		hushed, err = jsonText(s.Hushed)
	}
	return flips, hushed, err
}

// failureText returns the column of a failure: JSON, or NULL.
func failureText(f *probe.Failure) (any, error) {
	if f == nil {
		return nil, nil
	}
	return jsonText(f)
}

// writeAmended keeps what the edit of an endpoint changed beside the endpoint: s is where it stands afterwards.
func writeAmended(ctx context.Context, tx *sql.Tx, s store.Standing, a store.Amended) error {
	if err := putPlaces(ctx, tx, s.Places); err != nil {
		return err
	}
	if err := updateStates(ctx, tx, []store.EndpointState{{EndpointID: s.Endpoint.ID, State: s.State}}); err != nil {
		return err
	}
	return writeTurns(ctx, tx, a.Turns)
}
