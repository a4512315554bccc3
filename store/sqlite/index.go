package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Index implements store.Store.
func (db *DB) Index(ctx context.Context, f store.EndpointFilter) ([]store.Line, error) {
	f.Cursor = ""
	w, err := whereEndpoints(f)
	if err != nil {
		return nil, err
	}
	var lines []store.Line
	scan := func(row scanner) (struct{}, error) {
		var l store.Line
		var tags string
		var kind sql.NullString
		var since, checkedAt sql.NullInt64
		var latency sql.NullFloat64
		err := row.Scan(&l.ID, &l.NameKey, &l.Kind, &l.Status, &since, &tags, &kind, &checkedAt, &latency)
		if err != nil {
			return struct{}{}, err
		}
		if n := len(lines); n == 0 || lines[n-1].ID != l.ID { // one row for each place
			if tags != "[]" {
				if err := (jsonInto{&l.Tags}).Scan(tags); err != nil {
					return struct{}{}, err
				}
			}
			l.Since = timeOrZero(since)
			lines = append(lines, l)
		}
		lines[len(lines)-1].AddPlace(probe.Kind(kind.String), timeOrZero(checkedAt), store.FromMilliseconds(latency.Float64))
		return struct{}{}, nil
	}
	err = db.read(ctx, "read index", func(tx *sql.Tx) error {
		_, err := query(ctx, tx, scan, `
			SELECT e.id, e.name_key, e.kind, CASE WHEN e.paused THEN 'paused' ELSE s.status END, s.since, e.tags,
			    p.evidence ->> '$.kind', p.last_check_at, p.evidence ->> '$.last_ms'
			FROM endpoints e
			JOIN endpoint_states s ON s.endpoint_id = e.id
			LEFT JOIN places p ON p.endpoint_id = e.id
			`+w.String()+`
			ORDER BY e.name_key`, w.args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lines, nil
}

// timeOrZero returns the time that a nullable column keeps; NULL is the zero time.
func timeOrZero(v sql.NullInt64) time.Time {
	if !v.Valid {
		return time.Time{}
	}
	return fromMicros(v.Int64)
}

// Locations implements store.Store.
func (db *DB) Locations(ctx context.Context) ([]store.Location, error) {
	scan := func(row scanner) (l store.Location, err error) {
		var lag int64
		err = row.Scan(&l.Name, &l.Endpoints, &l.Recent, timeInto{&l.CheckedAt}, &lag)
		l.Lag = time.Duration(lag) * time.Microsecond
		return l, err
	}
	lately := time.Now().Add(-store.Lately).UnixMicro()
	var found []store.Location
	err := db.read(ctx, "read locations", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scan, `
			SELECT location, COUNT(*), COUNT(*) FILTER (WHERE last_check_at >= ?), MAX(last_check_at),
			    COALESCE(MAX(MAX(0, last_check_at - last_scheduled_at)) FILTER (WHERE last_check_at >= ?), 0)
			FROM places
			GROUP BY location
			ORDER BY location`, lately, lately)
		return err
	})
	return found, err
}
