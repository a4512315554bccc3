package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// CreateSubscription implements store.Store.
func (db *DB) CreateSubscription(ctx context.Context, s store.Subscription) (store.Subscription, error) {
	s, err := store.EnrollSubscription(s, time.Now())
	if err != nil {
		return store.Subscription{}, err
	}
	err = db.write(ctx, "create subscription", func(tx pgx.Tx) error {
		if err := checkAddress(ctx, tx, s); err != nil {
			return err
		}
		quiet, err := quietText(s.Quiet)
		if err != nil {
			return err
		}
		if err := db.insertChannel(ctx, tx, s.Channel, s.Audience()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO subscriptions (
			    id, user_id, page_id, everything, endpoints, tags, severities, quiet, confirmed_at, confirm_hash, manage_hash,
			    address_hash, created_at
			) VALUES ($1, NULLIF($2, ''), NULLIF($3, ''), $4, $5, $6, $7, $8::text::json, $9, $10, $11, $12, $13)`,
			s.ID, s.UserID, s.PageID, s.All, notNil(s.Endpoints), notNil(s.Tags), severityTexts(s.Severities), quiet, s.ConfirmedAt,
			s.ConfirmHash, s.ManageHash, store.AddressHash(s.Address()), s.CreatedAt)
		if err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, s)
	})
	if err != nil {
		return store.Subscription{}, err
	}
	return s, nil
}

// UpdateSubscription implements store.Store. change may be called again when the transaction got in another's way.
func (db *DB) UpdateSubscription(
	ctx context.Context, id string, change func(*store.Subscription) error,
) (s store.Subscription, err error) {
	err = db.write(ctx, "update subscription", func(tx pgx.Tx) error {
		before, err := queryOne(ctx, tx, db.scanSubscription, selectSubscriptions+` WHERE s.id = $1 FOR NO KEY UPDATE`, id)
		if err != nil {
			return err
		}
		if s, err = store.EditSubscription(before, change, time.Now()); err != nil {
			return err
		}
		if err := checkAddress(ctx, tx, s); err != nil {
			return err
		}
		if err := db.updateSubscription(ctx, tx, s); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditUpdate, before, s)
	})
	if err != nil {
		return store.Subscription{}, err
	}
	return s, nil
}

func (db *DB) updateSubscription(ctx context.Context, tx pgx.Tx, s store.Subscription) error {
	quiet, err := quietText(s.Quiet)
	if err != nil {
		return err
	}
	c := s.Channel
	settings, secrets, err := db.channelForms(c)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		UPDATE channels
		SET name = $2, name_key = $3, type = $4, settings = $5, secrets = $6, broken = NULLIF($7, ''), broken_at = $8,
		    updated_at = $9, audience = $10
		WHERE id = $1`,
		c.ID, c.Name, store.Fold(c.Name), c.Type, settings, secrets, c.Broken, c.BrokenAt, c.UpdatedAt, s.Audience())
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		UPDATE subscriptions
		SET user_id = NULLIF($2, ''), everything = $3, endpoints = $4, tags = $5, severities = $6, quiet = $7::text::json,
		    confirmed_at = $8, confirm_hash = $9, manage_hash = $10, address_hash = $11
		WHERE id = $1`,
		s.ID, s.UserID, s.All, notNil(s.Endpoints), notNil(s.Tags), severityTexts(s.Severities), quiet, s.ConfirmedAt,
		s.ConfirmHash, s.ManageHash, store.AddressHash(s.Address()))
	return err
}

// checkAddress makes sure that the address is not subscribed already by the same member, or by the public on the same page, and stays
// so until the transaction ends, as do the member and the page that it is of.
func checkAddress(ctx context.Context, tx pgx.Tx, s store.Subscription) error {
	if err := lock(ctx, tx, lockNames); err != nil {
		return err
	}
	var taken bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (
		    SELECT 1
		    FROM subscriptions
		    WHERE address_hash = $1 AND COALESCE(user_id, '') = $2 AND COALESCE(page_id, '') = $3 AND id <> $4
		)`, store.AddressHash(s.Address()), s.UserID, s.PageID, s.ID).Scan(&taken)
	if err == nil && taken {
		err = store.Conflict{Field: "address", Message: "is subscribed already"}
	}
	if err != nil {
		return err
	}
	var id string
	switch {
	case s.PageID != "":
		return tx.QueryRow(ctx, `SELECT id FROM status_pages WHERE id = $1 FOR KEY SHARE`, s.PageID).Scan(&id)
	case s.Public():
		return nil
	}
	return tx.QueryRow(ctx, `SELECT id FROM users WHERE id = $1 FOR KEY SHARE`, s.UserID).Scan(&id)
}

// ConfirmSubscription implements store.Store.
func (db *DB) ConfirmSubscription(
	ctx context.Context, id string, hash []byte, caps store.SubscriptionCaps,
) (s store.Subscription, err error) {
	err = db.write(ctx, "confirm subscription", func(tx pgx.Tx) error {
		before, err := queryOne(ctx, tx, db.scanSubscription, selectSubscriptions+` WHERE s.id = $1 FOR NO KEY UPDATE`, id)
		if err != nil {
			return err
		}
		if err := lock(ctx, tx, lockNames); err != nil { // nobody else is confirmed while we count
			return err
		}
		crowd, err := db.crowd(ctx, tx, before)
		if err != nil {
			return err
		}
		if s, err = before.Confirm(hash, crowd, caps, time.Now()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE subscriptions SET confirmed_at = $2, confirm_hash = NULL WHERE id = $1`, id, s.ConfirmedAt)
		return err
	})
	if err != nil {
		return store.Subscription{}, err
	}
	return s, nil
}

// Crowd implements store.Store.
func (db *DB) Crowd(ctx context.Context, s store.Subscription) (crowd store.Crowd, err error) {
	err = db.read(ctx, "count subscriptions", func(tx pgx.Tx) (err error) {
		crowd, err = db.crowd(ctx, tx, s)
		return err
	})
	return crowd, err
}

// crowd counts mails in the database. Receivers are named in what is sealed; caps keep those few.
func (db *DB) crowd(ctx context.Context, tx pgx.Tx, s store.Subscription) (store.Crowd, error) {
	const confirmed = `
		FROM channels c
		JOIN subscriptions u ON u.id = c.id AND u.confirmed_at IS NOT NULL
		WHERE c.audience = 'public'`
	if s.Channel.Type == store.ChannelEmail {
		var crowd store.Crowd
		err := tx.QueryRow(ctx, `SELECT count(*)`+confirmed+` AND c.type = $1 AND c.id <> $2`, s.Channel.Type, s.ID).Scan(&crowd.Mailed)
		return crowd, err
	}
	posted, err := query(ctx, tx, db.scanChannel, `SELECT `+channelColumns+confirmed+` AND c.type <> $1`, store.ChannelEmail)
	return store.CrowdAt(s, posted), err
}

// leaveEndpoint takes an endpoint that goes from what names it. What named nothing else covers nothing.
func leaveEndpoint(ctx context.Context, tx pgx.Tx, endpointID string) error {
	for _, table := range []string{"maintenances", "subscriptions"} {
		_, err := tx.Exec(ctx, `UPDATE `+table+` SET endpoints = array_remove(endpoints, $1) WHERE $1 = ANY (endpoints)`, endpointID)
		if err != nil {
			return err
		}
	}
	return nil
}

// DeleteSubscription implements store.Store.
func (db *DB) DeleteSubscription(ctx context.Context, id string) error {
	return db.write(ctx, "delete subscription", func(tx pgx.Tx) error {
		s, err := queryOne(ctx, tx, db.scanSubscription, selectSubscriptions+` WHERE s.id = $1`, id)
		if err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM channels WHERE id = $1`, id); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, s, nil)
	})
}

// PruneSubscriptions implements store.Store.
func (db *DB) PruneSubscriptions(ctx context.Context, before time.Time) (int, error) {
	pruned := 0
	err := db.write(ctx, "prune subscriptions", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			DELETE FROM channels
			WHERE id IN (SELECT id FROM subscriptions WHERE confirmed_at IS NULL AND created_at < $1)`, before)
		pruned = int(tag.RowsAffected())
		return err
	})
	return pruned, err
}

// Subscription implements store.Store.
func (db *DB) Subscription(ctx context.Context, id string) (store.Subscription, error) {
	s, err := queryOne(ctx, db.pool, db.scanSubscription, selectSubscriptions+` WHERE s.id = $1`, id)
	return s, explain("read subscription", err)
}

// SubscriptionByToken implements store.Store.
func (db *DB) SubscriptionByToken(ctx context.Context, hash []byte) (store.Subscription, error) {
	s, err := queryOne(ctx, db.pool, db.scanSubscription, selectSubscriptions+` WHERE s.confirm_hash = $1 OR s.manage_hash = $1`, hash)
	return s, explain("look for subscription", err)
}

// subscriptionList is the name of the list of subscriptions in its cursors.
const subscriptionList = "subscriptions"

// Subscriptions implements store.Store.
func (db *DB) Subscriptions(ctx context.Context, f store.SubscriptionFilter) (store.Page[store.Subscription], error) {
	w, err := whereSubscriptions(f)
	if err != nil {
		return store.Page[store.Subscription]{}, err
	}
	limit := store.PageLimit(f.Limit)
	text := selectSubscriptions + `
		` + w.String() + `
		ORDER BY s.created_at DESC, s.id DESC
		LIMIT ` + w.arg(limit+1)
	found, err := query(ctx, db.pool, db.scanSubscription, text, w.args...)
	if err != nil {
		return store.Page[store.Subscription]{}, explain("list subscriptions", err)
	}
	return store.PageOf(found, limit, func(s store.Subscription) string {
		return store.TimeCursor(subscriptionList, s.CreatedAt, s.ID)
	}), nil
}

func whereSubscriptions(f store.SubscriptionFilter) (where, error) {
	var w where
	if f.UserID != "" {
		w.and(`s.user_id = ?`, f.UserID)
	}
	if f.PublicOnly {
		w.and(`s.user_id IS NULL`)
	}
	if f.PageID != nil {
		w.and(`s.user_id IS NULL AND COALESCE(s.page_id, '') = ?`, *f.PageID)
	}
	if f.Address != "" {
		w.and(`s.address_hash = ?`, store.AddressHash(f.Address))
	}
	if !f.Since.IsZero() {
		w.and(`s.created_at >= ?`, f.Since)
	}
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(subscriptionList, f.Cursor)
		if err != nil {
			return where{}, err
		}
		w.and(`(s.created_at, s.id) < (?, ?)`, at, id)
	}
	return w, nil
}

// subscriptionColumns are what subscriptionRow scans, of subscriptions s.
const subscriptionColumns = `
	s.id, COALESCE(s.user_id, ''), COALESCE(s.page_id, ''), s.everything, NULLIF(s.endpoints, '{}'), NULLIF(s.tags, '{}'), s.severities, s.quiet,
	s.confirmed_at, s.confirm_hash, s.manage_hash, s.created_at`

const selectSubscriptions = `
	SELECT ` + subscriptionColumns + `, ` + channelColumns + `
	FROM subscriptions s
	JOIN channels c ON c.id = s.id`

// subscriptionRow is a subscription being scanned.
type subscriptionRow struct {
	s          store.Subscription
	severities []string
	quiet      []byte
}

func (r *subscriptionRow) dest() []any {
	s := &r.s
	return []any{
		&s.ID, &s.UserID, &s.PageID, &s.All, &s.Endpoints, &s.Tags, &r.severities, &r.quiet,
		&s.ConfirmedAt, &s.ConfirmHash, &s.ManageHash, &s.CreatedAt,
	}
}

// bare returns the subscription without its channel.
func (r *subscriptionRow) bare() (store.Subscription, error) {
	s := r.s
	if r.severities != nil {
		s.Severities = make([]store.Status, 0, len(r.severities))
	}
	for _, severity := range r.severities {
		s.Severities = append(s.Severities, store.Status(severity))
	}
	if len(r.quiet) == 0 {
		return s, nil
	}
	s.Quiet = new(store.Quiet)
	err := json.Unmarshal(r.quiet, s.Quiet)
	return s, err
}

func scanBareSubscription(row pgx.CollectableRow) (store.Subscription, error) {
	var r subscriptionRow
	if err := row.Scan(r.dest()...); err != nil {
		return store.Subscription{}, err
	}
	return r.bare()
}

func (db *DB) scanSubscription(row pgx.CollectableRow) (store.Subscription, error) {
	var r subscriptionRow
	var c channelRow
	if err := row.Scan(append(r.dest(), c.dest()...)...); err != nil {
		return store.Subscription{}, err
	}
	s, err := r.bare()
	if err != nil {
		return store.Subscription{}, err
	}
	s.Channel, err = c.channel(db.sealer)
	return s, err
}

// quietText returns the column of quiet hours: JSON, or NULL.
func quietText(q *store.Quiet) (*string, error) {
	if q == nil {
		return nil, nil
	}
	text, err := json.Marshal(q)
	return new(string(text)), err
}

// severityTexts returns NULL for all severities, which is something else than none.
func severityTexts(severities []store.Status) []string {
	if severities == nil {
		return nil
	}
	return textsOf(severities)
}
