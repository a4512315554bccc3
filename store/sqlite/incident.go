package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rollcallhq/rollcall/store"
)

// incidentList is the name of the list of incidents in its cursors.
const incidentList = "incidents"

// Incidents implements store.Store.
func (db *DB) Incidents(ctx context.Context, f store.IncidentFilter) (store.Page[store.Incident], error) {
	w, err := whereIncidents(f)
	if err != nil {
		return store.Page[store.Incident]{}, err
	}
	limit := store.PageLimit(f.Limit)
	var found []store.Incident
	err = db.read(ctx, "list incidents", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanIncident, `
			SELECT `+incidentColumns+`
			FROM incidents i
			LEFT JOIN endpoints e ON e.id = i.endpoint_id
			`+w.String()+`
			ORDER BY i.started_at DESC, i.id DESC
			LIMIT ?`, append(w.args, limit+1)...)
		return err
	})
	if err != nil {
		return store.Page[store.Incident]{}, err
	}
	return store.PageOf(found, limit, func(i store.Incident) string {
		return store.TimeCursor(incidentList, i.StartedAt, i.ID)
	}), nil
}

func whereIncidents(f store.IncidentFilter) (where, error) {
	var w where
	if f.EndpointID != "" {
		w.and(`i.id IN (
			SELECT id FROM incidents WHERE endpoint_id = ?
			UNION
			SELECT incident_id FROM incident_endpoints WHERE endpoint_id = ?)`, f.EndpointID, f.EndpointID)
	}
	if f.EndpointIDs != nil {
		list, err := jsonText(f.EndpointIDs)
		if err != nil {
			return where{}, err
		}
		w.and(`i.id IN (
			SELECT id FROM incidents WHERE endpoint_id IN (SELECT value FROM json_each(?))
			UNION
			SELECT incident_id FROM incident_endpoints WHERE endpoint_id IN (SELECT value FROM json_each(?)))`, list, list)
	}
	switch f.Status {
	case store.IncidentOpen:
		w.and(`i.resolved_at IS NULL`)
	case store.IncidentResolved:
		w.and(`i.resolved_at IS NOT NULL`)
	}
	if len(f.Kinds) > 0 {
		list, err := jsonText(f.Kinds)
		if err != nil {
			return where{}, err
		}
		w.and(`i.kind IN (SELECT value FROM json_each(?))`, list)
	}
	if f.Subject != "" {
		w.and(`i.subject = ?`, f.Subject)
	}
	if f.PublicOnly {
		w.and(isPublic)
	}
	if !f.Since.IsZero() {
		w.and(`(i.started_at >= ? OR i.resolved_at > ? OR i.resolved_at IS NULL)`, f.Since.UnixMicro(), f.Since.UnixMicro())
	}
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(incidentList, f.Cursor)
		if err != nil {
			return where{}, err
		}
		w.and(`(i.started_at, i.id) < (?, ?)`, at.UnixMicro(), id)
	}
	return w, nil
}

// Incident implements store.Store.
func (db *DB) Incident(ctx context.Context, id string) (store.Incident, error) {
	var i store.Incident
	err := db.read(ctx, "read incident", func(tx *sql.Tx) (err error) {
		i, err = incident(ctx, tx, id)
		return err
	})
	return i, err
}

func incident(ctx context.Context, tx *sql.Tx, id string) (store.Incident, error) {
	i, err := scanIncident(tx.QueryRowContext(ctx, selectIncident+`WHERE i.id = ?`, id))
	return i, notFound(err)
}

const selectIncident = `
	SELECT ` + incidentColumns + `
	FROM incidents i
	LEFT JOIN endpoints e ON e.id = i.endpoint_id
	`

// isPublic holds for incidents i, of endpoints e, that the built-in status page shows; see store.Incident.Public.
const isPublic = `
	COALESCE(e.public, i.kind = 'manual' AND NOT i.names_endpoints OR i.kind IN ('manual', 'chain') AND EXISTS (
	    SELECT 1
	    FROM incident_endpoints pm
	    JOIN endpoints pe ON pe.id = pm.endpoint_id
	    WHERE pm.incident_id = i.id AND pe.public AND (pm.left_at IS NULL OR i.resolved_at IS NOT NULL)
	))`

// incidentColumns are what incidentDest takes, of incidents i and endpoints e, which need not be there.
const incidentColumns = `
	i.id, i.kind, i.subject, COALESCE(i.endpoint_id, ''), COALESCE(e.slug, ''), COALESCE(e.name, ''), ` + isPublic + `,
	(
	    SELECT json_group_array(m.endpoint_id ORDER BY m.endpoint_id)
	    FROM incident_endpoints m
	    WHERE m.incident_id = i.id AND (m.left_at IS NULL OR i.resolved_at IS NOT NULL)
	),
	i.title, i.severity, i.worst, i.started_at, i.opened_at, i.resolved_at, COALESCE(i.resolution, ''),
	i.cause_step, i.cause_class, i.cause_code, i.cause_message, i.check_id, i.seen_from, i.flapping,
	i.acknowledged_at, i.acknowledged_by, i.snoozed_until, i.names_endpoints`

// incidentDest returns where the incidentColumns go.
func incidentDest(i *store.Incident) []any {
	return []any{
		&i.ID, &i.Kind, &i.Subject, &i.EndpointID, &i.Slug, &i.Name, &i.Public, textsInto{&i.Endpoints},
		&i.Title, &i.Severity, &i.Worst, timeInto{&i.StartedAt}, timeInto{&i.OpenedAt}, timeOrNil{&i.ResolvedAt}, &i.Resolution,
		&i.Cause.Step, &i.Cause.Class, &i.Cause.Code, &i.Cause.Message, &i.CheckID, textsInto{&i.SeenFrom}, &i.Flapping,
		timeOrNil{&i.AcknowledgedAt}, &i.AcknowledgedBy, timeOrNil{&i.SnoozedUntil}, &i.NamesEndpoints,
	}
}

func scanIncident(row scanner) (store.Incident, error) {
	var i store.Incident
	err := row.Scan(incidentDest(&i)...)
	return i, err
}

// toldColumn are the channels of the team that were told of an incident i, or are to be.
const toldColumn = `
	(
	    SELECT json_group_array(DISTINCT n.channel_id)
	    FROM notices n
	    JOIN channels c ON c.id = n.channel_id AND c.audience = 'team'
	    WHERE n.incident_id = i.id AND (n.kind = 'opened' OR n.kind = 'escalation' AND n.status = 'sent')
	)`

// scanJudged scans an incident with who was told of it.
func scanJudged(row scanner) (store.Incident, error) {
	var i store.Incident
	err := row.Scan(append(incidentDest(&i), textsInto{&i.Told})...)
	return i, err
}

// judgedIncident returns the incident that the rest of a query selects, with who was told of it; sql.ErrNoRows when there is none.
func judgedIncident(ctx context.Context, tx *sql.Tx, rest string, args ...any) (store.Incident, error) {
	return scanJudged(tx.QueryRowContext(ctx, `
		SELECT `+incidentColumns+`, `+toldColumn+`
		FROM incidents i
		LEFT JOIN endpoints e ON e.id = i.endpoint_id
		`+rest, args...))
}

// openOf returns the open incident of a subject, nil when there is none.
func openOf(ctx context.Context, tx *sql.Tx, subject string) (*store.Incident, error) {
	i, err := judgedIncident(ctx, tx, `WHERE i.subject = ? AND i.resolved_at IS NULL`, subject)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &i, nil
}

// openIncidents returns the open incidents that endpoints are in, by endpoint id.
func openIncidents(ctx context.Context, tx *sql.Tx, endpointIDs []string) (map[string][]store.Incident, error) {
	list, err := jsonText(endpointIDs)
	if err != nil {
		return nil, err
	}
	type member struct {
		endpointID string
		store.Incident
	}
	scan := func(row scanner) (m member, err error) {
		err = row.Scan(append(append([]any{&m.endpointID}, incidentDest(&m.Incident)...), textsInto{&m.Told})...)
		return m, err
	}
	// CROSS JOIN keeps the order: a look into the indexes for each endpoint.
	found, err := query(ctx, tx, scan, `
		WITH members (endpoint_id, incident_id) AS (
		    SELECT id.value, i.id
		    FROM json_each(?1) id
		    CROSS JOIN incidents i ON i.endpoint_id = id.value AND i.resolved_at IS NULL
		    UNION
		    SELECT id.value, m.incident_id
		    FROM json_each(?1) id
		    CROSS JOIN incident_endpoints m ON m.endpoint_id = id.value AND m.left_at IS NULL
		)
		SELECT members.endpoint_id, `+incidentColumns+`, `+toldColumn+`
		FROM members
		CROSS JOIN incidents i ON i.id = members.incident_id AND i.resolved_at IS NULL
		LEFT JOIN endpoints e ON e.id = i.endpoint_id
		ORDER BY i.id`, list)
	if err != nil {
		return nil, err
	}
	open := map[string][]store.Incident{}
	for _, m := range found {
		open[m.endpointID] = append(open[m.endpointID], m.Incident)
	}
	return open, nil
}

// stand puts the open incidents of an endpoint where its standing has them. Those that somebody raised by hand are judged by
// nobody.
func stand(s *store.Standing, open []store.Incident) {
	for _, i := range open {
		switch i.Kind {
		case store.IncidentEndpoint:
			s.Open = &i
		case store.IncidentManual, store.IncidentLocation:
		default:
			s.Others = append(s.Others, i)
		}
	}
}

func insertIncident(ctx context.Context, tx *sql.Tx, i store.Incident) error {
	seenFrom, err := jsonText(append([]string{}, i.SeenFrom...))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO incidents (
		    id, kind, subject, endpoint_id, title, severity, worst, started_at, opened_at, resolved_at, resolution,
		    cause_step, cause_class, cause_code, cause_message, check_id, seen_from, flapping,
		    names_endpoints
		) VALUES (?, ?, ?, NULLIF(?, ''), ?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?, ?, ?, ?, ?, ?, ?, ?)`,
		i.ID, i.Kind, i.Subject, i.EndpointID, i.Title, i.Severity, i.Worst, i.StartedAt.UnixMicro(), i.OpenedAt.UnixMicro(),
		microsOrNil(i.ResolvedAt), string(i.Resolution), i.Cause.Step, i.Cause.Class, i.Cause.Code, i.Cause.Message, i.CheckID,
		seenFrom, i.Flapping, i.NamesEndpoints)
	return err
}

// updateIncident keeps what the rule owns of an incident. What people did about it is not the rule's.
func updateIncident(ctx context.Context, tx *sql.Tx, i store.Incident) error {
	seenFrom, err := jsonText(append([]string{}, i.SeenFrom...))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE incidents
		SET title = ?, severity = ?, worst = ?, resolved_at = ?, resolution = NULLIF(?, ''), cause_step = ?, cause_class = ?,
		    cause_code = ?, cause_message = ?, seen_from = ?, flapping = ?
		WHERE id = ?`,
		i.Title, i.Severity, i.Worst, microsOrNil(i.ResolvedAt), string(i.Resolution), i.Cause.Step, i.Cause.Class, i.Cause.Code,
		i.Cause.Message, seenFrom, i.Flapping, i.ID)
	return err
}

// detach keeps the incidents of an endpoint that goes of which somebody may have heard and is to hear more. They have its name as
// their title.
func detach(ctx context.Context, tx *sql.Tx, e store.Endpoint) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE incidents
		SET endpoint_id = NULL, title = ?
		WHERE endpoint_id = ? AND EXISTS (
		    SELECT 1 FROM notices n WHERE n.incident_id = incidents.id AND n.status = 'waiting'
		) AND EXISTS (
		    SELECT 1
		    FROM notices h
		    WHERE h.incident_id = incidents.id AND (h.status <> 'waiting' OR h.attempts > 0 OR h.lease_id IS NOT NULL)
		)`, e.Name, e.ID)
	return err
}

// joinIncident has endpoints come into an incident, also those that left it.
func joinIncident(ctx context.Context, tx *sql.Tx, incidentID string, endpointIDs []string, at int64) error {
	var args [][]any
	for _, id := range endpointIDs {
		args = append(args, []any{incidentID, id, at})
	}
	return execEach(ctx, tx, `
		INSERT INTO incident_endpoints (incident_id, endpoint_id, joined_at)
		VALUES (?, ?, ?)
		ON CONFLICT (incident_id, endpoint_id) DO UPDATE SET left_at = NULL`, args)
}

// endpointsOf returns the endpoints that an incident is about, without headers and options; none when it is about none.
func endpointsOf(ctx context.Context, tx *sql.Tx, i store.Incident) ([]store.Endpoint, error) {
	ids := i.Endpoints
	if i.EndpointID != "" {
		ids = append([]string{i.EndpointID}, ids...)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	return query(ctx, tx, scanBare, `
		SELECT `+endpointColumns+`
		FROM endpoints e
		WHERE e.id IN (SELECT value FROM json_each(?))
		ORDER BY e.id`, list)
}
