package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Index implements store.Store.
func (db *DB) Index(ctx context.Context, f store.EndpointFilter, checks bool) ([]store.Line, error) {
	f.Cursor = ""
	w, err := whereEndpoints(f)
	if err != nil {
		return nil, err
	}
	var lines []store.Line
	var l store.Line
	var kind probe.Kind
	var since, checkedAt pgtype.Timestamptz
	var latency float64
	columns, from := `e.id, CASE WHEN e.paused THEN 'paused' ELSE s.status END, s.since, e.tags`, ``
	dest := []any{&l.ID, &l.Status, &since, nil} // sharedTags reads the last
	if checks {
		columns += `, e.kind, COALESCE(p.evidence ->> 'kind', ''), p.last_check_at, COALESCE((p.evidence ->> 'last_ms')::float8, 0)`
		from = `LEFT JOIN places p ON p.endpoint_id = e.id`
		dest = append(dest, &l.Kind, &kind, &checkedAt, &latency)
	}
	rows, err := db.pool.Query(ctx, `
		SELECT `+columns+`
		FROM endpoints e
		JOIN endpoint_states s ON s.endpoint_id = e.id
		`+from+`
		`+w.String()+`
		ORDER BY e.name_key`, w.args...)
	if err != nil {
		return nil, explain("read index", err)
	}
	shared := sharedTags{rows: rows, column: 3, known: map[string][]string{}}
	_, err = pgx.ForEachRow(rows, dest, func() error {
		if n := len(lines); n == 0 || lines[n-1].ID != l.ID { // with checks, there is one row for each place
			l.Since = since.Time
			var err error
			if l.Tags, err = shared.read(); err != nil {
				return err
			}
			lines = append(lines, l)
		}
		lines[len(lines)-1].AddPlace(kind, checkedAt.Time, store.FromMilliseconds(latency))
		return nil
	})
	return lines, explain("read index", err)
}

// sharedTags reads a column of tags. Many endpoints have the same, and to read an array takes longer than the rest of a row.
type sharedTags struct {
	rows   pgx.Rows
	column int
	known  map[string][]string // by what the database sent
}

// read returns the tags of the present row, nil where there are none.
func (s sharedTags) read() ([]string, error) {
	sent := s.rows.RawValues()[s.column]
	if tags, known := s.known[string(sent)]; known {
		return tags, nil
	}
	var tags []string
	field := s.rows.FieldDescriptions()[s.column]
	if err := s.rows.Conn().TypeMap().Scan(field.DataTypeOID, field.Format, sent, &tags); err != nil {
		return nil, err
	}
	if len(tags) == 0 {
		tags = nil
	}
	s.known[string(sent)] = tags
	return tags, nil
}

// Locations implements store.Store.
func (db *DB) Locations(ctx context.Context) ([]store.Location, error) {
	var found []store.Location
	err := db.read(ctx, "read locations", func(tx pgx.Tx) (err error) {
		found, err = query(ctx, tx, func(row pgx.CollectableRow) (l store.Location, err error) {
			var checkedAt *time.Time
			var lag float64
			err = row.Scan(&l.Name, &l.Endpoints, &l.Recent, &checkedAt, &lag)
			l.CheckedAt, l.Lag = orZero(checkedAt), time.Duration(lag*float64(time.Second))
			return l, err
		}, `
			SELECT location, COUNT(endpoint_id), COUNT(*) FILTER (WHERE last_check_at >= $1), MAX(last_check_at),
			    COALESCE(EXTRACT(epoch FROM MAX(GREATEST(last_check_at - last_scheduled_at, '0')) FILTER (WHERE last_check_at >= $1)), 0)::float8
			FROM (
			    SELECT location, endpoint_id, last_check_at, last_scheduled_at FROM places
			    UNION ALL
			    SELECT DISTINCT location, NULL, NULL::timestamptz, NULL::timestamptz FROM instances
			) p
			GROUP BY location
			ORDER BY location`, time.Now().Add(-store.Lately))
		if err != nil {
			return err
		}
		return addInstances(ctx, tx, found)
	})
	return found, err
}

// addInstances fills in the instances of each location.
func addInstances(ctx context.Context, tx pgx.Tx, locations []store.Location) error {
	type instance struct {
		location string
		state    store.InstanceState
	}
	scan := func(row pgx.CollectableRow) (i instance, err error) {
		s := &i.state
		err = row.Scan(&i.location, &s.ID, &s.ExpiresAt, &s.Since, &s.Live, &s.Shards)
		return i, err
	}
	found, err := query(ctx, tx, scan, `
		SELECT i.location, i.id, i.expires_at, i.steady_since, i.expires_at > now(), COUNT(l.shard)
		FROM instances i
		LEFT JOIN leases l ON l.location = i.location AND l.owner = i.id AND l.expires_at > now()
		GROUP BY i.location, i.id
		ORDER BY i.location, i.id`)
	if err != nil {
		return err
	}
	for _, i := range found {
		for at := range locations {
			if locations[at].Name == i.location {
				locations[at].Instances = append(locations[at].Instances, i.state)
			}
		}
	}
	return nil
}
