package postgres

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// LeaseNotices implements store.Store.
//
//	LeaseNotices
//	├─ dueNotices      is there anything? No lock is taken to find out
//	├─ lockChannels    who hands out notices of a channel does so alone
//	├─ dueNotices      the first of each delivery, in a look of its own: one before the lock may be of the past
//	├─ waitingAlong    what waits beside them: together says what goes along
//	└─ fillDeliveries  all that there is to say
func (db *DB) LeaseNotices(
	ctx context.Context, holder string, now time.Time, lease time.Duration, limit int,
) ([]store.Delivery, error) {
	if limit <= 0 {
		return nil, nil
	}
	due, err := query(ctx, db.pool, pgx.RowTo[string], `SELECT d.id`+dueNotices+` LIMIT $3`, now, holder, 1, nil)
	if err != nil || len(due) == 0 {
		return nil, explain("look for due notices", err)
	}
	var deliveries []store.Delivery
	err = db.write(ctx, "lease notices", func(tx pgx.Tx) (err error) {
		deliveries, err = db.lease(ctx, tx, holder, now, now.Add(lease), limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return deliveries, nil
}

// dueNotices selects the notices d with which deliveries begin that the holder $2 can have at $1, of the channels $4 or, when that
// is NULL, of all.
var dueNotices = `
	FROM notices d
	JOIN channels c ON c.id = d.channel_id
	WHERE d.status = 'waiting'
	    AND d.due_at <= $1
	    AND (d.leased_until IS NULL OR d.leased_until <= $1)
	    AND c.broken IS NULL
	    AND ($4::text[] IS NULL OR d.channel_id = ANY ($4))
	    AND NOT EXISTS (
	        -- What the channel must hear first, and what it is about to hear. What was merely put off, so that it is told along with
	        -- others, holds up nothing, nor does what reminds or escalates.
	        SELECT 1
	        FROM notices o
	        WHERE o.incident_id = d.incident_id
	            AND o.channel_id = d.channel_id
	            AND o.status = 'waiting'
	            AND (o.leased_until > $1 OR o.seq < d.seq AND (
	                o.due_at <= $1 OR o.kind = 'opened' OR o.attempts > 0 AND o.kind NOT IN ('reminder', 'escalation')
	            ))
	    )
	    AND NOT EXISTS (
	        SELECT 1
	        FROM notices h
	        WHERE h.channel_id = d.channel_id
	            AND h.lease_id IS NOT NULL
	            AND h.leased_until > $1
	            AND h.holder IS DISTINCT FROM $2
	    )
	    AND NOT ` + behind("d") + `
	ORDER BY d.due_at, d.seq`

// speaksFor is what holds of an incident above for which those of the endpoints behind its own wait: the team hears of it, and by
// one message that names them. Else nobody would hear of either. While it comes and goes nothing is said of each change.
const speaksFor = `
	NOT above.flapping AND EXISTS (
	    SELECT 1
	    FROM notices ao
	    JOIN channels ac ON ac.id = ao.channel_id
	    WHERE ao.incident_id = above.id AND ao.kind = 'opened' AND ac.audience = 'team'
	        AND ao.status <> 'failed' AND (ao.status <> 'waiting' OR ac.broken IS NULL)
	)`

// behind returns what holds of the opening, among notices, of an endpoint that stands behind one that is down.
func behind(notice string) string {
	return `(` + notice + `.kind = 'opened' AND EXISTS (
	        SELECT 1
	        FROM incidents i
	        JOIN endpoint_parents p ON p.endpoint_id = i.endpoint_id
	        JOIN incidents above ON above.subject = p.parent_id AND above.resolved_at IS NULL
	        WHERE i.id = ` + notice + `.incident_id AND i.kind = 'endpoint' AND above.severity = 'down' AND ` + speaksFor + `
	    ))`
}

// waitingNotice is one of the notices about one incident that wait for one channel.
type waitingNotice struct {
	store.Notice
	due, leased, behind bool
}

// holdsUp reports whether what came later has to wait for n.
func (n waitingNotice) holdsUp() bool {
	if n.leased || n.Kind.Ahead() {
		return n.leased
	}
	return n.behind || !n.due && (n.Kind == store.NoticeOpened || n.Attempts > 0)
}

// together returns those of the notices that make a delivery, oldest first as they are given: what is due, and what was merely put
// off and came before.
func together(waiting []waitingNotice) []store.Notice {
	var free []waitingNotice
	for _, n := range waiting {
		if !n.leased && !n.behind {
			free = append(free, n)
		}
		if n.holdsUp() {
			break
		}
	}
	last := -1 // that is due
	for i, n := range free {
		if n.due {
			last = i
		}
	}
	var list []store.Notice
	for i, n := range free {
		if putOff := !n.Kind.Ahead() && n.Kind != store.NoticeOpened && n.Attempts == 0; n.due || putOff && i < last {
			list = append(list, n.Notice)
		}
	}
	return list
}

func (db *DB) lease(ctx context.Context, tx pgx.Tx, holder string, now, until time.Time, limit int) ([]store.Delivery, error) {
	channels, err := lockChannels(ctx, tx, holder, now, limit)
	if err != nil {
		return nil, err
	}
	// What is being settled at this moment is passed over.
	due, err := query(ctx, tx, pgx.RowTo[string], `SELECT d.id`+dueNotices+` LIMIT $3 FOR UPDATE OF d SKIP LOCKED`,
		now, holder, limit, channels)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	groups, err := waitingAlong(ctx, tx, due, now)
	if err != nil {
		return nil, err
	}
	var list []store.Delivery
	var ids []string
	leaseID := store.NewID("lse")
	for _, id := range due {
		notices := together(groups[id])
		if len(notices) == 0 {
			continue // it was taken back at this moment
		}
		d := store.Delivery{Notice: notices[0], LeaseID: leaseID}
		d.Later = append(d.Later, notices[1:]...)
		list = append(list, d)
		for _, n := range notices {
			ids = append(ids, n.ID)
		}
	}
	_, err = tx.Exec(ctx, `UPDATE notices SET lease_id = $1, holder = $2, leased_until = $3 WHERE id = ANY ($4)`,
		leaseID, holder, until, ids)
	if err != nil {
		return nil, err
	}
	if err := escalate(ctx, tx, ids); err != nil {
		return nil, err
	}
	return list, db.fillDeliveries(ctx, tx, list, now)
}

// waitingAlong returns all notices that wait for the same channel and are about the same incident, by the one that is due.
func waitingAlong(ctx context.Context, tx pgx.Tx, due []string, now time.Time) (map[string][]waitingNotice, error) {
	rows, err := tx.Query(ctx, `
		SELECT f.id, `+noticeColumns+`, n.due_at <= $2, COALESCE(n.leased_until > $2, false), `+behind("n")+`
		FROM notices f
		JOIN notices n ON n.incident_id = f.incident_id AND n.channel_id = f.channel_id
		WHERE f.id = ANY ($1) AND n.status = 'waiting'
		ORDER BY n.seq
		FOR UPDATE OF n`, due, now)
	if err != nil {
		return nil, err
	}
	groups := map[string][]waitingNotice{}
	var id string
	var n waitingNotice
	dest := append(append([]any{&id}, noticeDest(&n.Notice)...), &n.due, &n.leased, &n.behind)
	_, err = pgx.ForEachRow(rows, dest, func() error {
		groups[id] = append(groups[id], n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	alone, err := query(ctx, tx, scanNotice, `
		SELECT `+noticeColumns+`
		FROM notices n
		WHERE n.id = ANY ($1) AND n.incident_id IS NULL`, due)
	for _, n := range alone { // of events
		groups[n.ID] = []waitingNotice{{Notice: n, due: true}}
	}
	return groups, err
}

// lockChannels returns channels for which something is due. Nobody else hands out their notices until the transaction ends: those
// that somebody is handing out are left to them.
func lockChannels(ctx context.Context, tx pgx.Tx, holder string, now time.Time, limit int) ([]string, error) {
	due, err := query(ctx, tx, pgx.RowTo[string], `SELECT d.channel_id`+dueNotices+` LIMIT $3`, now, holder, limit, nil)
	if err != nil {
		return nil, err
	}
	slices.Sort(due)
	return query(ctx, tx, pgx.RowTo[string], `
		SELECT id
		FROM channels
		WHERE id = ANY ($1)
		ORDER BY id
		FOR NO KEY UPDATE SKIP LOCKED`, slices.Compact(due))
}

// escalate has what is remembered of endpoints read anew of which an escalation goes out: who hears it hears the rest.
func escalate(ctx context.Context, tx pgx.Tx, ids []string) error {
	_, err := tx.Exec(ctx, `
		UPDATE places
		SET version = version + 1
		WHERE num IN (
		    SELECT p.num
		    FROM notices n
		    JOIN incidents i ON i.id = n.incident_id
		    JOIN places p ON p.endpoint_id = i.endpoint_id
		    WHERE n.id = ANY ($1) AND n.kind = 'escalation'
		    ORDER BY p.num
		    FOR NO KEY UPDATE OF p
		)`, ids)
	return err
}

// noticeColumns are what noticeDest takes, of notices n.
const noticeColumns = `
	n.id, COALESCE(n.incident_id, ''), COALESCE(n.event_id, ''), COALESCE(n.entry_id, ''), n.channel_id, n.kind, n.created_at,
	n.due_at, n.attempts`

func noticeDest(n *store.Notice) []any {
	return []any{
		&n.ID, &n.IncidentID, &n.EventID, &n.EntryID, &n.ChannelID, &n.Kind, &n.CreatedAt, &n.DueAt, &n.Attempts,
	}
}

func scanNotice(row pgx.CollectableRow) (n store.Notice, err error) {
	err = row.Scan(noticeDest(&n)...)
	return n, err
}

// contents are what deliveries are made of, by id.
type contents struct {
	channels      map[string]store.Channel
	refs          map[string]string // by notice
	incidents     map[string]store.Incident
	events        map[string]store.Event
	entries       map[string]store.Entry
	endpoints     map[string]store.Endpoint
	subscriptions map[string]store.Subscription
	pages         map[string]store.StatusPage // of the subscriptions
	dependents    map[string][]store.Endpoint // by the endpoint that they wait for
	behindUntil   map[string]time.Time        // by incident
}

// fillDeliveries fills in what the notices are about. Incidents and events come first: they name the endpoints.
func (db *DB) fillDeliveries(ctx context.Context, tx pgx.Tx, list []store.Delivery, now time.Time) error {
	var ids, incidentIDs, eventIDs, entryIDs, channelIDs []string
	for _, d := range list {
		ids, channelIDs = append(ids, d.Notice.ID), append(channelIDs, d.Notice.ChannelID)
		incidentIDs, eventIDs = append(incidentIDs, d.Notice.IncidentID), append(eventIDs, d.Notice.EventID)
		entryIDs = append(entryIDs, entryOf(d))
	}
	c := contents{
		channels: map[string]store.Channel{}, refs: map[string]string{}, incidents: map[string]store.Incident{},
		events: map[string]store.Event{}, entries: map[string]store.Entry{}, endpoints: map[string]store.Endpoint{},
		subscriptions: map[string]store.Subscription{}, pages: map[string]store.StatusPage{}, dependents: map[string][]store.Endpoint{}, behindUntil: map[string]time.Time{},
	}
	var batch pgx.Batch
	batch.Queue(`SELECT `+channelColumns+` FROM channels c WHERE c.id = ANY ($1)`, channelIDs).
		Query(into(c.channels, func(c store.Channel) string { return c.ID }, db.scanChannel))
	c.readRefs(&batch, ids)
	c.readSubjects(&batch, incidentIDs, eventIDs, entryIDs, channelIDs)
	c.readParents(&batch, incidentIDs, now)
	if err := send(ctx, tx, &batch); err != nil {
		return err
	}
	if err := c.readEndpoints(ctx, tx); err != nil {
		return err
	}
	for i := range list {
		c.fill(&list[i])
	}
	return nil
}

// entryOf returns the id of the line of the timeline that the last of the notices of a delivery tells of, empty for none.
func entryOf(d store.Delivery) string {
	for _, n := range slices.Backward(d.Later) {
		if n.EntryID != "" {
			return n.EntryID
		}
	}
	return d.Notice.EntryID
}

// into has the rows of a query put into a map.
func into[T any](m map[string]T, key func(T) string, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		found, err := collect(rows, scan)
		for _, v := range found {
			m[key(v)] = v
		}
		return err
	}
}

// readRefs reads what channels answered to the openings, or, where there was none, to what told of an escalation.
func (c *contents) readRefs(batch *pgx.Batch, noticeIDs []string) {
	batch.Queue(`
		SELECT n.id, first.ref
		FROM notices n
		CROSS JOIN LATERAL (
		    SELECT o.ref
		    FROM notices o
		    WHERE o.incident_id = n.incident_id AND o.channel_id = n.channel_id AND o.kind IN ('opened', 'escalation') AND o.ref <> ''
		    ORDER BY o.kind DESC, o.seq DESC
		    LIMIT 1
		) first
		WHERE n.id = ANY ($1)`, noticeIDs).Query(func(rows pgx.Rows) error {
		var id, ref string
		_, err := pgx.ForEachRow(rows, []any{&id, &ref}, func() error {
			c.refs[id] = ref
			return nil
		})
		return err
	})
}

func (c *contents) readSubjects(batch *pgx.Batch, incidentIDs, eventIDs, entryIDs, channelIDs []string) {
	batch.Queue(`
		SELECT `+incidentColumns+`
		FROM incidents i
		LEFT JOIN endpoints e ON e.id = i.endpoint_id
		WHERE i.id = ANY ($1)`, incidentIDs).Query(into(c.incidents, func(i store.Incident) string { return i.ID }, scanIncident))
	batch.Queue(`SELECT `+eventColumns+` FROM events v WHERE v.id = ANY ($1)`, eventIDs).
		Query(into(c.events, func(ev store.Event) string { return ev.ID }, scanEvent))
	batch.Queue(`SELECT `+entryColumns+` FROM incident_entries t WHERE t.id = ANY ($1)`, entryIDs).
		Query(into(c.entries, func(e store.Entry) string { return e.ID }, scanEntry))
	batch.Queue(`SELECT `+subscriptionColumns+` FROM subscriptions s WHERE s.id = ANY ($1)`, channelIDs).
		Query(into(c.subscriptions, func(s store.Subscription) string { return s.ID }, scanBareSubscription))
	batch.Queue(`
		SELECT `+statusPageColumns+`, NULL::bytea
		FROM status_pages p
		WHERE p.id IN (SELECT s.page_id FROM subscriptions s WHERE s.id = ANY ($1))`, channelIDs).
		Query(into(c.pages, func(p store.StatusPage) string { return p.ID }, scanStatusPage))
}

// readParents reads until when endpoints stood behind others that were down, and which endpoints wait for others.
func (c *contents) readParents(batch *pgx.Batch, incidentIDs []string, now time.Time) {
	batch.Queue(`
		SELECT i.id, MAX(COALESCE(above.resolved_at, CASE above.severity WHEN 'down' THEN $2 ELSE (
		    SELECT MAX(t.at) FROM incident_entries t WHERE t.incident_id = above.id AND t.severity <> ''
		) END))
		FROM incidents i
		JOIN endpoint_parents p ON p.endpoint_id = i.endpoint_id
		JOIN incidents above ON above.subject = p.parent_id
		WHERE i.id = ANY ($1) AND i.kind = 'endpoint' AND `+speaksFor+` AND (
		    above.resolved_at IS NULL AND above.severity = 'down'
		    OR above.worst = 'down' AND above.started_at <= i.opened_at + interval '1 minute'
		        AND (above.resolved_at IS NULL OR above.resolved_at > i.opened_at)
		)
		GROUP BY i.id`, incidentIDs, now).Query(func(rows pgx.Rows) error {
		var id string
		var until *time.Time
		_, err := pgx.ForEachRow(rows, []any{&id, &until}, func() error {
			c.behindUntil[id] = orZero(until)
			return nil
		})
		return err
	})
	batch.Queue(`
		SELECT p.parent_id, d.id, d.name, d.public, d.tags
		FROM incidents i
		JOIN endpoint_parents p ON p.parent_id = i.endpoint_id
		JOIN endpoints d ON d.id = p.endpoint_id
		JOIN incidents own ON own.subject = d.id AND own.resolved_at IS NULL
		WHERE i.id = ANY ($1) AND i.kind = 'endpoint' AND i.resolved_at IS NULL AND i.severity = 'down' AND NOT i.flapping
		    AND EXISTS (SELECT 1 FROM notices o WHERE o.incident_id = own.id AND o.kind = 'opened' AND o.status = 'waiting')
		ORDER BY d.name_key`, incidentIDs).Query(func(rows pgx.Rows) error {
		var parent string
		var d store.Endpoint
		_, err := pgx.ForEachRow(rows, []any{&parent, &d.ID, &d.Name, &d.Public, &d.Tags}, func() error {
			c.dependents[parent] = append(c.dependents[parent], d)
			return nil
		})
		return err
	})
}

func (c *contents) readEndpoints(ctx context.Context, tx pgx.Tx) error {
	var ids []string
	for _, i := range c.incidents {
		ids = append(ids, i.EndpointID)
	}
	for _, ev := range c.events {
		ids = append(ids, ev.EndpointID)
	}
	found, err := bareEndpoints(ctx, tx, ids)
	for _, e := range found {
		c.endpoints[e.ID] = e
	}
	return err
}

// bareEndpoints returns endpoints without their headers, options and commands, by id.
func bareEndpoints(ctx context.Context, tx pgx.Tx, ids []string) ([]store.Endpoint, error) {
	return query(ctx, tx, func(row pgx.CollectableRow) (store.Endpoint, error) {
		var e endpointRow
		err := row.Scan(e.dest()...)
		return e.bare(), err
	}, `SELECT `+endpointColumns+` FROM endpoints e WHERE e.id = ANY ($1) ORDER BY e.id`, ids)
}

func (c *contents) fill(d *store.Delivery) {
	d.Channel, d.Ref = c.channels[d.Notice.ChannelID], c.refs[d.Notice.ID]
	if s, ok := c.subscriptions[d.Channel.ID]; ok {
		s.Channel = d.Channel
		d.Subscription = &s
		if p, ok := c.pages[s.PageID]; ok {
			d.Page = &p
		}
	}
	if ev, ok := c.events[d.Notice.EventID]; ok {
		d.Event, d.Endpoint = &ev, c.endpoints[ev.EndpointID]
		return
	}
	d.Incident = c.incidents[d.Notice.IncidentID]
	d.Endpoint = c.endpoints[d.Incident.EndpointID]
	d.BehindUntil = c.behindUntil[d.Incident.ID]
	if e, ok := c.entries[entryOf(*d)]; ok {
		d.Entry = &e
	}
	for _, e := range c.dependents[d.Endpoint.ID] {
		if d.Incident.Kind == store.IncidentEndpoint && d.Knows(e) {
			d.Dependents = append(d.Dependents, e.Name)
		}
	}
}

// SettleNotice implements store.Store. A lease that ran out and that nobody else took may still be settled: the message
// is out, sending it again would help nobody.
func (db *DB) SettleNotice(ctx context.Context, s store.Settlement) error {
	if err := s.Validate(); err != nil {
		return err
	}
	return db.write(ctx, "settle notice", func(tx pgx.Tx) error {
		leased, err := lockLeased(ctx, tx, s)
		if err != nil {
			return err
		}
		first := leased[0]
		if err := settle(ctx, tx, s, leased); err != nil {
			return err
		}
		if s.Deferred {
			return nil
		}
		if err := logAttempts(ctx, tx, s, leased); err != nil || !s.Sent || s.Next.IsZero() {
			return err
		}
		return remind(ctx, tx, first, s)
	})
}

// lockLeased returns the notices that a settlement is about, the one that it names first; pgx.ErrNoRows when there are none any
// more.
func lockLeased(ctx context.Context, tx pgx.Tx, s store.Settlement) ([]store.Notice, error) {
	found, err := query(ctx, tx, scanNotice, `
		SELECT `+noticeColumns+`
		FROM notices n
		WHERE n.id = ANY ($1) AND n.lease_id = $2 AND n.status = 'waiting'
		ORDER BY n.id = $3 DESC, n.seq
		FOR UPDATE`, cleanAll(append([]string{s.NoticeID}, s.Later...)), store.CleanText(s.LeaseID), store.CleanText(s.NoticeID))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, pgx.ErrNoRows
	}
	return slices.DeleteFunc(found, func(n store.Notice) bool { return n.ChannelID != found[0].ChannelID }), nil
}

func settle(ctx context.Context, tx pgx.Tx, s store.Settlement, leased []store.Notice) error {
	ids := make([]string, 0, len(leased))
	for _, n := range leased {
		ids = append(ids, n.ID)
	}
	const common = `UPDATE notices SET lease_id = NULL, holder = NULL, leased_until = NULL, `
	switch s.Outcome() {
	case store.OutcomeSent:
		_, err := tx.Exec(ctx, common+`
			attempts = attempts + 1, status = 'sent', ref = CASE WHEN id = $2 THEN $3 ELSE '' END
			WHERE id = ANY ($1)`, ids, ids[0], store.CleanText(s.Ref))
		return err
	case store.OutcomePassed:
		_, err := tx.Exec(ctx, common+`attempts = attempts + 1, status = 'passed' WHERE id = ANY ($1)`, ids)
		return err
	case store.OutcomeRetry:
		tried := 1
		if s.Deferred {
			tried = 0
		}
		_, err := tx.Exec(ctx, common+`attempts = attempts + $3, due_at = $2 WHERE id = ANY ($1)`, ids, s.RetryAt, tried)
		return err
	default:
		if _, err := tx.Exec(ctx, common+`attempts = attempts + 1, status = 'failed' WHERE id = ANY ($1)`, ids); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE channels SET broken = $2, broken_at = $3 WHERE id = $1`, leased[0].ChannelID, s.Reason(), s.At)
		return err
	}
}

// remind keeps the next reminder of the incident of a notice, unless nobody is to be reminded of it.
func remind(ctx context.Context, tx pgx.Tx, n store.Notice, s store.Settlement) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO notices (id, incident_id, channel_id, kind, created_at, due_at)
		SELECT $1, i.id, $3, 'reminder', $4, GREATEST($5, i.snoozed_until)
		FROM incidents i
		WHERE i.id = $2 AND i.resolved_at IS NULL AND i.acknowledged_at IS NULL
		    AND NOT EXISTS (
		        SELECT 1
		        FROM notices w
		        WHERE w.incident_id = i.id AND w.channel_id = $3 AND w.kind = 'reminder' AND w.status = 'waiting'
		    )
		FOR SHARE OF i`, store.NewID("ntc"), n.IncidentID, n.ChannelID, s.At, s.Next)
	return err
}

// Resend implements store.Store.
func (db *DB) Resend(ctx context.Context, noticeID string, now time.Time) error {
	return db.write(ctx, "send notice again", func(tx pgx.Tx) error {
		var status string
		err := tx.QueryRow(ctx, `SELECT status FROM notices WHERE id = $1 FOR UPDATE`, noticeID).Scan(&status)
		if err != nil {
			return err
		}
		if status == "waiting" {
			return store.Conflict{Field: "notice", Message: "is about to be sent already"}
		}
		_, err = tx.Exec(ctx, `UPDATE notices SET status = 'waiting', created_at = $2, due_at = $2, ref = '' WHERE id = $1`, noticeID, now)
		if err != nil {
			return err
		}
		return audit(ctx, tx, "resend", nil, store.AuditNotice(noticeID))
	})
}

// logAttempts writes a line in the log of deliveries for each incident or event that the message was about, under the first of
// its notices.
func logAttempts(ctx context.Context, tx pgx.Tx, s store.Settlement, leased []store.Notice) error {
	var batch pgx.Batch
	told := map[string]bool{}
	for _, n := range leased {
		if n.IncidentID != "" && told[n.IncidentID] {
			continue
		}
		told[n.IncidentID] = true
		batch.Queue(`
			INSERT INTO notice_attempts (notice_id, attempt, at, outcome, error, took_ms)
			VALUES ($1, $2, $3, $4, $5, $6)`, n.ID, n.Attempts+1, s.At, s.Outcome(), s.Reason(), store.Milliseconds(s.Took))
	}
	return send(ctx, tx, &batch)
}

// attemptList is the name of the log of deliveries in its cursors.
const attemptList = "attempts"

// Attempts implements store.Store.
func (db *DB) Attempts(ctx context.Context, f store.AttemptFilter) (store.Page[store.Attempt], error) {
	w, err := whereAttempts(f)
	if err != nil {
		return store.Page[store.Attempt]{}, err
	}
	limit := store.PageLimit(f.Limit)
	scan := func(row pgx.CollectableRow) (a store.Attempt, err error) {
		var took float64
		err = row.Scan(&a.NoticeID, &a.ChannelID, &a.Kind, &a.IncidentID, &a.Slug, &a.Name, &a.Title, &a.Number, &a.At, &a.Outcome, &a.Error, &took)
		a.Took = store.FromMilliseconds(took)
		return a, err
	}
	found, err := query(ctx, db.pool, scan, `
		SELECT a.notice_id, n.channel_id, n.kind, COALESCE(n.incident_id, ''), COALESCE(e.slug, ''), COALESCE(e.name, ''), COALESCE(i.title, ''),
		       a.attempt, a.at, a.outcome, a.error, a.took_ms
		FROM notice_attempts a
		JOIN notices n ON n.id = a.notice_id
		LEFT JOIN incidents i ON i.id = n.incident_id
		LEFT JOIN events v ON v.id = n.event_id
		LEFT JOIN endpoints e ON e.id = COALESCE(i.endpoint_id, v.endpoint_id)
		`+w.String()+`
		ORDER BY a.at DESC, a.notice_id DESC, a.attempt DESC
		LIMIT `+w.arg(limit+1), w.args...)
	if err != nil {
		return store.Page[store.Attempt]{}, explain("list attempts", err)
	}
	return store.PageOf(found, limit, func(a store.Attempt) string {
		return store.TimeCursor(attemptList, a.At, a.Key())
	}), nil
}

func whereAttempts(f store.AttemptFilter) (where, error) {
	var w where
	if f.ChannelID != "" {
		w.and(`n.channel_id = ?`, f.ChannelID)
	}
	if f.IncidentID != "" {
		w.and(`n.incident_id = ?`, f.IncidentID)
	}
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(attemptList, f.Cursor)
		if err != nil {
			return where{}, err
		}
		notice, attempt, err := store.ReadAttemptKey(id)
		if err != nil {
			return where{}, err
		}
		if attempt < 1 || attempt > math.MaxInt32 {
			return where{}, store.ErrBadCursor
		}
		w.and(`(a.at, a.notice_id, a.attempt) < (?, ?, ?)`, at, notice, attempt)
	}
	return w, nil
}

// PendingNotices implements store.Store.
func (db *DB) PendingNotices(ctx context.Context) (int, error) {
	n := 0
	err := db.pool.QueryRow(ctx, `SELECT COUNT(*) FROM notices WHERE status = 'waiting'`).Scan(&n)
	return n, explain("count notices", err)
}

// insertNotices keeps the notices whose channels still exist, which then stay until the transaction ends.
func insertNotices(batch *pgx.Batch, notices []store.Notice) {
	if len(notices) == 0 {
		return
	}
	var ids, incidents, events, entries, channels, kinds []string
	var created, due []time.Time
	for _, n := range notices {
		ids, incidents, events = append(ids, n.ID), append(incidents, n.IncidentID), append(events, n.EventID)
		entries, channels, kinds = append(entries, n.EntryID), append(channels, n.ChannelID), append(kinds, string(n.Kind))
		created, due = append(created, n.CreatedAt), append(due, n.DueAt)
	}
	batch.Queue(`
		INSERT INTO notices (id, incident_id, event_id, entry_id, channel_id, kind, created_at, due_at)
		SELECT v.id, NULLIF(v.incident_id, ''), NULLIF(v.event_id, ''), NULLIF(v.entry_id, ''), c.id, v.kind, v.created_at, v.due_at
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[])
		     WITH ORDINALITY v (id, incident_id, event_id, entry_id, channel_id, kind, created_at, due_at, position)
		JOIN channels c ON c.id = v.channel_id
		ORDER BY v.position
		FOR KEY SHARE OF c`, ids, incidents, events, entries, cleanAll(channels), kinds, created, due)
}
