package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// known is where an endpoint stands, with what names its rows and says whether they are still as they were read.
type known struct {
	standing *store.Standing
	version  int32            // of the row of its state
	rows     map[string]*rows // by location
}

// rows are a place's in the database.
type rows struct {
	num, version int32
	shapes       shapes
}

// memory keeps standings between groups, so that recording a check reads nothing. Whoever changes an endpoint or a place
// raises the versions of its places, and a standing that was overtaken keeps its group from being written.
//
// Endpoints with several places are not kept: others write there as well. Nor are those that are in an incident together with
// others, who write to it.
type memory struct {
	mu       sync.Mutex
	standing map[string]*remembered // guarded by mu: by endpoint id
}

// take hands out what is known about endpoints. What was handed out is forgotten until it is put back: it is about to change.
func (m *memory) take(ids []string) map[string]*known {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := make(map[string]*known, len(ids))
	for _, id := range ids {
		if r := m.standing[id]; r != nil {
			taken[id] = r.known(id)
			delete(m.standing, id)
		}
	}
	return taken
}

// maxKnown bounds the memory: about 1 KB each, and as much for the latencies of its hour. Endpoints beyond it are read each
// time.
const maxKnown = 200_000

func (m *memory) put(group map[string]*known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.standing == nil {
		m.standing = map[string]*remembered{}
	}
	for id, k := range group {
		if len(k.rows) == 1 && len(k.standing.Places) == 1 && !k.shares() && len(m.standing) < maxKnown {
			m.standing[id] = remember(k)
		}
	}
}

// shares reports whether the endpoint is in an incident that others may be in as well.
func (k *known) shares() bool {
	return slices.ContainsFunc(k.standing.Others, func(i store.Incident) bool { return i.Kind.Shared() })
}

// remembered is a known endpoint with one place in a third of the memory, for there are tens of thousands: of the endpoint it
// has what the judge, [store.Advance] and the [store.Ledger] look at.
type remembered struct {
	slug, name, schedule    string
	timeout                 time.Duration
	confirm                 store.Confirm
	channels, locations     []string
	dependsOn               []string
	quorum                  int
	paused, contractNotices bool
	alerting                *store.Alerting // nil: the default, as of most

	version int32
	status  store.Status // of the whole, as the next two
	since   time.Time
	failure *probe.Failure
	course  *course // nil: there is nothing, as of most

	location string
	state    store.State
	hour     hour
	rows     rows
}

// course is what is remembered of incidents.
type course struct {
	flips  []time.Time
	hushed *store.Hushed
	open   *store.Incident
	others []store.Incident
}

// hour is a roll-up without its names.
type hour struct {
	begin     time.Time
	counts    store.Counts
	classes   map[probe.Class]int
	latencies store.Latencies
}

func remember(k *known) *remembered {
	e, whole, p := &k.standing.Endpoint, &k.standing.State, &k.standing.Places[0]
	r := &remembered{
		slug: e.Slug, name: e.Name, schedule: e.Schedule, dependsOn: e.DependsOn, timeout: e.Timeout, confirm: e.Confirm, channels: e.Channels, locations: e.Locations,
		quorum: e.Quorum, paused: e.Paused, contractNotices: e.ContractNotices,
		version: k.version, status: whole.Status, since: whole.Since, failure: whole.Failure,
		location: p.Location, state: p.State, hour: hour{p.Hour.Begin, p.Hour.Counts, p.Hour.Classes, p.Hour.Latencies},
		rows: *k.rows[p.Location],
	}
	if a := e.Alerting; a.Notify != nil || a.UnknownAfter != 0 || a.RemindEvery != 0 || a.FlapChanges != 0 || a.Escalation != nil {
		r.alerting = &a
	}
	if s := k.standing; s.Open != nil || len(s.Others) > 0 || len(whole.Flips) > 0 || whole.Hushed != nil {
		r.course = &course{whole.Flips, whole.Hushed, s.Open, s.Others}
	}
	return r
}

func (r *remembered) known(id string) *known {
	place := store.Place{EndpointID: id, Location: r.location, State: r.state}
	if !r.hour.begin.IsZero() {
		place.Hour = store.Rollup{
			EndpointID: id, Location: r.location, Begin: r.hour.begin,
			Counts: r.hour.counts, Classes: r.hour.classes, Latencies: r.hour.latencies,
		}
	}
	k := &known{
		standing: &store.Standing{
			Endpoint: store.Endpoint{
				ID: id, Slug: r.slug, Name: r.name, Schedule: r.schedule, DependsOn: r.dependsOn, Timeout: r.timeout, Confirm: r.confirm, Channels: r.channels,
				Locations: r.locations, Quorum: r.quorum, Paused: r.paused, ContractNotices: r.contractNotices,
			},
			State:  store.State{Status: r.status, Since: r.since, Failure: r.failure},
			Places: []store.Place{place},
		},
		version: r.version,
		rows:    map[string]*rows{r.location: &r.rows},
	}
	if s := k.standing; r.course != nil {
		s.State.Flips, s.State.Hushed, s.Open, s.Others = r.course.flips, r.course.hushed, r.course.open, r.course.others
	}
	if r.alerting != nil {
		k.standing.Endpoint.Alerting = *r.alerting
	}
	return k
}

// load reads where the endpoints of the checks stand that are not in group, and puts it there. Versions are read before what
// they are of: what changes in between is noticed when the group is written.
func (db *DB) load(ctx context.Context, checks []store.Check, group map[string]*known) error {
	var wanted map[store.PlaceKey]bool
	for _, c := range checks {
		if k := group[c.EndpointID]; k == nil || k.rows[c.Location] == nil {
			if wanted == nil {
				wanted = map[store.PlaceKey]bool{}
			}
			wanted[store.PlaceKey{EndpointID: c.EndpointID, Location: c.Location}] = true
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	ids := make([]string, 0, len(wanted))
	for key := range wanted {
		ids = append(ids, key.EndpointID)
		delete(group, key.EndpointID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if err := readKnown(ctx, db.pool, ids, group); err != nil {
		return err
	}
	for key := range wanted {
		if k := group[key.EndpointID]; k == nil || k.rows[key.Location] != nil {
			delete(wanted, key) // the endpoint is gone, or the place is there
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	if err := db.makePlaces(ctx, wanted); err != nil {
		return err
	}
	return readKnown(ctx, db.pool, ids, group)
}

// sender is the pool or a transaction.
type sender interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// readKnown reads states, places, endpoints and open incidents, in this order and in one round trip.
func readKnown(ctx context.Context, q sender, ids []string, group map[string]*known) error {
	type version struct {
		id      string
		version int32
	}
	var versions []version
	var places []placeRow
	var batch pgx.Batch
	batch.Queue(`SELECT endpoint_id, version FROM endpoint_states WHERE endpoint_id = ANY ($1)`, ids).Query(
		func(r pgx.Rows) (err error) {
			versions, err = collect(r, func(row pgx.CollectableRow) (v version, err error) {
				err = row.Scan(&v.id, &v.version)
				return v, err
			})
			return err
		})
	batch.Queue(`
		SELECT `+placeColumns+`, `+sumColumns+`
		FROM places p
		WHERE p.endpoint_id = ANY ($1)
		ORDER BY p.endpoint_id, p.location`, ids).Query(func(r pgx.Rows) (err error) {
		places, err = collect(r, func(row pgx.CollectableRow) (p placeRow, err error) {
			err = row.Scan(append(p.dest(), p.sumDest()...)...)
			return p, err
		})
		return err
	})
	standings := map[string]*store.Standing{}
	readStandings(&batch, ids, standings)
	if err := q.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	for _, v := range versions {
		if standings[v.id] != nil {
			group[v.id] = &known{standing: standings[v.id], version: v.version, rows: map[string]*rows{}}
		}
	}
	for _, r := range places {
		k := group[r.place.EndpointID]
		if k == nil {
			continue
		}
		p, err := r.read()
		if err != nil {
			return err
		}
		k.standing.Places = append(k.standing.Places, p)
		k.rows[p.Location] = &rows{num: r.num, version: r.version}
	}
	return nil
}

// readStandings puts where the endpoints stand into standings, without their places.
func readStandings(batch *pgx.Batch, ids []string, standings map[string]*store.Standing) {
	batch.Queue(`
		SELECT `+endpointColumns+`, `+stateColumns+`
		FROM endpoints e
		JOIN endpoint_states s ON s.endpoint_id = e.id
		WHERE e.id = ANY ($1)`, ids).Query(func(rows pgx.Rows) error {
		found, err := collect(rows, scanStanding)
		for _, standing := range found {
			standings[standing.Endpoint.ID] = standing
		}
		return err
	})
	batch.Queue(openIncidents, ids).Query(func(rows pgx.Rows) error {
		found, err := collect(rows, scanOpenIncident)
		for _, o := range found {
			switch s := standings[o.whose]; {
			case s == nil:
			case o.incident.Kind == store.IncidentEndpoint:
				s.Open = &o.incident
			default:
				s.Others = append(s.Others, o.incident)
			}
		}
		return err
	})
}

func scanStanding(row pgx.CollectableRow) (*store.Standing, error) {
	var e endpointRow
	var s stateRow
	if err := row.Scan(slices.Concat(e.dest(), s.dest())...); err != nil {
		return nil, err
	}
	state, err := s.state()
	return &store.Standing{Endpoint: e.bare(), State: state}, err
}

// makePlaces makes the rows of places that are checked for the first time. The endpoint's other places are no longer alone.
func (db *DB) makePlaces(ctx context.Context, wanted map[store.PlaceKey]bool) error {
	var ids, locations []string
	for key := range wanted {
		ids, locations = append(ids, key.EndpointID), append(locations, key.Location)
	}
	return db.write(ctx, "make places", func(tx pgx.Tx) error {
		// The endpoints' rows keep two instances from making places of one endpoint without knowing of each other.
		_, err := tx.Exec(ctx, `SELECT 1 FROM endpoints WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE`, ids)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE places SET version = version + 1 WHERE endpoint_id = ANY ($1)`, ids); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO places (endpoint_id, location, status, since, evidence)
			SELECT e.id, v.location, 'pending', s.since, '{}'
			FROM unnest($1::text[], $2::text[]) v (endpoint_id, location)
			JOIN endpoints e ON e.id = v.endpoint_id
			JOIN endpoint_states s ON s.endpoint_id = e.id
			ON CONFLICT DO NOTHING`, ids, locations)
		return err
	})
}
