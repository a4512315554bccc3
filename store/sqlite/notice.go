package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// LeaseNotices implements store.Store. The endpoints of the deliveries come without headers and options.
func (db *DB) LeaseNotices(ctx context.Context, now time.Time, lease time.Duration, limit int) ([]store.Delivery, error) {
	if limit <= 0 {
		return nil, nil
	}
	var due []string
	err := db.read(ctx, "look for due notices", func(tx *sql.Tx) (err error) {
		due, err = dueNotices(ctx, tx, now, 1)
		return err
	})
	if err != nil || len(due) == 0 {
		return nil, err
	}
	var deliveries []store.Delivery
	err = db.write(ctx, "lease notices", func(tx *sql.Tx) (err error) {
		if due, err = dueNotices(ctx, tx, now, limit); err != nil {
			return err
		}
		deliveries, err = db.lease(ctx, tx, due, now.Add(lease))
		return err
	})
	if err != nil {
		return nil, err
	}
	return deliveries, nil
}

// dueNotices returns the ids of notices that can be handed out at now.
func dueNotices(ctx context.Context, tx *sql.Tx, now time.Time, limit int) ([]string, error) {
	return query(ctx, tx, scanString, `
		SELECT n.id
		FROM notices n
		JOIN channels c ON c.id = n.channel_id
		WHERE n.status = 'waiting'
		    AND n.due_at <= ?1
		    AND (n.leased_until IS NULL OR n.leased_until <= ?1)
		    AND c.broken IS NULL
		    AND NOT EXISTS (
		        -- What the channel must hear first. The plus keeps SQLite from walking all notices of the channel.
		        SELECT 1
		        FROM notices earlier
		        WHERE earlier.incident_id = n.incident_id
		            AND earlier.channel_id = n.channel_id
		            AND earlier.status = 'waiting'
		            AND +earlier.seq < n.seq
		    )
		ORDER BY n.due_at, n.seq
		LIMIT ?2`, now.UnixMicro(), limit)
}

func (db *DB) lease(ctx context.Context, tx *sql.Tx, ids []string, until time.Time) ([]store.Delivery, error) {
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	leaseID := store.NewID("lse")
	_, err = tx.ExecContext(ctx, `
		UPDATE notices
		SET lease_id = ?, leased_until = ?
		WHERE id IN (SELECT value FROM json_each(?))`, leaseID, until.UnixMicro(), list)
	if err != nil {
		return nil, err
	}
	ofIncidents, err := query(ctx, tx, db.scanDelivery, `
		SELECT `+noticeColumns+`,
		    `+incidentColumns+`, `+endpointColumns+`, `+channelColumns+`,
		    COALESCE((
		        SELECT opening.ref
		        FROM notices opening
		        WHERE opening.incident_id = n.incident_id AND opening.channel_id = n.channel_id AND opening.kind = 'opened'
		    ), '')
		FROM notices n
		JOIN incidents i ON i.id = n.incident_id
		JOIN endpoints e ON e.id = i.endpoint_id
		JOIN channels c ON c.id = n.channel_id
		WHERE n.id IN (SELECT value FROM json_each(?))`, list)
	if err != nil || len(ofIncidents) == len(ids) {
		return inOrder(ofIncidents, ids), err
	}
	ofEvents, err := query(ctx, tx, db.scanEventDelivery, `
		SELECT `+noticeColumns+`,
		    `+eventColumns+`, `+endpointColumns+`, `+channelColumns+`
		FROM notices n
		JOIN events v ON v.id = n.event_id
		JOIN endpoints e ON e.id = v.endpoint_id
		JOIN channels c ON c.id = n.channel_id
		WHERE n.id IN (SELECT value FROM json_each(?))`, list)
	if err != nil {
		return nil, err
	}
	ofService, err := query(ctx, tx, db.scanServiceDelivery, `
		SELECT `+noticeColumns+`,
		    `+eventColumns+`, `+channelColumns+`
		FROM notices n
		JOIN events v ON v.id = n.event_id AND v.endpoint_id IS NULL
		JOIN channels c ON c.id = n.channel_id
		WHERE n.id IN (SELECT value FROM json_each(?))`, list)
	return inOrder(slices.Concat(ofIncidents, ofEvents, ofService), ids), err
}

// inOrder sorts deliveries as the ids of their notices are.
func inOrder(deliveries []store.Delivery, ids []string) []store.Delivery {
	slices.SortFunc(deliveries, func(a, b store.Delivery) int {
		return slices.Index(ids, a.Notice.ID) - slices.Index(ids, b.Notice.ID)
	})
	return deliveries
}

// noticeColumns are what noticeDest takes, of notices n.
const noticeColumns = `
	n.id, COALESCE(n.incident_id, ''), COALESCE(n.event_id, ''), n.channel_id, n.kind, n.created_at, n.due_at, n.attempts,
	n.lease_id`

func noticeDest(d *store.Delivery) []any {
	n := &d.Notice
	return []any{
		&n.ID, &n.IncidentID, &n.EventID, &n.ChannelID, &n.Kind, timeInto{&n.CreatedAt}, timeInto{&n.DueAt}, &n.Attempts, &d.LeaseID,
	}
}

func (db *DB) scanDelivery(row scanner) (store.Delivery, error) {
	var (
		d store.Delivery
		e endpointRow
		c channelRow
	)
	err := row.Scan(slices.Concat(noticeDest(&d), incidentDest(&d.Incident), e.dest(), c.dest(), []any{&d.Ref})...)
	if err != nil {
		return store.Delivery{}, err
	}
	d.Endpoint = e.bare()
	d.Channel, err = c.channel(db.sealer)
	return d, err
}

func (db *DB) scanEventDelivery(row scanner) (store.Delivery, error) {
	var (
		d  store.Delivery
		ev eventRow
		e  endpointRow
		c  channelRow
	)
	err := row.Scan(slices.Concat(noticeDest(&d), ev.dest(), e.dest(), c.dest())...)
	if err != nil {
		return store.Delivery{}, err
	}
	d.Event, d.Endpoint = new(ev.event()), e.bare()
	d.Channel, err = c.channel(db.sealer)
	return d, err
}

// scanServiceDelivery scans the delivery of an event of no endpoint.
func (db *DB) scanServiceDelivery(row scanner) (store.Delivery, error) {
	var (
		d  store.Delivery
		ev eventRow
		c  channelRow
	)
	if err := row.Scan(slices.Concat(noticeDest(&d), ev.dest(), c.dest())...); err != nil {
		return store.Delivery{}, err
	}
	d.Event = new(ev.event())
	channel, err := c.channel(db.sealer)
	d.Channel = channel
	return d, err
}

// SettleNotice implements store.Store. A lease that ran out and that nobody else took may still be settled: the message
// is out, sending it again would help nobody.
func (db *DB) SettleNotice(ctx context.Context, s store.Settlement) error {
	if err := s.Validate(); err != nil {
		return err
	}
	return db.write(ctx, "settle notice", func(tx *sql.Tx) error {
		var attempts int
		var channelID string
		err := tx.QueryRowContext(ctx, `
			SELECT attempts, channel_id
			FROM notices
			WHERE id = ? AND lease_id = ? AND status = 'waiting'`, s.NoticeID, s.LeaseID).Scan(&attempts, &channelID)
		if err != nil {
			return notFound(err)
		}
		if err := settle(ctx, tx, s, channelID); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO notice_attempts (notice_id, attempt, at, outcome, error)
			VALUES (?, ?, ?, ?, ?)`, s.NoticeID, attempts+1, s.At.UnixMicro(), s.Outcome(), s.Reason())
		return err
	})
}

func settle(ctx context.Context, tx *sql.Tx, s store.Settlement, channelID string) error {
	const common = `UPDATE notices SET attempts = attempts + 1, lease_id = NULL, leased_until = NULL, `
	switch s.Outcome() {
	case store.OutcomeSent:
		_, err := tx.ExecContext(ctx, common+`status = 'sent', ref = ? WHERE id = ?`, store.CleanText(s.Ref), s.NoticeID)
		return err
	case store.OutcomeRetry:
		_, err := tx.ExecContext(ctx, common+`due_at = ? WHERE id = ?`, s.RetryAt.UnixMicro(), s.NoticeID)
		return err
	default:
		if _, err := tx.ExecContext(ctx, common+`status = 'failed' WHERE id = ?`, s.NoticeID); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE channels SET broken = ?, broken_at = ? WHERE id = ?`,
			s.Reason(), s.At.UnixMicro(), channelID)
		return err
	}
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
		args = append(args, []any{n.ID, n.IncidentID, n.EventID, n.Kind, n.CreatedAt.UnixMicro(), n.DueAt.UnixMicro(), n.ChannelID})
	}
	return execEach(ctx, tx, `
		INSERT INTO notices (id, incident_id, event_id, channel_id, kind, created_at, due_at)
		SELECT ?, NULLIF(?, ''), NULLIF(?, ''), c.id, ?, ?, ?
		FROM channels c
		WHERE c.id = ?`, args)
}
