package sqlite

import (
	"context"
	"database/sql"

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
			JOIN endpoints e ON e.id = i.endpoint_id
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
		i, err = scanIncident(tx.QueryRowContext(ctx, `
			SELECT `+incidentColumns+`
			FROM incidents i
			JOIN endpoints e ON e.id = i.endpoint_id
			WHERE i.id = ?`, id))
		return notFound(err)
	})
	return i, err
}

// incidentColumns are what incidentRow scans, of incidents i and endpoints e.
const incidentColumns = `
	i.id, i.endpoint_id, e.slug, e.name, e.public, i.severity, i.started_at, i.opened_at, i.resolved_at,
	COALESCE(i.resolution, ''), i.cause_step, i.cause_class, i.cause_code, i.cause_message`

// incidentDest returns where the incidentColumns go.
func incidentDest(i *store.Incident) []any {
	return []any{
		&i.ID, &i.EndpointID, &i.Slug, &i.Name, &i.Public, &i.Severity, timeInto{&i.StartedAt}, timeInto{&i.OpenedAt},
		timeOrNil{&i.ResolvedAt}, &i.Resolution, &i.Cause.Step, &i.Cause.Class, &i.Cause.Code, &i.Cause.Message,
	}
}

func scanIncident(row scanner) (store.Incident, error) {
	var i store.Incident
	err := row.Scan(incidentDest(&i)...)
	return i, err
}

// openIncidents returns the open incidents of the endpoints, by endpoint id.
func openIncidents(ctx context.Context, tx *sql.Tx, endpointIDs []string) (map[string]*store.Incident, error) {
	list, err := jsonText(endpointIDs)
	if err != nil {
		return nil, err
	}
	scan := func(row scanner) (i store.Incident, err error) {
		err = row.Scan(append(incidentDest(&i), jsonInto{&i.Told})...)
		return i, err
	}
	found, err := query(ctx, tx, scan, `
		SELECT `+incidentColumns+`,
		    (SELECT json_group_array(n.channel_id) FROM notices n WHERE n.incident_id = i.id AND n.kind = 'opened')
		FROM incidents i
		JOIN endpoints e ON e.id = i.endpoint_id
		WHERE i.endpoint_id IN (SELECT value FROM json_each(?)) AND i.resolved_at IS NULL`, list)
	if err != nil {
		return nil, err
	}
	open := make(map[string]*store.Incident, len(found))
	for i := range found {
		open[found[i].EndpointID] = &found[i]
	}
	return open, nil
}

func insertIncidents(ctx context.Context, tx *sql.Tx, incidents []store.Incident) error {
	var args [][]any
	for _, i := range incidents {
		args = append(args, []any{
			i.ID, i.EndpointID, i.Severity, i.StartedAt.UnixMicro(), i.OpenedAt.UnixMicro(), microsOrNil(i.ResolvedAt),
			string(i.Resolution), i.Cause.Step, i.Cause.Class, i.Cause.Code, i.Cause.Message,
		})
	}
	return execEach(ctx, tx, `
		INSERT INTO incidents (
		    id, endpoint_id, severity, started_at, opened_at, resolved_at, resolution,
		    cause_step, cause_class, cause_code, cause_message
		) VALUES (?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?, ?, ?, ?)`, args)
}

func resolveIncidents(ctx context.Context, tx *sql.Tx, incidents []store.Incident) error {
	var args [][]any
	for _, i := range incidents {
		args = append(args, []any{microsOrNil(i.ResolvedAt), string(i.Resolution), i.ID})
	}
	return execEach(ctx, tx, `UPDATE incidents SET resolved_at = ?, resolution = ? WHERE id = ?`, args)
}
