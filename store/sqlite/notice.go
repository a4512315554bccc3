package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// LeaseNotices implements store.Store. The endpoints of the deliveries come without headers and options.
//
//	LeaseNotices
//	├─ dueNotices       which notices can be handed out, of all of a channel and an incident together
//	│  ├─ firstOfDue    what is due, by the page
//	│  ├─ waitingAlong  what waits beside it
//	│  └─ readyOf       what of that can be told together
//	├─ take             leases them
//	└─ deliveries       what a message needs to know, one for each group
func (db *DB) LeaseNotices(
	ctx context.Context, holder string, now time.Time, lease time.Duration, limit int,
) ([]store.Delivery, error) {
	if limit <= 0 {
		return nil, nil
	}
	var due [][]waitingNotice
	err := db.read(ctx, "look for due notices", func(tx *sql.Tx) error {
		// Asked every second, and most of the time there is nothing: the question proper takes ten times as long to be read alone.
		some := false
		err := tx.QueryRowContext(ctx, `
			SELECT EXISTS (SELECT 1 FROM notices WHERE status = 'waiting' AND due_at <= ?)`, now.UnixMicro()).Scan(&some)
		if err == nil && some {
			due, err = dueNotices(ctx, tx, holder, now, 1)
		}
		return err
	})
	if err != nil || len(due) == 0 {
		return nil, err
	}
	var deliveries []store.Delivery
	err = db.write(ctx, "lease notices", func(tx *sql.Tx) error {
		due, err := dueNotices(ctx, tx, holder, now, limit)
		if err != nil {
			return err
		}
		leaseID, err := take(ctx, tx, due, holder, now.Add(lease))
		if err != nil {
			return err
		}
		deliveries, err = db.deliveries(ctx, tx, due, leaseID, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	return deliveries, nil
}

// waitingNotice is a notice that waits for a channel whose notices can be handed out.
type waitingNotice struct {
	id, channelID, topic string // topic is what it tells of: notices of one topic for one channel are one delivery
	kind                 store.NoticeKind
	seq, dueAt           int64
	attempts             int
	due, leased          bool
	behind               bool // it waits for an endpoint that its own stands behind
}

// dueNotices returns the notices of at most so many deliveries that can be handed out at now, by delivery, those of each oldest
// first. It reads what is due by the page, and only what waits along with that: thousands may wait.
func dueNotices(ctx context.Context, tx *sql.Tx, holder string, now time.Time, limit int) ([][]waitingNotice, error) {
	type delivery struct{ channelID, topic string }
	var all [][]waitingNotice
	seen := map[delivery]bool{}
	page := max(limit, 100)
	for last := (firstDue{}); len(all) < limit; {
		due, err := firstOfDue(ctx, tx, holder, now, last, page)
		if err != nil || len(due) == 0 {
			return all, err
		}
		last = due[len(due)-1]
		waiting, err := waitingAlong(ctx, tx, due, now)
		if err != nil {
			return nil, err
		}
		together := map[delivery][]waitingNotice{}
		for _, n := range waiting {
			if key := (delivery{n.channelID, n.topic}); !seen[key] {
				together[key] = append(together[key], n)
			}
		}
		var more [][]waitingNotice
		for key, notices := range together {
			seen[key] = true
			if ready := readyOf(notices); len(ready) > 0 {
				more = append(more, ready)
			}
		}
		slices.SortFunc(more, func(a, b []waitingNotice) int {
			return cmp.Or(cmp.Compare(soonest(a), soonest(b)), cmp.Compare(a[0].seq, b[0].seq))
		})
		all = append(all, more...)
		if len(due) < page {
			break
		}
	}
	return all[:min(limit, len(all))], nil
}

// firstDue is a notice that is due, by the order in which those are read.
type firstDue struct {
	dueAt, seq int64
	id         string
}

// firstOfDue returns so many notices that are due, and of channels whose notices the holder can have, after the last one.
func firstOfDue(
	ctx context.Context, tx *sql.Tx, holder string, now time.Time, last firstDue, page int,
) ([]firstDue, error) {
	scan := func(row scanner) (n firstDue, err error) {
		err = row.Scan(&n.dueAt, &n.seq, &n.id)
		return n, err
	}
	return query(ctx, tx, scan, `
		SELECT d.due_at, d.seq, d.id
		FROM notices d INDEXED BY notices_waiting
		CROSS JOIN channels c ON c.id = d.channel_id AND c.broken IS NULL
		WHERE d.status = 'waiting' AND d.due_at <= ?1 AND (d.due_at, d.seq) > (?3, ?4)
		    AND (d.leased_until IS NULL OR d.leased_until <= ?1)
		    AND NOT EXISTS (
		        SELECT 1
		        FROM notices h INDEXED BY notices_leased
		        WHERE h.channel_id = c.id AND h.lease_id IS NOT NULL AND h.leased_until > ?1 AND h.holder <> ?2
		    )
		ORDER BY d.due_at, d.seq
		LIMIT ?5`, now.UnixMicro(), holder, last.dueAt, last.seq, page)
}

// waitingAlong returns all notices that wait for the same channels as those that are due and tell of the same.
func waitingAlong(ctx context.Context, tx *sql.Tx, due []firstDue, now time.Time) ([]waitingNotice, error) {
	ids := make([]string, 0, len(due))
	for _, d := range due {
		ids = append(ids, d.id)
	}
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	scan := func(row scanner) (n waitingNotice, err error) {
		err = row.Scan(&n.id, &n.channelID, &n.topic, &n.kind, &n.seq, &n.dueAt, &n.attempts, &n.due, &n.leased, &n.behind)
		return n, err
	}
	return query(ctx, tx, scan, `
		WITH due AS MATERIALIZED (
		    SELECT DISTINCT d.channel_id, d.incident_id, IIF(d.incident_id IS NULL, d.seq, NULL) AS alone
		    FROM json_each(?2) id
		    CROSS JOIN notices d ON d.id = id.value
		), along AS (
		    SELECT n.seq
		    FROM due
		    CROSS JOIN notices n INDEXED BY notices_of_incident
		        ON n.incident_id = due.incident_id AND n.channel_id = due.channel_id AND n.status = 'waiting'
		    UNION ALL
		    SELECT alone FROM due WHERE alone IS NOT NULL -- those of events
		)
		SELECT n.id, n.channel_id, COALESCE(n.incident_id, n.id), n.kind, n.seq, n.due_at, n.attempts,
		    n.due_at <= ?1, COALESCE(n.leased_until > ?1, 0),
		    n.kind = 'opened' AND EXISTS (
		        SELECT 1
		        FROM incidents i
		        CROSS JOIN endpoint_parents p ON p.endpoint_id = i.endpoint_id
		        CROSS JOIN incidents above ON above.subject = p.parent_id AND above.resolved_at IS NULL AND above.severity = 'down'
		        WHERE i.id = n.incident_id AND i.kind = 'endpoint' AND `+speaksFor+`
		    )
		FROM along
		CROSS JOIN notices n ON n.seq = along.seq
		ORDER BY n.seq`, now.UnixMicro(), list)
}

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

// readyOf returns which of the notices of one topic that wait for one channel, oldest first, can be handed out. One is held up
// by an earlier one that is leased, is to be tried again later, or is the opening and not due or waits for a parent. What was
// merely put off so that it can be told along with others is told along with the first that is due after it. What reminds or
// escalates holds up nothing.
func readyOf(notices []waitingNotice) []waitingNotice {
	var free []waitingNotice
	for _, n := range notices {
		if n.leased {
			break
		}
		if !n.behind {
			free = append(free, n)
		}
		if !n.kind.Ahead() && (n.behind || !n.due && (n.kind == store.NoticeOpened || n.attempts > 0)) {
			break
		}
	}
	var ready []waitingNotice
	followed := false
	for _, n := range slices.Backward(free) {
		putOff := !n.kind.Ahead() && n.attempts == 0 && n.kind != store.NoticeOpened
		if n.due || followed && putOff {
			ready = append(ready, n)
		}
		followed = followed || n.due
	}
	slices.Reverse(ready)
	return ready
}

// soonest returns when the first of the notices fell due.
func soonest(notices []waitingNotice) int64 {
	first := notices[0].dueAt
	for _, n := range notices {
		first = min(first, n.dueAt)
	}
	return first
}

// take leases notices.
func take(ctx context.Context, tx *sql.Tx, due [][]waitingNotice, holder string, until time.Time) (leaseID string, err error) {
	var ids []string
	for _, notices := range due {
		for _, n := range notices {
			ids = append(ids, n.id)
		}
	}
	list, err := jsonText(ids)
	if err != nil {
		return "", err
	}
	leaseID = store.NewID("lse")
	_, err = tx.ExecContext(ctx, `
		UPDATE notices
		SET lease_id = ?, holder = ?, leased_until = ?
		WHERE id IN (SELECT value FROM json_each(?))`, leaseID, holder, until.UnixMicro(), list)
	return leaseID, err
}

// deliveries returns what was leased, by delivery.
func (db *DB) deliveries(
	ctx context.Context, tx *sql.Tx, due [][]waitingNotice, leaseID string, now time.Time,
) ([]store.Delivery, error) {
	leased, err := noticesOf(ctx, tx, leaseID)
	if err != nil {
		return nil, err
	}
	all := make([]store.Delivery, 0, len(due))
	for _, notices := range due {
		d := store.Delivery{Notice: leased[notices[0].id], LeaseID: leaseID}
		for _, n := range notices[1:] {
			d.Later = append(d.Later, leased[n.id])
		}
		if err := db.fill(ctx, tx, &d, now); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// noticesOf returns the notices of a lease by id.
func noticesOf(ctx context.Context, tx *sql.Tx, leaseID string) (map[string]store.Notice, error) {
	scan := func(row scanner) (n store.Notice, err error) {
		err = row.Scan(&n.ID, &n.IncidentID, &n.EventID, &n.EntryID, &n.ChannelID, &n.Kind, timeInto{&n.CreatedAt}, timeInto{&n.DueAt}, &n.Attempts)
		return n, err
	}
	found, err := query(ctx, tx, scan, `
		SELECT n.id, COALESCE(n.incident_id, ''), COALESCE(n.event_id, ''), COALESCE(n.entry_id, ''), n.channel_id, n.kind,
		    n.created_at, n.due_at, n.attempts
		FROM notices n
		WHERE n.status = 'waiting' AND n.lease_id = ?`, leaseID)
	if err != nil {
		return nil, err
	}
	notices := make(map[string]store.Notice, len(found))
	for _, n := range found {
		notices[n.ID] = n
	}
	return notices, nil
}

// fill adds to the notices of a delivery what a message needs to know.
func (db *DB) fill(ctx context.Context, tx *sql.Tx, d *store.Delivery, now time.Time) error {
	channel, audience, err := db.anyChannel(ctx, tx, d.Notice.ChannelID)
	if err != nil {
		return err
	}
	d.Channel = channel
	if audience != store.AudienceTeam {
		subscription, err := db.subscription(ctx, tx, `u.id = ?`, channel.ID)
		if err != nil {
			return err
		}
		d.Subscription = &subscription
		if subscription.PageID != "" {
			pages, err := subscribedPages(ctx, tx)
			if err != nil {
				return err
			}
			d.Page = pages[subscription.PageID]
		}
	}
	if d.Notice.EventID != "" {
		return fillEvent(ctx, tx, d)
	}
	return fillIncident(ctx, tx, d, now)
}

func fillEvent(ctx context.Context, tx *sql.Tx, d *store.Delivery) error {
	var ev eventRow
	err := tx.QueryRowContext(ctx, `SELECT `+eventColumns+` FROM events v WHERE v.id = ?`, d.Notice.EventID).Scan(ev.dest()...)
	if err != nil {
		return err
	}
	d.Event = new(ev.event())
	if d.Event.EndpointID == "" {
		return nil
	}
	d.Endpoint, err = bareEndpoint(ctx, tx, d.Event.EndpointID)
	return err
}

func fillIncident(ctx context.Context, tx *sql.Tx, d *store.Delivery, now time.Time) error {
	i, err := incident(ctx, tx, d.Notice.IncidentID)
	if err != nil {
		return err
	}
	d.Incident = i
	if i.EndpointID != "" {
		if d.Endpoint, err = bareEndpoint(ctx, tx, i.EndpointID); err != nil {
			return err
		}
	}
	if d.Entry, err = lastEntry(ctx, tx, *d); err != nil {
		return err
	}
	// Where there was no opening, what told of an escalation is the first message.
	d.Ref, err = firstOr(ctx, tx, "", `
		SELECT n.ref
		FROM notices n
		WHERE n.incident_id = ? AND n.channel_id = ? AND n.kind IN ('opened', 'escalation') AND n.ref <> ''
		ORDER BY n.kind DESC, n.seq DESC
		LIMIT 1`, i.ID, d.Channel.ID)
	if err != nil || i.Kind != store.IncidentEndpoint {
		return err
	}
	if d.Dependents, err = dependents(ctx, tx, *d); err != nil {
		return err
	}
	d.BehindUntil, err = behindUntil(ctx, tx, i, now)
	return err
}

// lastEntry returns the line of the timeline that the last of the notices of a delivery tells of, nil when none names one.
func lastEntry(ctx context.Context, tx *sql.Tx, d store.Delivery) (*store.Entry, error) {
	id := d.Notice.EntryID
	for _, n := range d.Later {
		if n.EntryID != "" {
			id = n.EntryID
		}
	}
	if id == "" {
		return nil, nil
	}
	e, err := scanEntry(tx.QueryRowContext(ctx, `SELECT `+entryColumns+` FROM incident_entries t WHERE t.id = ?`, id))
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// dependents returns the names of the endpoints whose openings wait for the one of a delivery, as far as whoever it is for knows them.
func dependents(ctx context.Context, tx *sql.Tx, d store.Delivery) ([]string, error) {
	if d.Incident.ResolvedAt != nil || d.Incident.Severity != store.StatusDown || d.Incident.Flapping {
		return nil, nil
	}
	scan := func(row scanner) (e store.Endpoint, err error) {
		err = row.Scan(&e.ID, &e.Name, &e.Public, textsInto{&e.Tags})
		return e, err
	}
	found, err := query(ctx, tx, scan, `
		SELECT e.id, e.name, e.public, e.tags
		FROM endpoint_parents p
		JOIN endpoints e ON e.id = p.endpoint_id
		JOIN incidents i ON i.subject = e.id AND i.resolved_at IS NULL
		WHERE p.parent_id = ? AND EXISTS (
		    SELECT 1 FROM notices n WHERE n.incident_id = i.id AND n.kind = 'opened' AND n.status = 'waiting'
		)
		ORDER BY e.name_key`, d.Endpoint.ID)
	var names []string
	for _, e := range found {
		if d.Knows(e) {
			names = append(names, e.Name)
		}
	}
	return names, err
}

// behindSoon is how long after an endpoint one that it stands behind may be found down.
const behindSoon = time.Minute

// behindUntil returns store.Delivery.BehindUntil.
func behindUntil(ctx context.Context, tx *sql.Tx, i store.Incident, now time.Time) (until time.Time, err error) {
	err = tx.QueryRowContext(ctx, `
		SELECT MAX(COALESCE(above.resolved_at, CASE above.severity WHEN 'down' THEN ?1 ELSE (
		    SELECT MAX(t.at) FROM incident_entries t WHERE t.incident_id = above.id AND t.severity <> ''
		) END))
		FROM endpoint_parents p
		JOIN incidents above ON above.endpoint_id = p.parent_id AND above.kind = 'endpoint'
		WHERE p.endpoint_id = ?2 AND `+speaksFor+` AND (
		    above.resolved_at IS NULL AND above.severity = 'down'
		    OR above.worst = 'down' AND above.started_at <= ?4 AND COALESCE(above.resolved_at, ?1) > ?3
		)`, now.UnixMicro(), i.EndpointID, i.OpenedAt.UnixMicro(), i.OpenedAt.Add(behindSoon).UnixMicro()).Scan(timeInto{&until})
	return until, err
}

// SettleNotice implements store.Store. A lease that ran out and that nobody else took may still be settled: the message
// is out, sending it again would help nobody.
func (db *DB) SettleNotice(ctx context.Context, s store.Settlement) error {
	if err := s.Validate(); err != nil {
		return err
	}
	return db.write(ctx, "settle notice", func(tx *sql.Tx) error {
		leased, err := leasedBy(ctx, tx, s)
		if err != nil {
			return err
		}
		if len(leased) == 0 {
			return store.ErrNotFound
		}
		if err := settle(ctx, tx, s, leased); err != nil {
			return err
		}
		if err := logAttempts(ctx, tx, s, leased); err != nil || !s.Sent || s.Next.IsZero() {
			return err
		}
		return remindNext(ctx, tx, s, leased[0])
	})
}

// leasedNotice is a notice that is being settled.
type leasedNotice struct {
	id, incidentID, channelID string
	attempts                  int
}

// leasedBy returns the notices of a settlement that are leased still, that of the settlement itself first.
func leasedBy(ctx context.Context, tx *sql.Tx, s store.Settlement) ([]leasedNotice, error) {
	list, err := jsonText(append([]string{s.NoticeID}, s.Later...))
	if err != nil {
		return nil, err
	}
	scan := func(row scanner) (n leasedNotice, err error) {
		err = row.Scan(&n.id, &n.incidentID, &n.channelID, &n.attempts)
		return n, err
	}
	return query(ctx, tx, scan, `
		SELECT n.id, COALESCE(n.incident_id, ''), n.channel_id, n.attempts
		FROM notices n
		WHERE n.id IN (SELECT value FROM json_each(?)) AND n.lease_id = ? AND n.status = 'waiting'
		ORDER BY n.id <> ?, n.seq`, list, s.LeaseID, s.NoticeID)
}

func settle(ctx context.Context, tx *sql.Tx, s store.Settlement, leased []leasedNotice) error {
	ids := make([]string, 0, len(leased))
	for _, n := range leased {
		ids = append(ids, n.id)
	}
	list, err := jsonText(ids)
	if err != nil {
		return err
	}
	tried := 1
	if s.Deferred {
		tried = 0
	}
	const common = `UPDATE notices SET attempts = attempts + ?, lease_id = NULL, holder = NULL, leased_until = NULL, `
	const those = ` WHERE id IN (SELECT value FROM json_each(?))`
	switch s.Outcome() {
	case store.OutcomeSent:
		_, err = tx.ExecContext(ctx, common+`status = 'sent', ref = IIF(id = ?, ?, '')`+those, tried, leased[0].id, store.CleanText(s.Ref), list)
	case store.OutcomePassed:
		_, err = tx.ExecContext(ctx, common+`status = 'passed'`+those, tried, list)
	case store.OutcomeRetry:
		_, err = tx.ExecContext(ctx, common+`due_at = ?`+those, tried, s.RetryAt.UnixMicro(), list)
	default:
		if _, err = tx.ExecContext(ctx, common+`status = 'failed'`+those, tried, list); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE channels SET broken = ?, broken_at = ? WHERE id = ?`,
			s.Reason(), s.At.UnixMicro(), leased[0].channelID)
	}
	return err
}

// logAttempts writes a line in the log of deliveries for each incident or event that the message was about, under the first of
// its notices, unless nothing was tried.
func logAttempts(ctx context.Context, tx *sql.Tx, s store.Settlement, leased []leasedNotice) error {
	if s.Deferred {
		return nil
	}
	told := map[string]bool{}
	for _, n := range leased {
		if n.incidentID != "" && told[n.incidentID] {
			continue
		}
		told[n.incidentID] = true
		_, err := tx.ExecContext(ctx, `
			INSERT INTO notice_attempts (notice_id, attempt, at, outcome, error, took_ms)
			VALUES (?, ?, ?, ?, ?, ?)`, n.id, n.attempts+1, s.At.UnixMicro(), s.Outcome(), s.Reason(), store.Milliseconds(s.Took))
		if err != nil {
			return err
		}
	}
	return nil
}

// remindNext keeps the next reminder of an incident for a channel, unless nobody needs it or there is one.
func remindNext(ctx context.Context, tx *sql.Tx, s store.Settlement, n leasedNotice) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO notices (id, incident_id, channel_id, kind, created_at, due_at)
		SELECT ?, i.id, ?2, 'reminder', ?, MAX(?, COALESCE(i.snoozed_until, 0))
		FROM incidents i
		WHERE i.id = ? AND i.resolved_at IS NULL AND i.acknowledged_at IS NULL AND NOT EXISTS (
		    SELECT 1
		    FROM notices n
		    WHERE n.incident_id = i.id AND n.channel_id = ?2 AND n.kind = 'reminder' AND n.status = 'waiting'
		)`, store.NewID("ntc"), n.channelID, s.At.UnixMicro(), s.Next.UnixMicro(), n.incidentID)
	return err
}

// Resend implements store.Store.
func (db *DB) Resend(ctx context.Context, noticeID string, now time.Time) error {
	return db.write(ctx, "send notice again", func(tx *sql.Tx) error {
		var status string
		err := tx.QueryRowContext(ctx, `SELECT status FROM notices WHERE id = ?`, noticeID).Scan(&status)
		if err != nil {
			return notFound(err)
		}
		if status == "waiting" {
			return store.Conflict{Field: "notice", Message: "is about to be sent already"}
		}
		_, err = tx.ExecContext(ctx, `
			UPDATE notices
			SET status = 'waiting', created_at = ?1, due_at = ?1, ref = '', lease_id = NULL, holder = NULL, leased_until = NULL
			WHERE id = ?2`, now.UnixMicro(), noticeID)
		if err != nil {
			return err
		}
		return audit(ctx, tx, "resend", nil, store.AuditNotice(noticeID))
	})
}

// attemptList is the name of the list of attempts in its cursors.
const attemptList = "attempts"

// Attempts implements store.Store.
func (db *DB) Attempts(ctx context.Context, f store.AttemptFilter) (store.Page[store.Attempt], error) {
	var w where
	if f.ChannelID != "" {
		w.and(`n.channel_id = ?`, f.ChannelID)
	}
	if f.IncidentID != "" {
		w.and(`n.incident_id = ?`, f.IncidentID)
	}
	if f.Cursor != "" {
		at, key, err := store.ReadTimeCursor(attemptList, f.Cursor)
		if err != nil {
			return store.Page[store.Attempt]{}, err
		}
		id, number, err := store.ReadAttemptKey(key)
		if err != nil {
			return store.Page[store.Attempt]{}, err
		}
		w.and(`(a.at, a.notice_id, a.attempt) < (?, ?, ?)`, at.UnixMicro(), id, number)
	}
	limit := store.PageLimit(f.Limit)
	var found []store.Attempt
	err := db.read(ctx, "list attempts", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanAttempt, `
			SELECT a.notice_id, n.channel_id, n.kind, COALESCE(n.incident_id, ''), COALESCE(e.slug, ''), COALESCE(e.name, ''), COALESCE(i.title, ''),
			    a.attempt, a.at, a.outcome, a.error, a.took_ms
			FROM notice_attempts a
			JOIN notices n ON n.id = a.notice_id
			LEFT JOIN incidents i ON i.id = n.incident_id
			LEFT JOIN events v ON v.id = n.event_id
			LEFT JOIN endpoints e ON e.id = COALESCE(i.endpoint_id, v.endpoint_id)
			`+w.String()+`
			ORDER BY a.at DESC, a.notice_id DESC, a.attempt DESC
			LIMIT ?`, append(w.args, limit+1)...)
		return err
	})
	if err != nil {
		return store.Page[store.Attempt]{}, err
	}
	return store.PageOf(found, limit, func(a store.Attempt) string { return store.TimeCursor(attemptList, a.At, a.Key()) }), nil
}

func scanAttempt(row scanner) (store.Attempt, error) {
	var a store.Attempt
	var took float64
	err := row.Scan(&a.NoticeID, &a.ChannelID, &a.Kind, &a.IncidentID, &a.Slug, &a.Name, &a.Title, &a.Number, timeInto{&a.At}, &a.Outcome, &a.Error, &took)
	a.Took = store.FromMilliseconds(took)
	return a, err
}

// PendingNotices implements store.Store.
func (db *DB) PendingNotices(ctx context.Context) (int, error) {
	n := 0
	err := db.read(ctx, "count notices", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM notices WHERE status = 'waiting'`).Scan(&n)
	})
	return n, err
}

// insertNotices keeps the notices whose channels still exist.
func insertNotices(ctx context.Context, tx *sql.Tx, notices []store.Notice) error {
	var args [][]any
	for _, n := range notices {
		args = append(args, []any{
			n.ID, n.IncidentID, n.EventID, n.EntryID, n.Kind, n.CreatedAt.UnixMicro(), n.DueAt.UnixMicro(), n.ChannelID,
		})
	}
	return execEach(ctx, tx, `
		INSERT INTO notices (id, incident_id, event_id, entry_id, channel_id, kind, created_at, due_at)
		SELECT ?, NULLIF(?, ''), NULLIF(?, ''), NULLIF(?, ''), c.id, ?, ?, ?
		FROM channels c
		WHERE c.id = ?`, args)
}

// firstOr returns the text that a query finds, or another one when it finds none.
func firstOr(ctx context.Context, tx *sql.Tx, otherwise, text string, args ...any) (string, error) {
	found, err := query(ctx, tx, scanString, text, args...)
	if err != nil || len(found) == 0 {
		return otherwise, err
	}
	return found[0], nil
}

// bareEndpoint returns an endpoint without its headers, options and command.
func bareEndpoint(ctx context.Context, tx *sql.Tx, id string) (store.Endpoint, error) {
	return scanBare(tx.QueryRowContext(ctx, `SELECT `+endpointColumns+` FROM endpoints e WHERE e.id = ?`, id))
}

func scanBare(row scanner) (store.Endpoint, error) {
	var e endpointRow
	err := row.Scan(e.dest()...)
	return e.bare(), err
}
