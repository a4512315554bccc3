package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// CreateEndpoint implements store.Store.
func (db *DB) CreateEndpoint(ctx context.Context, e store.Endpoint) (store.Endpoint, error) {
	e, err := store.EnrollEndpoint(e, store.Stamp(time.Now()))
	if err != nil {
		return store.Endpoint{}, err
	}
	err = db.write(ctx, "create endpoint", func(tx *sql.Tx) error {
		if err := checkReferences(ctx, tx, e); err != nil {
			return err
		}
		if err := nameEndpoint(ctx, tx, &e); err != nil {
			return err
		}
		if err := db.insertEndpoint(ctx, tx, e); err != nil {
			return err
		}
		if err := insertState(ctx, tx, e.ID, store.State{Status: store.StatusPending, Since: e.CreatedAt}); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, e)
	})
	if err != nil {
		return store.Endpoint{}, err
	}
	return e.Tidy(), nil
}

// UpdateEndpoint implements store.Store. change must not call the store.
func (db *DB) UpdateEndpoint(ctx context.Context, slug string, change func(*store.Endpoint) error) (store.Endpoint, error) {
	var after store.Endpoint
	err := db.write(ctx, "update endpoint", func(tx *sql.Tx) error {
		standing, err := db.standing(ctx, tx, slug)
		if err != nil {
			return err
		}
		before, at := standing.Endpoint, store.Stamp(time.Now())
		if after, err = store.EditEndpoint(before, change, at); err != nil || !before.Edited(after) {
			return err
		}
		if err := checkReferences(ctx, tx, after); err != nil {
			return err
		}
		if err := checkName(ctx, tx, after); err != nil {
			return err
		}
		if err := db.updateEndpoint(ctx, tx, after); err != nil {
			return err
		}
		amended := store.Amend(&standing, after, at)
		if err := writeAmended(ctx, tx, standing, amended); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditUpdate, before, after)
	})
	if err != nil {
		return store.Endpoint{}, err
	}
	return after.Tidy(), nil
}

// DeleteEndpoint implements store.Store.
func (db *DB) DeleteEndpoint(ctx context.Context, slug string) error {
	return db.write(ctx, "delete endpoint", func(tx *sql.Tx) error {
		standing, err := db.standing(ctx, tx, slug)
		if err != nil {
			return err
		}
		if err := writeTurns(ctx, tx, store.Remove(&standing, time.Now())); err != nil {
			return err
		}
		if err := detach(ctx, tx, standing.Endpoint); err != nil {
			return err
		}
		if err := leaveEndpoint(ctx, tx, standing.Endpoint.ID); err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM endpoints WHERE slug = ?`, slug); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, standing.Endpoint, nil)
	})
}

// Endpoint implements store.Store.
func (db *DB) Endpoint(ctx context.Context, slug string) (store.Overview, error) {
	var found []store.Overview
	err := db.read(ctx, "read endpoint", func(tx *sql.Tx) (err error) {
		found, err = db.overviews(ctx, tx, `WHERE e.slug = ?`, slug)
		return err
	})
	if err != nil {
		return store.Overview{}, err
	}
	if len(found) == 0 {
		return store.Overview{}, store.ErrNotFound
	}
	return found[0], nil
}

// endpointList is the name of the list of endpoints in its cursors.
const endpointList = "endpoints"

// Endpoints implements store.Store.
func (db *DB) Endpoints(ctx context.Context, f store.EndpointFilter) (store.Page[store.Overview], error) {
	w, err := whereEndpoints(f)
	if err != nil {
		return store.Page[store.Overview]{}, err
	}
	limit := f.PageLimit()
	var found []store.Overview
	err = db.read(ctx, "list endpoints", func(tx *sql.Tx) (err error) {
		// Names are unique without regard to case: there are no ties to break by id.
		found, err = db.overviews(ctx, tx, w.String()+` ORDER BY e.name_key LIMIT ?`, append(w.args, limit+1)...)
		return err
	})
	if err != nil {
		return store.Page[store.Overview]{}, err
	}
	return store.PageOf(found, limit, func(o store.Overview) string {
		return store.NameCursor(endpointList, store.Fold(o.Name))
	}), nil
}

func whereEndpoints(f store.EndpointFilter) (where, error) {
	var w where
	switch f.Status {
	case "":
	case store.StatusPaused:
		w.and(`e.paused`)
	default:
		w.and(`NOT e.paused AND s.status = ?`, f.Status)
	}
	if f.Tag != "" {
		w.and(`EXISTS (SELECT 1 FROM json_each(e.tags) t WHERE t.value = ?)`, f.Tag)
	}
	if f.Query != "" {
		w.and(`instr(e.search, ?) > 0`, store.Fold(store.CleanText(f.Query)))
	}
	if f.Name != "" {
		w.and(`e.name_key = ?`, store.Fold(store.CleanText(f.Name)))
	}
	if f.Kind != "" {
		w.and(`(e.kind = ? OR e.kind = ? AND EXISTS (SELECT 1 FROM places p WHERE p.endpoint_id = e.id AND p.evidence ->> '$.kind' = ?))`,
			f.Kind, probe.KindAuto, f.Kind)
	}
	if f.Location != "" {
		w.and(`EXISTS (SELECT 1 FROM places p WHERE p.endpoint_id = e.id AND p.location = ?)`, f.Location)
	}
	if f.PublicOnly {
		w.and(`e.public`)
	}
	if f.IDs != nil {
		list, err := jsonText(f.IDs)
		if err != nil {
			return where{}, err
		}
		w.and(`e.id IN (SELECT value FROM json_each(?))`, list)
	}
	if f.Behind != "" {
		w.and(`e.id IN (SELECT b.endpoint_id FROM endpoint_parents b WHERE b.parent_id = ?)`, f.Behind)
	}
	if f.Slugs != nil {
		list, err := jsonText(f.Slugs)
		if err != nil {
			return where{}, err
		}
		w.and(`e.slug IN (SELECT value FROM json_each(?))`, list)
	}
	if f.Cursor != "" {
		name, err := store.ReadNameCursor(endpointList, f.Cursor)
		if err != nil {
			return where{}, err
		}
		w.and(`e.name_key > ?`, name)
	}
	return w, nil
}

// Roster implements store.Store.
func (db *DB) Roster(ctx context.Context) ([]store.Member, error) {
	scan := func(row scanner) (m store.Member, err error) {
		err = row.Scan(&m.ID, timeInto{&m.UpdatedAt})
		return m, err
	}
	var found []store.Member
	err := db.read(ctx, "read roster", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scan, `SELECT id, updated_at FROM endpoints`)
		return err
	})
	return found, err
}

// endpointColumns are what endpointRow scans, of endpoints e.
const endpointColumns = `
	e.id, e.slug, e.name, e.kind, e.url, e.headers, e.request_method, e.request_params, e.schedule,
	e.timeout_ms, e.degraded_over_ms, e.confirm_failures, e.confirm_successes, e.confirm_after_ms,
	e.public, e.paused, e.tags, e.options, e.contract_notices, e.locations, e.quorum,
	(SELECT json_group_array(ec.channel_id ORDER BY ec.position) FROM endpoint_channels ec WHERE ec.endpoint_id = e.id),
	e.alerting, e.objectives,
	(SELECT json_group_array(ep.parent_id ORDER BY ep.position) FROM endpoint_parents ep WHERE ep.endpoint_id = e.id),
	e.created_at, e.updated_at`

// endpointRow is an endpoint being scanned.
type endpointRow struct {
	e                                   store.Endpoint
	headers, options                    []byte
	timeout, degradedOver, confirmAfter float64
}

func (r *endpointRow) dest() []any {
	e := &r.e
	return []any{
		&e.ID, &e.Slug, &e.Name, &e.Kind, &e.URL, &r.headers, &e.Request.Method, (*[]byte)(&e.Request.Params), &e.Schedule,
		&r.timeout, &r.degradedOver, &e.Confirm.Failures, &e.Confirm.Successes, &r.confirmAfter,
		&e.Public, &e.Paused, jsonInto{&e.Tags}, &r.options, &e.ContractNotices, jsonInto{&e.Locations}, &e.Quorum,
		jsonInto{&e.Channels}, jsonInto{&e.Alerting}, jsonInto{&e.Objectives}, textsInto{&e.DependsOn}, timeInto{&e.CreatedAt}, timeInto{&e.UpdatedAt},
	}
}

// bare returns the endpoint without its headers, options and command.
func (r *endpointRow) bare() store.Endpoint {
	e := r.e
	e.Timeout = store.FromMilliseconds(r.timeout)
	e.DegradedOver = store.FromMilliseconds(r.degradedOver)
	e.Confirm.After = store.FromMilliseconds(r.confirmAfter)
	return e.Tidy()
}

func (r *endpointRow) endpoint(sealer *store.Sealer) (store.Endpoint, error) {
	e := r.bare()
	headers, err := sealer.OpenHeaders(e.ID, r.headers)
	if err != nil {
		return e, err
	}
	e.Headers = headers
	err = sealer.OpenOptions(&e, r.options)
	return e.Tidy(), err
}

// overviews returns the endpoints e, with their states s, that the rest of a query selects.
func (db *DB) overviews(ctx context.Context, tx *sql.Tx, rest string, args ...any) ([]store.Overview, error) {
	scan := func(row scanner) (store.Overview, error) {
		var e endpointRow
		var s stateRow
		if err := row.Scan(slices.Concat(e.dest(), s.dest())...); err != nil {
			return store.Overview{}, err
		}
		endpoint, err := e.endpoint(db.sealer)
		if err != nil {
			return store.Overview{}, err
		}
		state, err := s.state()
		return store.Overview{Endpoint: endpoint, State: state}, err
	}
	found, err := query(ctx, tx, scan, `
		SELECT `+endpointColumns+`, `+stateColumns+`
		FROM endpoints e
		JOIN endpoint_states s ON s.endpoint_id = e.id
		`+rest, args...)
	if err != nil {
		return nil, err
	}
	if err := addPlaces(ctx, tx, found); err != nil {
		return nil, err
	}
	return found, addLastChecks(ctx, tx, found)
}

// addPlaces fills in the places, and what they say in the state.
func addPlaces(ctx context.Context, tx *sql.Tx, overviews []store.Overview) error {
	ids := make([]string, 0, len(overviews))
	for _, o := range overviews {
		ids = append(ids, o.ID)
	}
	places, err := placesOf(ctx, tx, ids, false)
	if err != nil {
		return err
	}
	for i := range overviews {
		o := &overviews[i]
		o.Places = places[o.ID]
		o.State = store.Merged(o.State, o.Places)
	}
	return nil
}

// addLastChecks fills in the last checks that are not pruned.
func addLastChecks(ctx context.Context, tx *sql.Tx, overviews []store.Overview) error {
	slots := make([]store.Slot, 0, len(overviews))
	for _, o := range overviews {
		if slot, ok := lastSlot(o); ok {
			slots = append(slots, slot)
		}
	}
	list, err := jsonText(slots)
	if err != nil {
		return err
	}
	checks, err := query(ctx, tx, scanCheck, `SELECT `+checkColumns+atSlots+` JOIN endpoints e ON e.id = c.endpoint_id`, list)
	if err != nil {
		return err
	}
	byEndpoint := make(map[string]*store.Check, len(checks))
	for i := range checks {
		byEndpoint[checks[i].EndpointID] = &checks[i]
	}
	for i := range overviews {
		overviews[i].LastCheck = byEndpoint[overviews[i].ID]
	}
	return nil
}

// lastSlot returns the slot of the last check of an endpoint, and whether there is one.
func lastSlot(o store.Overview) (store.Slot, bool) {
	for _, p := range o.Places {
		key, ok := store.ParseCheckID(p.State.LastCheckID)
		if ok && p.State.LastCheckID == o.State.LastCheckID {
			return store.Slot{EndpointID: o.ID, Location: p.Location, ScheduledAt: key.ScheduledAt.UnixMicro()}, true
		}
	}
	return store.Slot{}, false
}

// standing returns where an endpoint stands.
func (db *DB) standing(ctx context.Context, tx *sql.Tx, slug string) (store.Standing, error) {
	var e endpointRow
	var s stateRow
	err := tx.QueryRowContext(ctx, `
		SELECT `+endpointColumns+`, `+stateColumns+`
		FROM endpoints e
		JOIN endpoint_states s ON s.endpoint_id = e.id
		WHERE e.slug = ?`, slug).Scan(slices.Concat(e.dest(), s.dest())...)
	if err != nil {
		return store.Standing{}, notFound(err)
	}
	endpoint, err := e.endpoint(db.sealer)
	if err != nil {
		return store.Standing{}, err
	}
	state, err := s.state()
	if err != nil {
		return store.Standing{}, err
	}
	places, err := placesOf(ctx, tx, []string{endpoint.ID}, true)
	if err != nil {
		return store.Standing{}, err
	}
	open, err := openIncidents(ctx, tx, []string{endpoint.ID})
	standing := store.Standing{Endpoint: endpoint, State: state, Places: places[endpoint.ID]}
	stand(&standing, open[endpoint.ID])
	return standing, err
}

// nameEndpoint gives e the name and slug it lacks, and makes sure that those it has are free.
func nameEndpoint(ctx context.Context, tx *sql.Tx, e *store.Endpoint) error {
	if e.Name == "" {
		base := store.CleanText(e.DefaultName())
		taken, err := takenFrom(ctx, tx, `SELECT name_key FROM endpoints WHERE name_key BETWEEN ? AND ?`, store.Fold(base))
		if err != nil {
			return err
		}
		e.Name = store.FirstFree(base, func(name string) bool { return taken[store.Fold(name)] })
	} else if err := checkName(ctx, tx, *e); err != nil {
		return err
	}
	if e.Slug != "" {
		return refuse(ctx, tx, "slug", `SELECT 1 FROM endpoints WHERE slug = ?`, e.Slug)
	}
	base := e.SlugBase()
	taken, err := takenFrom(ctx, tx, `SELECT slug FROM endpoints WHERE slug BETWEEN ? AND ?`, base)
	if err != nil {
		return err
	}
	e.Slug = store.FirstFree(base, func(slug string) bool { return taken[slug] })
	return nil
}

func checkName(ctx context.Context, tx *sql.Tx, e store.Endpoint) error {
	return refuse(ctx, tx, "name", `SELECT 1 FROM endpoints WHERE name_key = ? AND id <> ?`, store.Fold(e.Name), e.ID)
}

// takenFrom returns the texts that begin with base.
func takenFrom(ctx context.Context, tx *sql.Tx, text, base string) (map[string]bool, error) {
	found, err := query(ctx, tx, scanString, text, base, base+"\U0010FFFF")
	return setOf(found), err
}

func setOf(items []string) map[string]bool {
	set := make(map[string]bool, len(items))
	for _, item := range items {
		set[item] = true
	}
	return set
}

// refuse returns a Conflict about field when the query finds a row.
func refuse(ctx context.Context, tx *sql.Tx, field, text string, args ...any) error {
	var one int
	err := tx.QueryRowContext(ctx, text, args...).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return store.Conflict{Field: field, Message: "is taken already: choose another"}
}

// checkReferences returns an Invalid unless the channels and endpoints that e names are there and may be named.
func checkReferences(ctx context.Context, tx *sql.Tx, e store.Endpoint) error {
	channels, err := there(ctx, tx, `SELECT id FROM channels WHERE audience = 'team' AND id IN (SELECT value FROM json_each(?))`,
		append(e.Alerting.Escalates(), e.Channels...))
	if err != nil {
		return err
	}
	if err := store.ChannelProblems(e.Channels, channels); err != nil {
		return err
	}
	if err := store.EscalationProblems(e.Alerting, channels); err != nil || len(e.DependsOn) == 0 {
		return err
	}
	parents, err := there(ctx, tx, `SELECT id FROM endpoints WHERE id IN (SELECT value FROM json_each(?))`, e.DependsOn)
	if err != nil {
		return err
	}
	behind := map[string][]string{}
	scan := func(row scanner) (struct{}, error) {
		var id, parent string
		err := row.Scan(&id, &parent)
		behind[id] = append(behind[id], parent)
		return struct{}{}, err
	}
	if _, err := query(ctx, tx, scan, `SELECT endpoint_id, parent_id FROM endpoint_parents`); err != nil {
		return err
	}
	return store.ParentProblems(e, parents, behind)
}

// there returns which of the ids a query finds.
func there(ctx context.Context, tx *sql.Tx, text string, ids []string) (map[string]bool, error) {
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	found, err := query(ctx, tx, scanString, text, list)
	return setOf(found), err
}

func (db *DB) insertEndpoint(ctx context.Context, tx *sql.Tx, e store.Endpoint) error {
	f, err := db.endpointForms(e)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO endpoints (
		    id, slug, name, name_key, search, kind, url, headers, request_method, request_params, schedule,
		    timeout_ms, degraded_over_ms, confirm_failures, confirm_successes, confirm_after_ms,
		    public, paused, tags, options, contract_notices, locations, quorum, alerting, objectives, created_at, updated_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ID, e.Slug, e.Name, store.Fold(e.Name), e.SearchText(), e.Kind, e.URL, f.headers, e.Request.Method,
		[]byte(e.Request.Params), e.Schedule,
		store.Milliseconds(e.Timeout), store.Milliseconds(e.DegradedOver), e.Confirm.Failures, e.Confirm.Successes,
		store.Milliseconds(e.Confirm.After), e.Public, e.Paused, f.tags, f.options, e.ContractNotices, f.locations, e.Quorum,
		f.alerting, f.objectives, e.CreatedAt.UnixMicro(), e.UpdatedAt.UnixMicro())
	if err != nil {
		return err
	}
	if err := insertChannels(ctx, tx, e); err != nil {
		return err
	}
	return insertParents(ctx, tx, e)
}

func (db *DB) updateEndpoint(ctx context.Context, tx *sql.Tx, e store.Endpoint) error {
	f, err := db.endpointForms(e)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE endpoints
		SET name = ?, name_key = ?, search = ?, kind = ?, url = ?, headers = ?, request_method = ?, request_params = ?,
		    schedule = ?, timeout_ms = ?, degraded_over_ms = ?, confirm_failures = ?, confirm_successes = ?,
		    confirm_after_ms = ?, public = ?, paused = ?, tags = ?, options = ?, contract_notices = ?, locations = ?,
		    quorum = ?, alerting = ?, objectives = ?, updated_at = ?
		WHERE id = ?`,
		e.Name, store.Fold(e.Name), e.SearchText(), e.Kind, e.URL, f.headers, e.Request.Method, []byte(e.Request.Params),
		e.Schedule, store.Milliseconds(e.Timeout), store.Milliseconds(e.DegradedOver), e.Confirm.Failures,
		e.Confirm.Successes, store.Milliseconds(e.Confirm.After), e.Public, e.Paused, f.tags, f.options, e.ContractNotices,
		f.locations, e.Quorum, f.alerting, f.objectives, e.UpdatedAt.UnixMicro(), e.ID)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM endpoint_channels WHERE endpoint_id = ?`, e.ID); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM endpoint_parents WHERE endpoint_id = ?`, e.ID); err != nil {
		return err
	}
	if err := insertChannels(ctx, tx, e); err != nil {
		return err
	}
	return insertParents(ctx, tx, e)
}

// endpointForms are the columns of an endpoint that are not kept as they are.
type endpointForms struct {
	headers, options     []byte
	tags, locations      string
	alerting, objectives string
}

func (db *DB) endpointForms(e store.Endpoint) (f endpointForms, err error) {
	if f.headers, err = db.sealer.SealHeaders(e.ID, e.Headers); err != nil {
		return f, err
	}
	if f.options, err = db.sealer.SealOptions(e); err != nil {
		return f, err
	}
	if f.tags, err = jsonText(append([]string{}, e.Tags...)); err != nil { // an empty array, not null
		return f, err
	}
	if f.locations, err = jsonText(append([]string{}, e.Locations...)); err != nil {
		return f, err
	}
	if f.alerting, err = jsonText(e.Alerting); err != nil {
		return f, err
	}
	f.objectives, err = jsonText(append([]store.Objective{}, e.Objectives...))
	return f, err
}

func insertChannels(ctx context.Context, tx *sql.Tx, e store.Endpoint) error {
	var args [][]any
	for i, channel := range e.Channels {
		args = append(args, []any{e.ID, channel, i})
	}
	return execEach(ctx, tx, `INSERT INTO endpoint_channels (endpoint_id, channel_id, position) VALUES (?, ?, ?)`, args)
}

func insertParents(ctx context.Context, tx *sql.Tx, e store.Endpoint) error {
	var args [][]any
	for i, parent := range e.DependsOn {
		args = append(args, []any{e.ID, parent, i})
	}
	return execEach(ctx, tx, `INSERT INTO endpoint_parents (endpoint_id, parent_id, position) VALUES (?, ?, ?)`, args)
}

// notFound turns the absence of a row into store.ErrNotFound.
func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	return err
}

// execOne runs a statement that changes one row, or returns store.ErrNotFound.
func execOne(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		return store.ErrNotFound
	}
	return err
}
