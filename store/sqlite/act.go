package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Act implements store.Store.
func (db *DB) Act(ctx context.Context, incidentID string, a store.Act) (store.Incident, error) {
	if err := a.Validate(); err != nil {
		return store.Incident{}, err
	}
	var after store.Incident
	err := db.write(ctx, "act on incident", func(tx *sql.Tx) error {
		before, err := judgedIncident(ctx, tx, `WHERE i.id = ?`, incidentID)
		if err != nil {
			return notFound(err)
		}
		acted, err := before.Take(a)
		if err != nil {
			return err
		}
		if a.Kind == store.ActReopen {
			if err := checkReopen(ctx, tx, before); err != nil {
				return err
			}
		}
		if err := writeActed(ctx, tx, acted); err != nil {
			return err
		}
		if err := hush(ctx, tx, a.Kind, acted.Incident); err != nil {
			return err
		}
		if err := tellActed(ctx, tx, acted); err != nil {
			return err
		}
		if after, err = incident(ctx, tx, incidentID); err != nil {
			return err
		}
		return audit(ctx, tx, string(a.Kind), nil, store.AuditAct{Incident: after, Act: a})
	})
	if err != nil {
		return store.Incident{}, err
	}
	return after, nil
}

func checkReopen(ctx context.Context, tx *sql.Tx, i store.Incident) error {
	open, err := openOf(ctx, tx, i.Subject)
	if err != nil || open == nil {
		return err
	}
	return store.Conflict{Field: "act", Message: "comes too late: another incident about the same is open"}
}

func writeActed(ctx context.Context, tx *sql.Tx, acted store.Acted) error {
	i := acted.Incident
	_, err := tx.ExecContext(ctx, `
		UPDATE incidents
		SET resolved_at = ?, resolution = NULLIF(?, ''), acknowledged_at = ?, acknowledged_by = ?, snoozed_until = ?
		WHERE id = ?`,
		microsOrNil(i.ResolvedAt), string(i.Resolution), microsOrNil(i.AcknowledgedAt), i.AcknowledgedBy, microsOrNil(i.SnoozedUntil),
		i.ID)
	if err != nil {
		return err
	}
	if err := insertEntries(ctx, tx, []store.Entry{acted.Entry}); err != nil {
		return err
	}
	if acted.Withdraw {
		if err := withdraw(ctx, tx, i.ID); err != nil {
			return err
		}
	}
	if acted.Defer.IsZero() {
		return nil
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE notices
		SET due_at = MAX(due_at, ?)
		WHERE incident_id = ? AND status = 'waiting' AND kind IN ('reminder', 'escalation')`, acted.Defer.UnixMicro(), i.ID)
	return err
}

// hush has an endpoint that is not up open no incident because somebody declared the one that it had over, or no longer so.
func hush(ctx context.Context, tx *sql.Tx, kind store.ActKind, i store.Incident) error {
	if i.Kind != store.IncidentEndpoint {
		return nil
	}
	switch kind {
	case store.ActResolve:
		text, err := jsonText(store.Hushed{IncidentID: i.ID, Severity: i.Severity})
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			UPDATE endpoint_states
			SET version = version + 1, hushed = ?
			WHERE endpoint_id = ? AND status <> 'up'`, text, i.EndpointID)
		return err
	case store.ActReopen:
		_, err := tx.ExecContext(ctx, `
			UPDATE endpoint_states
			SET version = version + 1, hushed = NULL
			WHERE endpoint_id = ? AND hushed IS NOT NULL`, i.EndpointID)
		return err
	}
	return nil
}

// tellActed tells who was told of the opening, and those who have subscribed.
func tellActed(ctx context.Context, tx *sql.Tx, acted store.Acted) error {
	about, err := endpointsOf(ctx, tx, acted.Incident)
	if err != nil {
		return err
	}
	if err := insertNotices(ctx, tx, acted.Notices(about)); err != nil {
		return err
	}
	return tell(ctx, tx, acted.Telling(about))
}

// Raise implements store.Store.
func (db *DB) Raise(
	ctx context.Context, i store.Incident, author, text string, channels []string,
) (raised store.Incident, opened bool, err error) {
	i, entry, err := store.EnrollIncident(i, author, text, time.Now())
	if err != nil {
		return store.Incident{}, false, err
	}
	err = db.write(ctx, "raise incident", func(tx *sql.Tx) error {
		open, err := openOf(ctx, tx, i.Subject)
		if err != nil {
			return err
		}
		if open != nil {
			raised, err = incident(ctx, tx, open.ID)
			return err
		}
		opened = true
		if err := raise(ctx, tx, i, entry, channels); err != nil {
			return err
		}
		if raised, err = incident(ctx, tx, i.ID); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, raised)
	})
	if err != nil {
		return store.Incident{}, false, err
	}
	return raised, opened, nil
}

func raise(ctx context.Context, tx *sql.Tx, i store.Incident, entry store.Entry, channels []string) error {
	about, err := endpointsOf(ctx, tx, i)
	if err != nil {
		return err
	}
	if err := checkAbout(i, about); err != nil {
		return err
	}
	if err := insertIncident(ctx, tx, i); err != nil {
		return err
	}
	if err := joinIncident(ctx, tx, i.ID, i.Endpoints, i.OpenedAt.UnixMicro()); err != nil {
		return err
	}
	if err := insertEntries(ctx, tx, []store.Entry{entry}); err != nil {
		return err
	}
	notices := store.NoticesOf(i, store.NoticeOpened, channels, entry.At)
	for k := range notices {
		notices[k].EntryID = entry.ID
	}
	if err := insertNotices(ctx, tx, notices); err != nil || i.Kind != store.IncidentManual {
		return err
	}
	return tell(ctx, tx, store.Telling{
		Incident: i, Endpoints: about, Kind: store.NoticeOpened, Told: true, EntryID: entry.ID, At: entry.At,
	})
}

// checkAbout returns an Invalid unless all the endpoints of an incident are there.
func checkAbout(i store.Incident, about []store.Endpoint) error {
	there := func(id string) bool {
		return slices.ContainsFunc(about, func(e store.Endpoint) bool { return e.ID == id })
	}
	var problems []probe.Problem
	if i.EndpointID != "" && !there(i.EndpointID) {
		problems = append(problems, probe.Problem{Field: "endpoint", Message: "is not there"})
	}
	for k, id := range i.Endpoints {
		if !there(id) {
			problems = append(problems, probe.Problem{Field: fmt.Sprintf("endpoints[%d]", k), Message: "is not there"})
		}
	}
	if len(problems) > 0 {
		return store.Invalid{Problems: problems}
	}
	return nil
}

// Clear implements store.Store.
func (db *DB) Clear(
	ctx context.Context, subject string, at time.Time, how store.Resolution, text string,
) (cleared store.Incident, err error) {
	err = db.write(ctx, "clear incident", func(tx *sql.Tx) error {
		open, err := judgedIncident(ctx, tx, `WHERE i.subject = ? AND i.resolved_at IS NULL`, subject)
		if errors.Is(err, sql.ErrNoRows) {
			return store.ErrNotFound
		}
		if err != nil {
			return err
		}
		if err := clearIncident(ctx, tx, open, store.Stamp(at), how, text); err != nil {
			return err
		}
		if cleared, err = incident(ctx, tx, open.ID); err != nil {
			return err
		}
		return audit(ctx, tx, "clear", nil, cleared)
	})
	if err != nil {
		return store.Incident{}, err
	}
	return cleared, nil
}

func clearIncident(ctx context.Context, tx *sql.Tx, open store.Incident, at time.Time, how store.Resolution, text string) error {
	i := *store.Resolve(open, at, at, how)
	entry := store.Entry{
		ID: store.NewID("ent"), IncidentID: i.ID, At: at, Kind: store.EntryResolved, Text: store.CleanText(text),
		Public: i.Kind == store.IncidentManual,
	}
	acted := store.Acted{Incident: i, Entry: entry, Kind: store.NoticeResolved, Withdraw: true}
	if err := writeActed(ctx, tx, acted); err != nil {
		return err
	}
	return tellActed(ctx, tx, acted)
}
