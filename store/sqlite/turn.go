package sqlite

import (
	"context"
	"database/sql"

	"github.com/rollcallhq/rollcall/store"
)

// writeTurns keeps what becomes of incidents, in order: the same one may stand there more than once.
//
//	writeTurns
//	└─ writeTurn
//	   ├─ settleTurn   which incident it is about, and what is left of it where that is shared
//	   ├─ entries, notices of the endpoint's channels
//	   └─ tell         notices of subscriptions
func writeTurns(ctx context.Context, tx *sql.Tx, turns []store.Turn) error {
	for _, t := range turns {
		if err := writeTurn(ctx, tx, t); err != nil {
			return err
		}
	}
	return nil
}

func writeTurn(ctx context.Context, tx *sql.Tx, t store.Turn) error {
	t, ok, err := settleTurn(ctx, tx, t)
	if err != nil || !ok {
		return err
	}
	if err := insertEntries(ctx, tx, t.Entries); err != nil {
		return err
	}
	if t.Withdraw || t.Incident.ResolvedAt != nil {
		if err := withdraw(ctx, tx, t.Incident.ID); err != nil {
			return err
		}
	}
	if err := insertNotices(ctx, tx, t.Notices); err != nil || t.Tells == "" {
		return err
	}
	about, err := aboutTurn(ctx, tx, t)
	if err != nil {
		return err
	}
	return tell(ctx, tx, store.TellingOf(t, about))
}

// settleTurn writes the incident of a turn and returns the turn as it came out; false when there is nothing left of it.
func settleTurn(ctx context.Context, tx *sql.Tx, t store.Turn) (store.Turn, bool, error) {
	if !t.Incident.Kind.Shared() {
		if t.Opens {
			return t, true, insertIncident(ctx, tx, t.Incident)
		}
		return t, true, updateIncident(ctx, tx, t.Incident)
	}
	shared, err := openOf(ctx, tx, t.Incident.Subject)
	if err != nil {
		return t, false, err
	}
	switch {
	case t.Opens && shared == nil:
		if err := insertIncident(ctx, tx, t.Incident); err != nil {
			return t, false, err
		}
		return t, true, joinIncident(ctx, tx, t.Incident.ID, []string{t.EndpointID}, t.At.UnixMicro())
	case shared == nil:
		return t, false, nil // it is over
	case t.Opens:
		name, err := nameOf(ctx, tx, t.EndpointID)
		if err != nil {
			return t, false, err
		}
		return t.Joined(*shared, name), true, joinIncident(ctx, tx, shared.ID, []string{t.EndpointID}, t.At.UnixMicro())
	case t.Leaves:
		return leaveIncident(ctx, tx, t, *shared)
	}
	t = t.Of(*shared)
	return t, true, updateIncident(ctx, tx, t.Incident)
}

// leaveIncident has the endpoint of a turn leave a shared incident, which is over with the last.
func leaveIncident(ctx context.Context, tx *sql.Tx, t store.Turn, shared store.Incident) (store.Turn, bool, error) {
	result, err := tx.ExecContext(ctx, `
		UPDATE incident_endpoints
		SET left_at = ?
		WHERE incident_id = ? AND endpoint_id = ? AND left_at IS NULL`, t.At.UnixMicro(), shared.ID, t.EndpointID)
	if err != nil {
		return t, false, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return t, false, err
	}
	name, err := nameOf(ctx, tx, t.EndpointID)
	if err != nil {
		return t, false, err
	}
	var others bool
	err = tx.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM incident_endpoints WHERE incident_id = ? AND left_at IS NULL)`, shared.ID).Scan(&others)
	if err != nil {
		return t, false, err
	}
	t = t.Left(shared, name, !others)
	if others {
		return t, true, nil
	}
	return t, true, updateIncident(ctx, tx, t.Incident)
}

func nameOf(ctx context.Context, tx *sql.Tx, endpointID string) (name string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT name FROM endpoints WHERE id = ?`, endpointID).Scan(&name)
	return name, err
}

// aboutTurn returns the endpoints that the incident of a turn is about.
func aboutTurn(ctx context.Context, tx *sql.Tx, t store.Turn) ([]store.Endpoint, error) {
	if !t.Incident.Kind.Shared() {
		return endpointsOf(ctx, tx, store.Incident{EndpointID: t.EndpointID})
	}
	i, err := incident(ctx, tx, t.Incident.ID)
	if err != nil {
		return nil, err
	}
	return endpointsOf(ctx, tx, i)
}

// tell keeps the notices of those who have subscribed.
func tell(ctx context.Context, tx *sql.Tx, w store.Telling) error {
	if w.Kind == "" {
		return nil
	}
	scan := func(row scanner) (l store.Listener, err error) {
		err = row.Scan(append(subscriptionDest(&l.Subscription), &l.Heard)...)
		return l, err
	}
	listeners, err := query(ctx, tx, scan, `
		SELECT `+subscriptionColumns+`,
		    EXISTS (SELECT 1 FROM notices n WHERE n.incident_id = ? AND n.channel_id = u.id AND n.kind = 'opened') heard
		FROM subscriptions u
		WHERE u.confirmed_at IS NOT NULL AND (NOT ? OR heard)
		ORDER BY u.id`, w.Incident.ID, w.Incident.ResolvedAt != nil)
	if err != nil {
		return err
	}
	pages, err := subscribedPages(ctx, tx)
	if err != nil {
		return err
	}
	for i, l := range listeners {
		listeners[i].Page = pages[l.PageID]
	}
	return insertNotices(ctx, tx, w.Notices(listeners))
}

// withdraw takes back what reminds or escalates and was not sent.
func withdraw(ctx context.Context, tx *sql.Tx, incidentID string) error {
	_, err := tx.ExecContext(ctx, `
		DELETE FROM notices
		WHERE incident_id = ? AND status = 'waiting' AND kind IN ('reminder', 'escalation')`, incidentID)
	return err
}
