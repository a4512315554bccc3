package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// The index comes as one text: to hand over ten thousand rows takes longer than to find them. Neither ids nor JSON hold these.
const (
	indexRow   = "\x1e"
	indexField = "\x1f"
)

// Index implements store.Store.
func (db *DB) Index(ctx context.Context, f store.EndpointFilter, checks bool) ([]store.Line, error) {
	f.Cursor = ""
	w, err := whereEndpoints(f)
	if err != nil {
		return nil, err
	}
	fields := `e.id || char(31) || CASE WHEN e.paused THEN 'paused' ELSE s.status END || char(31) || COALESCE(s.since, '') || char(31) || e.tags`
	from := ``
	if checks {
		fields += ` || char(31) || e.kind || char(31) || COALESCE(p.evidence ->> '$.kind', '') || char(31) || COALESCE(p.last_check_at, '')
			        || char(31) || COALESCE(p.evidence ->> '$.last_ms', '')`
		from = `LEFT JOIN places p ON p.endpoint_id = e.id`
	}
	var text string
	err = db.read(ctx, "read index", func(tx *sql.Tx) error {
		// SQLite keeps the order of a subquery for group_concat: https://www.sqlite.org/src/file/src/select.c
		return tx.QueryRowContext(ctx, `
			SELECT COALESCE(group_concat(line, char(30)), '')
			FROM (
			    SELECT `+fields+` AS line
			    FROM endpoints e
			    JOIN endpoint_states s ON s.endpoint_id = e.id
			    `+from+`
			    `+w.String()+`
			    ORDER BY e.name_key
			)`, w.args...).Scan(&text)
	})
	if err != nil || text == "" {
		return nil, err
	}
	in := indexer{lines: make([]store.Line, 0, strings.Count(text, indexRow)+1), tags: map[string][]string{"[]": nil}}
	for row := range strings.SplitSeq(text, indexRow) {
		if err := in.add(row); err != nil {
			return nil, fmt.Errorf("read index: %w", err)
		}
	}
	return in.lines, nil
}

// indexer gathers an index: with checks, of one row for each place.
type indexer struct {
	lines []store.Line
	tags  map[string][]string // by their JSON: many endpoints have the same
}

func (in *indexer) add(row string) error {
	var field [8]string
	n := 0
	for f := range strings.SplitSeq(row, indexField) {
		if n == len(field) {
			return errors.New("a row has too many fields")
		}
		field[n], n = f, n+1
	}
	if last := len(in.lines) - 1; last < 0 || in.lines[last].ID != field[0] {
		l := store.Line{ID: field[0], Status: store.Status(field[1]), Kind: probe.Kind(field[4])}
		var err error
		if l.Since, err = microsIn(field[2]); err != nil {
			return err
		}
		if l.Tags, err = in.tagsOf(field[3]); err != nil {
			return err
		}
		in.lines = append(in.lines, l)
	}
	at, err := microsIn(field[6])
	if err != nil || at.IsZero() {
		return err
	}
	latency := 0.0
	if field[7] != "" {
		if latency, err = strconv.ParseFloat(field[7], 64); err != nil {
			return err
		}
	}
	in.lines[len(in.lines)-1].AddPlace(probe.Kind(field[5]), at, store.FromMilliseconds(latency))
	return nil
}

func (in *indexer) tagsOf(text string) ([]string, error) {
	tags, known := in.tags[text]
	if known {
		return tags, nil
	}
	err := json.Unmarshal([]byte(text), &tags)
	in.tags[text] = tags
	return tags, err
}

// microsIn reads a time that a nullable column keeps; empty is the zero time.
func microsIn(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return fromMicros(v), nil
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
