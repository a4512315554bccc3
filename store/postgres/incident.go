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
		JOIN endpoints e ON e.id = i.endpoint_id
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
		w.and(`i.endpoint_id = ?`, f.EndpointID)
	}
	switch f.Status {
	case store.IncidentOpen:
		w.and(`i.resolved_at IS NULL`)
	case store.IncidentResolved:
		w.and(`i.resolved_at IS NOT NULL`)
	}
	if f.PublicOnly {
		w.and(`e.public`)
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

// Incident implements store.Store.
func (db *DB) Incident(ctx context.Context, id string) (store.Incident, error) {
	i, err := queryOne(ctx, db.pool, scanIncident, `
		SELECT `+incidentColumns+`
		FROM incidents i
		JOIN endpoints e ON e.id = i.endpoint_id
		WHERE i.id = $1`, id)
	return i, explain("read incident", err)
}

// incidentColumns are what incidentDest takes, of incidents i and endpoints e.
const incidentColumns = `
	i.id, i.endpoint_id, e.slug, e.name, e.public, i.severity, i.started_at, i.opened_at, i.resolved_at,
	COALESCE(i.resolution, ''), i.cause_step, i.cause_class, i.cause_code, i.cause_message`

// incidentDest returns where the incidentColumns go.
func incidentDest(i *store.Incident) []any {
	return []any{
		&i.ID, &i.EndpointID, &i.Slug, &i.Name, &i.Public, &i.Severity, &i.StartedAt, &i.OpenedAt, &i.ResolvedAt,
		&i.Resolution, &i.Cause.Step, &i.Cause.Class, &i.Cause.Code, &i.Cause.Message,
	}
}

func scanIncident(row pgx.CollectableRow) (store.Incident, error) {
	var i store.Incident
	err := row.Scan(incidentDest(&i)...)
	return i, err
}

// openIncidents selects the open incidents of the endpoints with the ids $1, at most one each, for scanOpenIncident.
const openIncidents = `
	SELECT ` + incidentColumns + `,
	    ARRAY(SELECT n.channel_id FROM notices n WHERE n.incident_id = i.id AND n.kind = 'opened' ORDER BY n.channel_id)
	FROM incidents i
	JOIN endpoints e ON e.id = i.endpoint_id
	WHERE i.endpoint_id = ANY ($1) AND i.resolved_at IS NULL`

func scanOpenIncident(row pgx.CollectableRow) (store.Incident, error) {
	var i store.Incident
	err := row.Scan(append(incidentDest(&i), &i.Told)...)
	return i, err
}

func insertIncidents(batch *pgx.Batch, incidents []store.Incident) {
	for _, i := range incidents {
		batch.Queue(`
			INSERT INTO incidents (
			    id, endpoint_id, severity, started_at, opened_at, resolved_at, resolution,
			    cause_step, cause_class, cause_code, cause_message
			) VALUES ($1, $2, $3, $4, $5, $6, NULLIF($7, ''), $8, $9, $10, $11)`,
			i.ID, i.EndpointID, i.Severity, i.StartedAt, i.OpenedAt, i.ResolvedAt, i.Resolution,
			i.Cause.Step, i.Cause.Class, i.Cause.Code, i.Cause.Message)
	}
}

func resolveIncidents(batch *pgx.Batch, incidents []store.Incident) {
	for _, i := range incidents {
		batch.Queue(`UPDATE incidents SET resolved_at = $2, resolution = $3 WHERE id = $1`, i.ID, i.ResolvedAt, i.Resolution)
	}
}
