package postgres

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// CreateEndpoint implements store.Store.
func (db *DB) CreateEndpoint(ctx context.Context, e store.Endpoint) (store.Endpoint, error) {
	enrolled, err := store.EnrollEndpoint(e, store.Stamp(time.Now()))
	if err != nil {
		return store.Endpoint{}, err
	}
	err = db.write(ctx, "create endpoint", func(tx pgx.Tx) error {
		e = enrolled
		if err := lock(ctx, tx, lockNames); err != nil {
			return err
		}
		if err := checkNamed(ctx, tx, e); err != nil {
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

// UpdateEndpoint implements store.Store. change may be called again when the transaction got in another's way.
func (db *DB) UpdateEndpoint(ctx context.Context, slug string, change func(*store.Endpoint) error) (store.Endpoint, error) {
	var after store.Endpoint
	err := db.write(ctx, "update endpoint", func(tx pgx.Tx) error {
		standing, err := db.lockStanding(ctx, tx, slug)
		if err != nil {
			return err
		}
		before, at := standing.standing.Endpoint, store.Stamp(time.Now())
		if after, err = store.EditEndpoint(before, change, at); err != nil || !before.Edited(after) {
			return err
		}
		if after.Name != before.Name || len(after.DependsOn) > 0 {
			if err := lock(ctx, tx, lockNames); err != nil {
				return err
			}
		}
		if err := checkNamed(ctx, tx, after); err != nil {
			return err
		}
		if after.Name != before.Name {
			if err := checkName(ctx, tx, after); err != nil {
				return err
			}
		}
		if err := db.updateEndpoint(ctx, tx, after); err != nil {
			return err
		}
		if err := writeAmended(ctx, tx, standing, store.Amend(standing.standing, after, at)); err != nil {
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
	return db.write(ctx, "delete endpoint", func(tx pgx.Tx) error {
		k, err := db.lockStanding(ctx, tx, slug)
		if err != nil {
			return err
		}
		if err := writeTurns(ctx, tx, store.Remove(k.standing, time.Now())); err != nil {
			return err
		}
		if err := detach(ctx, tx, k.standing.Endpoint); err != nil {
			return err
		}
		nums := make([]int32, 0, len(k.rows))
		for _, r := range k.rows {
			nums = append(nums, r.num)
		}
		if err := leaveEndpoint(ctx, tx, k.standing.Endpoint.ID); err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM endpoints WHERE slug = $1`, slug); err != nil {
			return err
		}
		var batch pgx.Batch
		for _, table := range []string{"checks", "check_shapes", "uptime_hours"} { // they have no foreign key: see the schema
			batch.Queue(`DELETE FROM `+table+` WHERE place = ANY ($1)`, nums)
		}
		if err := send(ctx, tx, &batch); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, k.standing.Endpoint, nil)
	})
}

// Roster implements store.Store.
func (db *DB) Roster(ctx context.Context) ([]store.Member, error) {
	members, err := query(ctx, db.pool, func(row pgx.CollectableRow) (m store.Member, err error) {
		err = row.Scan(&m.ID, &m.UpdatedAt)
		return m, err
	}, `SELECT id, updated_at FROM endpoints`)
	return members, explain("read roster", err)
}

// Endpoint implements store.Store.
func (db *DB) Endpoint(ctx context.Context, slug string) (store.Overview, error) {
	var found []store.Overview
	err := db.read(ctx, "read endpoint", func(tx pgx.Tx) (err error) {
		found, err = db.overviews(ctx, tx, `WHERE e.slug = $1`, slug)
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
	err = db.read(ctx, "list endpoints", func(tx pgx.Tx) (err error) {
		// Names are unique without regard to case: there are no ties to break by id.
		rest := w.String() + ` ORDER BY e.name_key LIMIT ` + w.arg(limit+1)
		found, err = db.overviews(ctx, tx, rest, w.args...)
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
		w.and(`NOT e.paused AND s.status = ?`, string(f.Status))
	}
	if f.Tag != "" {
		w.and(`? = ANY (e.tags)`, f.Tag)
	}
	if f.Query != "" {
		w.and(`strpos(e.search, ?) > 0`, store.Fold(store.CleanText(f.Query)))
	}
	if f.Name != "" {
		w.and(`e.name_key = ?`, store.Fold(store.CleanText(f.Name)))
	}
	if f.Kind != "" {
		w.and(`(e.kind = ? OR e.kind = ? AND e.id IN (SELECT p.endpoint_id FROM places p WHERE p.evidence ->> 'kind' = ?))`,
			string(f.Kind), string(probe.KindAuto), string(f.Kind))
	}
	if f.Location != "" {
		w.and(`EXISTS (SELECT FROM places p WHERE p.endpoint_id = e.id AND p.location = ?)`, store.CleanText(f.Location))
	}
	if f.PublicOnly {
		w.and(`e.public`)
	}
	if f.IDs != nil {
		w.and(`e.id = ANY (?)`, f.IDs)
	}
	if f.Behind != "" {
		w.and(`e.id = ANY (ARRAY (SELECT b.endpoint_id FROM endpoint_parents b WHERE b.parent_id = ?))`, f.Behind)
	}
	if f.Slugs != nil {
		w.and(`e.slug = ANY (?)`, f.Slugs)
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

// endpointColumns are what endpointRow scans, of endpoints e.
const endpointColumns = `
	e.id, e.slug, e.name, e.kind, e.url, e.headers, e.request_method, e.request_params, e.schedule,
	e.timeout_ms, e.degraded_over_ms, e.confirm_failures, e.confirm_successes, e.confirm_after_ms,
	e.public, e.paused, e.tags, e.options, e.contract_notices, e.locations, e.quorum,
	ARRAY (SELECT ec.channel_id FROM endpoint_channels ec WHERE ec.endpoint_id = e.id ORDER BY ec.position),
	e.alerting, ARRAY (SELECT ep.parent_id FROM endpoint_parents ep WHERE ep.endpoint_id = e.id ORDER BY ep.position), e.objectives,
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
		&e.Public, &e.Paused, &e.Tags, &r.options, &e.ContractNotices, &e.Locations, &e.Quorum, &e.Channels,
		&e.Alerting, &e.DependsOn, &e.Objectives, &e.CreatedAt, &e.UpdatedAt,
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
func (db *DB) overviews(ctx context.Context, tx pgx.Tx, rest string, args ...any) ([]store.Overview, error) {
	found, err := query(ctx, tx, db.scanOverview, `
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

// addPlaces fills in the places, and the states that they make.
func addPlaces(ctx context.Context, tx pgx.Tx, overviews []store.Overview) error {
	ids, byID := make([]string, 0, len(overviews)), make(map[string]*store.Overview, len(overviews))
	for i := range overviews {
		ids = append(ids, overviews[i].ID)
		byID[overviews[i].ID] = &overviews[i]
	}
	places, err := query(ctx, tx, scanPlace, `
		SELECT `+placeColumns+`
		FROM places p
		WHERE p.endpoint_id = ANY ($1)
		ORDER BY p.endpoint_id, p.location`, ids)
	if err != nil {
		return err
	}
	for _, p := range places {
		o := byID[p.EndpointID]
		o.Places = append(o.Places, p)
	}
	for i := range overviews {
		overviews[i].State = store.Merged(overviews[i].State, overviews[i].Places)
	}
	return nil
}

func (db *DB) scanOverview(row pgx.CollectableRow) (store.Overview, error) {
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

// addLastChecks fills in the last checks that are not pruned.
func addLastChecks(ctx context.Context, tx pgx.Tx, overviews []store.Overview) error {
	var ids, locations []string
	var times []time.Time
	byID := make(map[string]*store.Overview, len(overviews))
	for i := range overviews {
		o := &overviews[i]
		key, ok := store.ParseCheckID(o.State.LastCheckID)
		if !ok {
			continue
		}
		at := slices.IndexFunc(o.Places, func(p store.Place) bool { return key.At(p.Location) })
		if at < 0 {
			continue
		}
		byID[o.ID] = o
		ids, locations, times = append(ids, o.ID), append(locations, o.Places[at].Location), append(times, key.ScheduledAt)
	}
	if len(ids) == 0 {
		return nil
	}
	checks, err := query(ctx, tx, scanCheck, `
		SELECT `+checkColumns+`
		FROM unnest($1::text[], $2::text[], $3::timestamptz[]) v (endpoint_id, location, scheduled_at)
		JOIN endpoints e ON e.id = v.endpoint_id
		JOIN places p ON p.endpoint_id = v.endpoint_id AND p.location = v.location
		JOIN checks c ON c.place = p.num AND c.scheduled_at = v.scheduled_at`, ids, locations, times)
	if err != nil {
		return err
	}
	for _, c := range checks {
		byID[c.EndpointID].LastCheck = &c
	}
	return nil
}

// lockStanding locks an endpoint with its places and returns where it stands. The reading is in statements of their own: one
// that waits for a lock sees the database as it was before the wait.
func (db *DB) lockStanding(ctx context.Context, tx pgx.Tx, slug string) (*known, error) {
	var id string
	err := tx.QueryRow(ctx, `SELECT id FROM endpoints WHERE slug = $1 FOR NO KEY UPDATE`, slug).Scan(&id)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `SELECT 1 FROM places WHERE endpoint_id = $1 ORDER BY num FOR NO KEY UPDATE`, id); err != nil {
		return nil, err
	}
	group := map[string]*known{}
	if err := readKnown(ctx, tx, []string{id}, group); err != nil {
		return nil, err
	}
	k := group[id]
	if k == nil {
		return nil, pgx.ErrNoRows
	}
	// What was read leaves out what is sealed.
	k.standing.Endpoint, err = queryOne(ctx, tx, db.scanEndpoint, `SELECT `+endpointColumns+` FROM endpoints e WHERE e.id = $1`, id)
	return k, err
}

func (db *DB) scanEndpoint(row pgx.CollectableRow) (store.Endpoint, error) {
	var e endpointRow
	if err := row.Scan(e.dest()...); err != nil {
		return store.Endpoint{}, err
	}
	return e.endpoint(db.sealer)
}

// writeAmended keeps what the edit of an endpoint changed beside the endpoint.
func writeAmended(ctx context.Context, tx pgx.Tx, k *known, a store.Amended) error {
	var batch pgx.Batch
	var places placeUpdate
	for _, p := range k.standing.Places {
		r := k.rows[p.Location]
		if err := places.add(r.num, r.version, p); err != nil {
			return err
		}
	}
	places.queue(&batch)
	err := updateStates(&batch, []store.EndpointState{{EndpointID: k.standing.Endpoint.ID, State: k.standing.State}})
	if err != nil {
		return err
	}
	if err := send(ctx, tx, &batch); err != nil {
		return err
	}
	return writeTurns(ctx, tx, a.Turns)
}

// nameEndpoint gives e the name and slug it lacks, and makes sure that those it has are free.
func nameEndpoint(ctx context.Context, tx pgx.Tx, e *store.Endpoint) error {
	if e.Name == "" {
		base := store.CleanText(e.DefaultName())
		taken, err := takenFrom(ctx, tx, `SELECT name_key FROM endpoints WHERE name_key BETWEEN $1 AND $2`, store.Fold(base))
		if err != nil {
			return err
		}
		e.Name = store.FirstFree(base, func(name string) bool { return taken[store.Fold(name)] })
	} else if err := checkName(ctx, tx, *e); err != nil {
		return err
	}
	if e.Slug != "" {
		return refuse(ctx, tx, "slug", `SELECT EXISTS (SELECT 1 FROM endpoints WHERE slug = $1)`, e.Slug)
	}
	base := e.SlugBase()
	taken, err := takenFrom(ctx, tx, `SELECT slug FROM endpoints WHERE slug BETWEEN $1 AND $2`, base)
	if err != nil {
		return err
	}
	e.Slug = store.FirstFree(base, func(slug string) bool { return taken[slug] })
	return nil
}

func checkName(ctx context.Context, tx pgx.Tx, e store.Endpoint) error {
	return refuse(ctx, tx, "name", `SELECT EXISTS (SELECT 1 FROM endpoints WHERE name_key = $1 AND id <> $2)`,
		store.Fold(e.Name), e.ID)
}

// takenFrom returns the texts that begin with base.
func takenFrom(ctx context.Context, tx pgx.Tx, text, base string) (map[string]bool, error) {
	found, err := query(ctx, tx, pgx.RowTo[string], text, base, base+"\U0010FFFF")
	return setOf(found), err
}

func setOf(items []string) map[string]bool {
	set := make(map[string]bool, len(items))
	for _, item := range items {
		set[item] = true
	}
	return set
}

// refuse returns a Conflict about field when the query says that there is something.
func refuse(ctx context.Context, tx pgx.Tx, field, text string, args ...any) error {
	var there bool
	if err := tx.QueryRow(ctx, text, args...).Scan(&there); err != nil {
		return err
	}
	if there {
		return store.Conflict{Field: field, Message: "is taken already: choose another"}
	}
	return nil
}

// checkNamed makes sure that the channels and endpoints that e names are there, and that they stay until the transaction ends.
func checkNamed(ctx context.Context, tx pgx.Tx, e store.Endpoint) error {
	found, err := query(ctx, tx, pgx.RowTo[string], `
		SELECT id
		FROM channels
		WHERE id = ANY ($1) AND audience = 'team'
		ORDER BY id
		FOR KEY SHARE`, cleanAll(slices.Concat(e.Channels, e.Alerting.Escalates())))
	if err != nil {
		return err
	}
	there := setOf(found)
	if err := store.ChannelProblems(e.Channels, there); err != nil {
		return err
	}
	if err := store.EscalationProblems(e.Alerting, there); err != nil {
		return err
	}
	return checkParents(ctx, tx, e)
}

// checkParents is called under the lock of names: two edits at once could make a circle that neither of them sees.
func checkParents(ctx context.Context, tx pgx.Tx, e store.Endpoint) error {
	if len(e.DependsOn) == 0 {
		return nil
	}
	found, err := query(ctx, tx, pgx.RowTo[string], `
		SELECT id
		FROM endpoints
		WHERE id = ANY ($1)
		ORDER BY id
		FOR KEY SHARE`, cleanAll(e.DependsOn))
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `
		WITH RECURSIVE above AS (
		    SELECT unnest($1::text[]) COLLATE "C" AS id
		    UNION
		    SELECT p.parent_id FROM above a JOIN endpoint_parents p ON p.endpoint_id = a.id
		)
		SELECT p.endpoint_id, p.parent_id
		FROM above a
		JOIN endpoint_parents p ON p.endpoint_id = a.id`, cleanAll(e.DependsOn))
	if err != nil {
		return err
	}
	behind := map[string][]string{}
	var id, parent string
	_, err = pgx.ForEachRow(rows, []any{&id, &parent}, func() error {
		behind[id] = append(behind[id], parent)
		return nil
	})
	if err != nil {
		return err
	}
	return store.ParentProblems(e, setOf(found), behind)
}

func (db *DB) insertEndpoint(ctx context.Context, tx pgx.Tx, e store.Endpoint) error {
	headers, options, err := db.sealed(e)
	if err != nil {
		return err
	}
	alerting, objectives, err := courseForms(e)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO endpoints (
		    id, slug, name, name_key, search, kind, url, headers, request_method, request_params, schedule,
		    timeout_ms, degraded_over_ms, confirm_failures, confirm_successes, confirm_after_ms,
		    public, paused, tags, options, contract_notices, locations, quorum, created_at, updated_at, alerting, objectives
		) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25,
		    $26::text::jsonb, $27::text::jsonb)`,
		e.ID, e.Slug, e.Name, store.Fold(e.Name), e.SearchText(), e.Kind, e.URL, headers, e.Request.Method,
		[]byte(e.Request.Params), e.Schedule,
		store.Milliseconds(e.Timeout), store.Milliseconds(e.DegradedOver), e.Confirm.Failures, e.Confirm.Successes,
		store.Milliseconds(e.Confirm.After), e.Public, e.Paused, notNil(e.Tags), options, e.ContractNotices,
		notNil(e.Locations), e.Quorum, e.CreatedAt, e.UpdatedAt, alerting, objectives)
	if err != nil {
		return err
	}
	return insertNamed(ctx, tx, e)
}

func (db *DB) updateEndpoint(ctx context.Context, tx pgx.Tx, e store.Endpoint) error {
	headers, options, err := db.sealed(e)
	if err != nil {
		return err
	}
	alerting, objectives, err := courseForms(e)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		UPDATE endpoints
		SET name = $2, name_key = $3, search = $4, kind = $5, url = $6, headers = $7, request_method = $8,
		    request_params = $9, schedule = $10, timeout_ms = $11, degraded_over_ms = $12, confirm_failures = $13,
		    confirm_successes = $14, confirm_after_ms = $15, public = $16, paused = $17, tags = $18, options = $19,
		    contract_notices = $20, updated_at = $21, locations = $22, quorum = $23, alerting = $24::text::jsonb,
		    objectives = $25::text::jsonb
		WHERE id = $1`,
		e.ID, e.Name, store.Fold(e.Name), e.SearchText(), e.Kind, e.URL, headers, e.Request.Method, []byte(e.Request.Params),
		e.Schedule, store.Milliseconds(e.Timeout), store.Milliseconds(e.DegradedOver), e.Confirm.Failures,
		e.Confirm.Successes, store.Milliseconds(e.Confirm.After), e.Public, e.Paused, notNil(e.Tags), options,
		e.ContractNotices, e.UpdatedAt, notNil(e.Locations), e.Quorum, alerting, objectives)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM endpoint_channels WHERE endpoint_id = $1`, e.ID); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM endpoint_parents WHERE endpoint_id = $1`, e.ID); err != nil {
		return err
	}
	return insertNamed(ctx, tx, e)
}

// courseForms returns the columns of e that say what becomes of its incidents, as JSON.
func courseForms(e store.Endpoint) (alerting, objectives string, err error) {
	text, err := json.Marshal(e.Alerting)
	if err != nil {
		return "", "", err
	}
	list, err := json.Marshal(append([]store.Objective{}, e.Objectives...)) // an empty array rather than null
	return string(text), string(list), err
}

// sealed returns the columns of e that nobody can read without the key.
func (db *DB) sealed(e store.Endpoint) (headers, options []byte, err error) {
	if headers, err = db.sealer.SealHeaders(e.ID, e.Headers); err != nil {
		return nil, nil, err
	}
	options, err = db.sealer.SealOptions(e)
	return headers, options, err
}

// notNil returns an empty array rather than NULL.
func notNil(texts []string) []string { return append([]string{}, texts...) }

// insertNamed keeps which channels and endpoints e names.
func insertNamed(ctx context.Context, tx pgx.Tx, e store.Endpoint) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO endpoint_channels (endpoint_id, channel_id, position)
		SELECT $1, channel.id, channel.position
		FROM unnest($2::text[]) WITH ORDINALITY channel (id, position)`, e.ID, e.Channels)
	if err != nil || len(e.DependsOn) == 0 {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO endpoint_parents (endpoint_id, parent_id, position)
		SELECT $1, parent.id, parent.position
		FROM unnest($2::text[]) WITH ORDINALITY parent (id, position)`, e.ID, e.DependsOn)
	return err
}
