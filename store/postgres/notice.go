package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// LeaseNotices implements store.Store. The endpoints of the deliveries come without headers and options.
func (db *DB) LeaseNotices(ctx context.Context, now time.Time, lease time.Duration, limit int) ([]store.Delivery, error) {
	if limit <= 0 {
		return nil, nil
	}
	due, err := query(ctx, db.pool, pgx.RowTo[string], dueNotices, now, 1)
	if err != nil || len(due) == 0 {
		return nil, explain("look for due notices", err)
	}
	var deliveries []store.Delivery
	err = db.write(ctx, "lease notices", func(tx pgx.Tx) (err error) {
		deliveries, err = db.lease(ctx, tx, now, now.Add(lease), limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return deliveries, nil
}

// dueNotices selects the ids of at most $2 notices that can be handed out at $1.
const dueNotices = `
	SELECT n.id
	FROM notices n
	JOIN channels c ON c.id = n.channel_id
	WHERE n.status = 'waiting'
	    AND n.due_at <= $1
	    AND (n.leased_until IS NULL OR n.leased_until <= $1)
	    AND c.broken IS NULL
	    AND NOT EXISTS (
	        -- What the channel must hear first.
	        SELECT 1
	        FROM notices earlier
	        WHERE earlier.incident_id = n.incident_id
	            AND earlier.channel_id = n.channel_id
	            AND earlier.status = 'waiting'
	            AND earlier.seq < n.seq
	    )
	ORDER BY n.due_at, n.seq
	LIMIT $2`

func (db *DB) lease(ctx context.Context, tx pgx.Tx, now, until time.Time, limit int) ([]store.Delivery, error) {
	// What another caller is about to lease is passed over.
	ids, err := query(ctx, tx, pgx.RowTo[string], dueNotices+` FOR UPDATE OF n SKIP LOCKED`, now, limit)
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `UPDATE notices SET lease_id = $1, leased_until = $2 WHERE id = ANY ($3)`,
		store.NewID("lse"), until, ids)
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
		WHERE n.id = ANY ($1)`, ids)
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
		WHERE n.id = ANY ($1)`, ids)
	if err != nil || len(ofIncidents)+len(ofEvents) == len(ids) {
		return inOrder(append(ofIncidents, ofEvents...), ids), err
	}
	ofService, err := query(ctx, tx, db.scanServiceDelivery, `
		SELECT `+noticeColumns+`,
		    `+eventColumns+`, `+channelColumns+`
		FROM notices n
		JOIN events v ON v.id = n.event_id
		JOIN channels c ON c.id = n.channel_id
		WHERE n.id = ANY ($1) AND v.endpoint_id IS NULL`, ids)
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
		&n.ID, &n.IncidentID, &n.EventID, &n.ChannelID, &n.Kind, &n.CreatedAt, &n.DueAt, &n.Attempts, &d.LeaseID,
	}
}

func (db *DB) scanDelivery(row pgx.CollectableRow) (store.Delivery, error) {
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

func (db *DB) scanEventDelivery(row pgx.CollectableRow) (store.Delivery, error) {
	d := store.Delivery{Event: &store.Event{}}
	var e endpointRow
	var c channelRow
	err := row.Scan(slices.Concat(noticeDest(&d), eventDest(d.Event), e.dest(), c.dest())...)
	if err != nil {
		return store.Delivery{}, err
	}
	d.Endpoint = e.bare()
	d.Channel, err = c.channel(db.sealer)
	return d, err
}

func (db *DB) scanServiceDelivery(row pgx.CollectableRow) (store.Delivery, error) {
	d := store.Delivery{Event: &store.Event{}}
	var c channelRow
	err := row.Scan(slices.Concat(noticeDest(&d), eventDest(d.Event), c.dest())...)
	if err != nil {
		return store.Delivery{}, err
	}
	d.Channel, err = c.channel(db.sealer)
	return d, err
}

// SettleNotice implements store.Store. A lease that ran out and that nobody else took may still be settled: the message
// is out, sending it again would help nobody.
func (db *DB) SettleNotice(ctx context.Context, s store.Settlement) error {
	if err := s.Validate(); err != nil {
		return err
	}
	return db.write(ctx, "settle notice", func(tx pgx.Tx) error {
		var attempts int
		var channelID string
		err := tx.QueryRow(ctx, `
			SELECT attempts, channel_id
			FROM notices
			WHERE id = $1 AND lease_id = $2 AND status = 'waiting'
			FOR UPDATE`, s.NoticeID, s.LeaseID).Scan(&attempts, &channelID)
		if err != nil {
			return err
		}
		if err := settle(ctx, tx, s, channelID); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO notice_attempts (notice_id, attempt, at, outcome, error)
			VALUES ($1, $2, $3, $4, $5)`, s.NoticeID, attempts+1, s.At, s.Outcome(), s.Reason())
		return err
	})
}

func settle(ctx context.Context, tx pgx.Tx, s store.Settlement, channelID string) error {
	const common = `UPDATE notices SET attempts = attempts + 1, lease_id = NULL, leased_until = NULL, `
	switch s.Outcome() {
	case store.OutcomeSent:
		_, err := tx.Exec(ctx, common+`status = 'sent', ref = $2 WHERE id = $1`, s.NoticeID, store.CleanText(s.Ref))
		return err
	case store.OutcomeRetry:
		_, err := tx.Exec(ctx, common+`due_at = $2 WHERE id = $1`, s.NoticeID, s.RetryAt)
		return err
	default:
		if _, err := tx.Exec(ctx, common+`status = 'failed' WHERE id = $1`, s.NoticeID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE channels SET broken = $2, broken_at = $3 WHERE id = $1`, channelID, s.Reason(), s.At)
		return err
	}
}

// PendingNotices implements store.Store.
func (db *DB) PendingNotices(ctx context.Context) (int, error) {
	n := 0
	err := db.pool.QueryRow(ctx, `SELECT COUNT(*) FROM notices WHERE status = 'waiting'`).Scan(&n)
	return n, explain("count notices", err)
}

// insertNotices keeps the notices whose channels still exist, which then stay until the transaction ends.
func insertNotices(batch *pgx.Batch, notices []store.Notice) {
	for _, n := range notices {
		batch.Queue(`
			INSERT INTO notices (id, incident_id, event_id, channel_id, kind, created_at, due_at)
			SELECT $1, NULLIF($2, ''), NULLIF($3, ''), c.id, $5, $6, $7
			FROM channels c
			WHERE c.id = $4
			FOR KEY SHARE`, n.ID, n.IncidentID, n.EventID, n.ChannelID, n.Kind, n.CreatedAt, n.DueAt)
	}
}
