package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// splitTurns sorts turns: shared are those of incidents that several endpoints may be in, plain all others.
func splitTurns(turns []store.Turn) (plain, shared []store.Turn) {
	for _, t := range turns {
		if t.Incident.Kind.Shared() {
			shared = append(shared, t)
		} else {
			plain = append(plain, t)
		}
	}
	return plain, shared
}

// queueTurns has the turns of incidents written that are of one endpoint each. audience is who has subscribed.
func queueTurns(batch *pgx.Batch, turns []store.Turn, audience *audience) error {
	for _, t := range turns {
		if t.Opens {
			insertIncident(batch, t.Incident)
		} else {
			updateIncident(batch, t.Incident)
		}
		if err := queueCourse(batch, t, audience.tell(store.TellingOf(t, audience.about(t.EndpointID)))); err != nil {
			return err
		}
	}
	return nil
}

// queueCourse has written what a turn says and tells, beside its incident.
func queueCourse(batch *pgx.Batch, t store.Turn, told []store.Notice) error {
	if err := insertEntries(batch, t.Entries); err != nil {
		return err
	}
	if t.Withdraw || t.Incident.ResolvedAt != nil {
		withdraw(batch, t.Incident.ID)
	}
	insertNotices(batch, slices.Concat(t.Notices, told))
	return nil
}

// withdraw takes back what reminds and escalates, but for what somebody is about to send, or has sent without saying so yet: who
// hears that has to hear the end as well. It waits for nobody who has a notice in hand and may want a place.
func withdraw(batch *pgx.Batch, incidentID string) {
	batch.Queue(`
		DELETE FROM notices
		WHERE id IN (
		    SELECT id
		    FROM notices
		    WHERE incident_id = $1 AND kind IN ('reminder', 'escalation') AND status = 'waiting' AND lease_id IS NULL
		    FOR UPDATE SKIP LOCKED
		)`, incidentID)
}

// writeShared writes a turn of an incident that several endpoints may be in: who comes first opens it, who leaves last ends it.
// Whoever writes to such an incident locks its subject first.
func writeShared(ctx context.Context, tx pgx.Tx, t store.Turn) error {
	if err := lockSubject(ctx, tx, t.Incident.Subject); err != nil {
		return err
	}
	open, err := toldIncident(ctx, tx, `i.subject = $1 AND i.resolved_at IS NULL`, t.Incident.Subject)
	there := err == nil
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	in := slices.Contains(open.Endpoints, t.EndpointID)
	switch {
	case t.Opens && !there:
		return openShared(ctx, tx, t)
	case t.Opens && !in:
		return joinShared(ctx, tx, t, open)
	case t.Leaves && there && in:
		return leaveShared(ctx, tx, t, open)
	case t.Opens, t.Leaves:
		return nil // it is in, or out, already
	case !there:
		return nil // it was over before this was known
	}
	t = t.Of(open)
	var batch pgx.Batch
	updateIncident(&batch, t.Incident)
	return tellCourse(ctx, tx, &batch, t, open.Endpoints)
}

// tellCourse sends the batch, with what a turn says and tells in it, and who has subscribed is told what concerns the endpoints.
func tellCourse(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, t store.Turn, endpoints []string) error {
	audience, err := readAudience(ctx, tx, t.Tells != "", endpoints, []string{t.Incident.ID})
	if err != nil {
		return err
	}
	if err := queueCourse(batch, t, audience.tell(store.TellingOf(t, audience.about(endpoints...)))); err != nil {
		return err
	}
	return send(ctx, tx, batch)
}

func openShared(ctx context.Context, tx pgx.Tx, t store.Turn) error {
	var batch pgx.Batch
	insertIncident(&batch, t.Incident)
	queueJoin(&batch, t)
	return tellCourse(ctx, tx, &batch, t, []string{t.EndpointID})
}

func queueJoin(batch *pgx.Batch, t store.Turn) {
	batch.Queue(`
		INSERT INTO incident_endpoints (incident_id, endpoint_id, joined_at)
		VALUES ($1, $2, $3)
		ON CONFLICT (incident_id, endpoint_id) DO UPDATE SET left_at = NULL`, t.Incident.ID, t.EndpointID, t.At)
}

func joinShared(ctx context.Context, tx pgx.Tx, t store.Turn, open store.Incident) error {
	name, err := endpointName(ctx, tx, t.EndpointID)
	if err != nil {
		return err
	}
	// What is to remind or to escalate is there from who came first.
	ahead, err := query(ctx, tx, pgx.RowTo[string], `
		SELECT DISTINCT kind || ' ' || channel_id
		FROM notices
		WHERE incident_id = $1 AND kind IN ('reminder', 'escalation')`, open.ID)
	if err != nil {
		return err
	}
	t = t.Joined(open, name)
	t.Notices = slices.DeleteFunc(t.Notices, func(n store.Notice) bool {
		return n.Kind.Ahead() && slices.Contains(ahead, string(n.Kind)+" "+n.ChannelID)
	})
	var batch pgx.Batch
	queueJoin(&batch, t)
	return tellCourse(ctx, tx, &batch, t, []string{t.EndpointID})
}

func leaveShared(ctx context.Context, tx pgx.Tx, t store.Turn, open store.Incident) error {
	name, err := endpointName(ctx, tx, t.EndpointID)
	if err != nil {
		return err
	}
	last := len(open.Endpoints) == 1
	t = t.Left(open, name, last)
	_, err = tx.Exec(ctx, `UPDATE incident_endpoints SET left_at = $3 WHERE incident_id = $1 AND endpoint_id = $2`,
		open.ID, t.EndpointID, t.At)
	if err != nil {
		return err
	}
	var batch pgx.Batch
	if last {
		updateIncident(&batch, t.Incident)
	}
	all, err := query(ctx, tx, pgx.RowTo[string], `SELECT endpoint_id FROM incident_endpoints WHERE incident_id = $1`, open.ID)
	if err != nil {
		return err
	}
	return tellCourse(ctx, tx, &batch, t, all)
}

func endpointName(ctx context.Context, tx pgx.Tx, id string) (name string, err error) {
	err = tx.QueryRow(ctx, `SELECT name FROM endpoints WHERE id = $1`, id).Scan(&name)
	return name, err
}

// lockSubject keeps others from writing to the incidents of a subject until the transaction ends.
func lockSubject(ctx context.Context, tx pgx.Tx, subject string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, hashtext($2))`, int32(lockSubjects), subject)
	return err
}

// audience is who may be told of incidents beside the channels of endpoints, and what they go by. One that was not read tells
// nobody.
type audience struct {
	subscriptions []store.Subscription         // those that are confirmed
	pages         map[string]*store.StatusPage // that they are of, by id
	endpoints     map[string]store.Endpoint    // by id, with what subscriptions look at
	heard         map[string]map[string]bool   // of the opening: by incident and channel
}

// readAudience reads who has subscribed, and what they heard of incidents. It reads nothing unless it is wanted.
func readAudience(ctx context.Context, q sender, wanted bool, endpointIDs, incidentIDs []string) (*audience, error) {
	if !wanted {
		return nil, nil
	}
	a := &audience{pages: map[string]*store.StatusPage{}, endpoints: map[string]store.Endpoint{}, heard: map[string]map[string]bool{}}
	var batch pgx.Batch
	batch.Queue(`
		SELECT ` + subscriptionColumns + `
		FROM subscriptions s
		WHERE s.confirmed_at IS NOT NULL
		ORDER BY s.id`).Query(func(rows pgx.Rows) (err error) {
		a.subscriptions, err = collect(rows, scanBareSubscription)
		return err
	})
	batch.Queue(`
		SELECT ` + statusPageColumns + `, NULL::bytea
		FROM status_pages p
		WHERE p.id IN (SELECT page_id FROM subscriptions WHERE page_id IS NOT NULL)`).
		Query(func(rows pgx.Rows) error {
			found, err := collect(rows, scanStatusPage)
			for _, p := range found {
				a.pages[p.ID] = &p
			}
			return err
		})
	batch.Queue(`
		SELECT id, public, tags, alerting
		FROM endpoints
		WHERE id = ANY ($1)`, endpointIDs).Query(func(rows pgx.Rows) error {
		found, err := collect(rows, func(row pgx.CollectableRow) (e store.Endpoint, err error) {
			err = row.Scan(&e.ID, &e.Public, &e.Tags, &e.Alerting)
			return e, err
		})
		for _, e := range found {
			a.endpoints[e.ID] = e
		}
		return err
	})
	batch.Queue(`
		SELECT n.incident_id, n.channel_id
		FROM notices n
		WHERE n.incident_id = ANY ($1) AND n.kind = 'opened'`, incidentIDs).Query(func(rows pgx.Rows) error {
		var incidentID, channelID string
		_, err := pgx.ForEachRow(rows, []any{&incidentID, &channelID}, func() error {
			a.note(incidentID, channelID)
			return nil
		})
		return err
	})
	return a, q.SendBatch(ctx, &batch).Close()
}

func (a *audience) note(incidentID, channelID string) {
	if a.heard[incidentID] == nil {
		a.heard[incidentID] = map[string]bool{}
	}
	a.heard[incidentID][channelID] = true
}

// about returns those of the endpoints that are there.
func (a *audience) about(ids ...string) []store.Endpoint {
	if a == nil {
		return nil
	}
	var list []store.Endpoint
	for _, id := range ids {
		if e, ok := a.endpoints[id]; ok {
			list = append(list, e)
		}
	}
	return list
}

// tell returns the notices for those who have subscribed, who have then heard of it.
func (a *audience) tell(t store.Telling) []store.Notice {
	if a == nil {
		return nil
	}
	listeners := make([]store.Listener, 0, len(a.subscriptions))
	for _, s := range a.subscriptions {
		listeners = append(listeners, store.Listener{Subscription: s, Page: a.pages[s.PageID], Heard: a.heard[t.Incident.ID][s.ID]})
	}
	notices := t.Notices(listeners)
	for _, n := range notices {
		if n.Kind == store.NoticeOpened {
			a.note(n.IncidentID, n.ChannelID)
		}
	}
	return notices
}

// audienceOf reads who may be told of the turns.
func audienceOf(ctx context.Context, q sender, turns []store.Turn) (*audience, error) {
	var endpointIDs, incidentIDs []string
	wanted := false
	for _, t := range turns {
		wanted = wanted || t.Tells != ""
		endpointIDs, incidentIDs = append(endpointIDs, t.EndpointID), append(incidentIDs, t.Incident.ID)
	}
	return readAudience(ctx, q, wanted, endpointIDs, incidentIDs)
}

// writeTurns writes turns within a transaction.
func writeTurns(ctx context.Context, tx pgx.Tx, turns []store.Turn) error {
	plain, shared := splitTurns(turns)
	audience, err := audienceOf(ctx, tx, plain)
	if err != nil {
		return err
	}
	var batch pgx.Batch
	if err := queueTurns(&batch, plain, audience); err != nil {
		return err
	}
	if err := send(ctx, tx, &batch); err != nil {
		return err
	}
	for _, t := range shared {
		if err := writeShared(ctx, tx, t); err != nil {
			return err
		}
	}
	return nil
}
