package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

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
	text := `
		SELECT ` + incidentColumns + `
		FROM incidents i
		LEFT JOIN endpoints e ON e.id = i.endpoint_id
		` + w.String() + `
		ORDER BY i.started_at DESC, i.id DESC
		LIMIT ` + w.arg(limit+1)
	found, err := query(ctx, db.pool, scanIncident, text, w.args...)
	if err != nil {
		return store.Page[store.Incident]{}, explain("list incidents", err)
	}
	return store.PageOf(found, limit, func(i store.Incident) string {
		return store.TimeCursor(incidentList, i.StartedAt, i.ID)
	}), nil
}

func whereIncidents(f store.IncidentFilter) (where, error) {
	var w where
	if f.EndpointID != "" {
		// An array, because an index can be asked for what is in one together with what is beside it.
		w.and(`(i.endpoint_id = ? OR i.id = ANY (ARRAY (SELECT m.incident_id FROM incident_endpoints m WHERE m.endpoint_id = ?)))`,
			f.EndpointID, f.EndpointID)
	}
	if f.EndpointIDs != nil {
		w.and(`(i.endpoint_id = ANY (?) OR i.id = ANY (ARRAY (SELECT m.incident_id FROM incident_endpoints m WHERE m.endpoint_id = ANY (?))))`,
			f.EndpointIDs, f.EndpointIDs)
	}
	switch f.Status {
	case store.IncidentOpen:
		w.and(`i.resolved_at IS NULL`)
	case store.IncidentResolved:
		w.and(`i.resolved_at IS NOT NULL`)
	}
	if len(f.Kinds) > 0 {
		w.and(`i.kind = ANY (?)`, textsOf(f.Kinds))
	}
	if f.Subject != "" {
		w.and(`i.subject = ?`, f.Subject)
	}
	if f.PublicOnly {
		w.and(publicIncident)
	}
	if !f.Since.IsZero() {
		w.and(`(i.started_at >= ? OR i.resolved_at > ? OR i.resolved_at IS NULL)`, f.Since, f.Since)
	}
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(incidentList, f.Cursor)
		if err != nil {
			return where{}, err
		}
		w.and(`(i.started_at, i.id) < (?, ?)`, at, id)
	}
	return w, nil
}

// textsOf returns words of a type of their own as texts.
func textsOf[T ~string](words []T) []string {
	texts := make([]string, 0, len(words))
	for _, word := range words {
		texts = append(texts, string(word))
	}
	return texts
}

// Incident implements store.Store.
func (db *DB) Incident(ctx context.Context, id string) (store.Incident, error) {
	i, err := readIncident(ctx, db.pool, id)
	return i, explain("read incident", err)
}

func readIncident(ctx context.Context, q querier, id string) (store.Incident, error) {
	return queryOne(ctx, q, scanIncident, `
		SELECT `+incidentColumns+`
		FROM incidents i
		LEFT JOIN endpoints e ON e.id = i.endpoint_id
		WHERE i.id = $1`, id)
}

// publicIncident holds of incidents i that the built-in status page shows, e being their endpoints, which may be missing; see
// store.Incident.Public.
const publicIncident = `
	COALESCE(e.public, i.kind = 'manual' AND NOT i.names_endpoints OR i.kind IN ('manual', 'chain') AND EXISTS (
	    SELECT 1
	    FROM incident_endpoints pm
	    JOIN endpoints pe ON pe.id = pm.endpoint_id
	    WHERE pm.incident_id = i.id AND pe.public AND (pm.left_at IS NULL OR i.resolved_at IS NOT NULL)
	))`

// incidentColumns are what incidentDest takes, of incidents i and endpoints e, which may be missing.
const incidentColumns = `
	i.id, i.kind, i.subject, COALESCE(i.endpoint_id, ''), COALESCE(e.slug, ''), COALESCE(e.name, ''), ` + publicIncident + `,
	NULLIF(ARRAY (
	    SELECT im.endpoint_id::text
	    FROM incident_endpoints im
	    WHERE im.incident_id = i.id AND (im.left_at IS NULL OR i.resolved_at IS NOT NULL)
	    ORDER BY im.endpoint_id
	), '{}'), i.title, i.severity, i.worst, i.started_at, i.opened_at, i.resolved_at, COALESCE(i.resolution, ''),
	i.cause_step, i.cause_class, i.cause_code, i.cause_message, i.check_id, NULLIF(i.seen_from, '{}'), i.flapping,
	i.acknowledged_at, i.acknowledged_by, i.snoozed_until, i.names_endpoints`

// incidentDest returns where the incidentColumns go.
func incidentDest(i *store.Incident) []any {
	return []any{
		&i.ID, &i.Kind, &i.Subject, &i.EndpointID, &i.Slug, &i.Name, &i.Public,
		&i.Endpoints, &i.Title, &i.Severity, &i.Worst, &i.StartedAt, &i.OpenedAt, &i.ResolvedAt, &i.Resolution,
		&i.Cause.Step, &i.Cause.Class, &i.Cause.Code, &i.Cause.Message, &i.CheckID, &i.SeenFrom, &i.Flapping,
		&i.AcknowledgedAt, &i.AcknowledgedBy, &i.SnoozedUntil, &i.NamesEndpoints,
	}
}

func scanIncident(row pgx.CollectableRow) (store.Incident, error) {
	var i store.Incident
	err := row.Scan(incidentDest(&i)...)
	return i, err
}

// toldColumn is who of the team was told of an incident i: of its opening, or by an escalation, be it that one is on its way.
const toldColumn = `
	NULLIF(ARRAY (
	    SELECT DISTINCT tn.channel_id::text
	    FROM notices tn
	    JOIN channels tc ON tc.id = tn.channel_id
	    WHERE tn.incident_id = i.id AND tc.audience = 'team'
	        AND (tn.kind = 'opened' OR tn.kind = 'escalation' AND (tn.status = 'sent' OR tn.lease_id IS NOT NULL))
	    ORDER BY 1
	), '{}')`

// openIncidents selects the open incidents that the endpoints with the ids $1 are in, for scanOpenIncident: once for each endpoint
// and incident. What is said by hand is none of the judge's business.
const openIncidents = `
	SELECT w.whose, ` + incidentColumns + `, ` + toldColumn + `
	FROM (
	    SELECT o.id, o.endpoint_id AS whose
	    FROM incidents o
	    WHERE o.endpoint_id = ANY ($1) AND o.resolved_at IS NULL
	    UNION ALL
	    SELECT m.incident_id, m.endpoint_id
	    FROM incident_endpoints m
	    WHERE m.endpoint_id = ANY ($1) AND m.left_at IS NULL
	) w
	JOIN incidents i ON i.id = w.id
	LEFT JOIN endpoints e ON e.id = i.endpoint_id
	WHERE i.resolved_at IS NULL AND i.kind <> 'manual'
	ORDER BY i.opened_at, i.id`

// openIncident is an open incident and one of the endpoints that are in it.
type openIncident struct {
	whose    string
	incident store.Incident
}

func scanOpenIncident(row pgx.CollectableRow) (o openIncident, err error) {
	err = row.Scan(append(append([]any{&o.whose}, incidentDest(&o.incident)...), &o.incident.Told)...)
	return o, err
}

// toldIncident returns an incident with who was told of it, of those i that a condition selects.
func toldIncident(ctx context.Context, q querier, condition string, args ...any) (store.Incident, error) {
	return queryOne(ctx, q, func(row pgx.CollectableRow) (i store.Incident, err error) {
		err = row.Scan(append(incidentDest(&i), &i.Told)...)
		return i, err
	}, `
		SELECT `+incidentColumns+`, `+toldColumn+`
		FROM incidents i
		LEFT JOIN endpoints e ON e.id = i.endpoint_id
		WHERE `+condition, args...)
}

// detach keeps the incidents of an endpoint that goes of which somebody may have heard and is to hear more. They have its name as
// their title.
func detach(ctx context.Context, tx pgx.Tx, e store.Endpoint) error {
	_, err := tx.Exec(ctx, `
		UPDATE incidents i
		SET endpoint_id = NULL, title = $2
		WHERE i.endpoint_id = $1 AND EXISTS (
		    SELECT 1 FROM notices n WHERE n.incident_id = i.id AND n.status = 'waiting'
		) AND EXISTS (
		    SELECT 1
		    FROM notices h
		    WHERE h.incident_id = i.id AND (h.status <> 'waiting' OR h.attempts > 0 OR h.lease_id IS NOT NULL)
		)`, e.ID, e.Name)
	return err
}

func insertIncident(batch *pgx.Batch, i store.Incident) {
	batch.Queue(`
		INSERT INTO incidents (
		    id, kind, subject, endpoint_id, title, severity, worst, started_at, opened_at, resolved_at, resolution,
		    cause_step, cause_class, cause_code, cause_message, check_id, seen_from, flapping,
		    names_endpoints
		) VALUES ($1, $2, $3, NULLIF($4, ''), $5, $6, $7, $8, $9, $10, NULLIF($11, ''), $12, $13, $14, $15, $16, $17, $18, $19)`,
		i.ID, i.Kind, i.Subject, i.EndpointID, i.Title, i.Severity, worstOf(i), i.StartedAt, i.OpenedAt, i.ResolvedAt, i.Resolution,
		i.Cause.Step, i.Cause.Class, i.Cause.Code, i.Cause.Message, i.CheckID, cleanAll(i.SeenFrom), i.Flapping,
		i.NamesEndpoints)
}

// updateIncident writes what the rule for incidents owns, and leaves what people did about it as it is.
func updateIncident(batch *pgx.Batch, i store.Incident) {
	batch.Queue(`
		UPDATE incidents
		SET title = $2, severity = $3, worst = $4, resolved_at = $5, resolution = NULLIF($6, ''),
		    cause_step = $7, cause_class = $8, cause_code = $9, cause_message = $10, seen_from = $11, flapping = $12
		WHERE id = $1`,
		i.ID, i.Title, i.Severity, worstOf(i), i.ResolvedAt, i.Resolution,
		i.Cause.Step, i.Cause.Class, i.Cause.Code, i.Cause.Message, cleanAll(i.SeenFrom), i.Flapping)
}

func worstOf(i store.Incident) store.Status {
	if i.Worst == "" {
		return i.Severity
	}
	return i.Worst
}

func insertEntries(batch *pgx.Batch, entries []store.Entry) error {
	for _, e := range entries {
		cause, err := failureText(e.Cause)
		if err != nil {
			return err
		}
		batch.Queue(`
			INSERT INTO incident_entries (id, incident_id, at, kind, author, text, public, severity, cause)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::json)`,
			e.ID, e.IncidentID, e.At, e.Kind, e.Author, e.Text, e.Public, e.Severity, cause)
	}
	return nil
}
