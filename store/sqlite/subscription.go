package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// CreateSubscription implements store.Store.
func (db *DB) CreateSubscription(ctx context.Context, s store.Subscription) (store.Subscription, error) {
	s, err := store.EnrollSubscription(s, time.Now())
	if err != nil {
		return store.Subscription{}, err
	}
	err = db.write(ctx, "create subscription", func(tx *sql.Tx) error {
		if err := checkAddress(ctx, tx, s); err != nil {
			return err
		}
		settings, secrets, err := db.channelForms(s.Channel)
		if err != nil {
			return err
		}
		c := s.Channel
		// Names of subscriptions' channels are nobody's: the id keeps them apart.
		_, err = tx.ExecContext(ctx, `
			INSERT INTO channels (id, name, name_key, type, settings, secrets, created_at, updated_at, audience)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			c.ID, c.Name, c.ID, c.Type, settings, secrets, c.CreatedAt.UnixMicro(), c.UpdatedAt.UnixMicro(), s.Audience())
		if err != nil {
			return err
		}
		if err := putSubscription(ctx, tx, s); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, s)
	})
	if err != nil {
		return store.Subscription{}, err
	}
	return s, nil
}

// UpdateSubscription implements store.Store. change must not call the store.
func (db *DB) UpdateSubscription(
	ctx context.Context, id string, change func(*store.Subscription) error,
) (s store.Subscription, err error) {
	err = db.write(ctx, "update subscription", func(tx *sql.Tx) error {
		before, err := db.subscription(ctx, tx, `u.id = ?`, id)
		if err != nil {
			return err
		}
		if s, err = store.EditSubscription(before, change, time.Now()); err != nil {
			return err
		}
		if err := checkAddress(ctx, tx, s); err != nil {
			return err
		}
		settings, secrets, err := db.channelForms(s.Channel)
		if err != nil {
			return err
		}
		c := s.Channel
		_, err = tx.ExecContext(ctx, `
			UPDATE channels
			SET name = ?, type = ?, settings = ?, secrets = ?, broken = NULLIF(?, ''), broken_at = ?, updated_at = ?, audience = ?
			WHERE id = ?`,
			c.Name, c.Type, settings, secrets, c.Broken, microsOrNil(c.BrokenAt), c.UpdatedAt.UnixMicro(), s.Audience(), c.ID)
		if err != nil {
			return err
		}
		if err := putSubscription(ctx, tx, s); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditUpdate, before, s)
	})
	if err != nil {
		return store.Subscription{}, err
	}
	return s, nil
}

// ConfirmSubscription implements store.Store.
func (db *DB) ConfirmSubscription(
	ctx context.Context, id string, hash []byte, caps store.SubscriptionCaps,
) (s store.Subscription, err error) {
	err = db.write(ctx, "confirm subscription", func(tx *sql.Tx) error {
		before, err := db.subscription(ctx, tx, `u.id = ?`, id)
		if err != nil {
			return err
		}
		crowd, err := db.crowd(ctx, tx, before)
		if err != nil {
			return err
		}
		if s, err = before.Confirm(hash, crowd, caps, time.Now()); err != nil {
			return err
		}
		return putSubscription(ctx, tx, s)
	})
	if err != nil {
		return store.Subscription{}, err
	}
	return s, nil
}

// Crowd implements store.Store.
func (db *DB) Crowd(ctx context.Context, s store.Subscription) (crowd store.Crowd, err error) {
	err = db.read(ctx, "count subscriptions", func(tx *sql.Tx) (err error) {
		crowd, err = db.crowd(ctx, tx, s)
		return err
	})
	return crowd, err
}

// crowd counts mails in the database. Receivers are named in what is sealed; caps keep those few.
func (db *DB) crowd(ctx context.Context, tx *sql.Tx, s store.Subscription) (store.Crowd, error) {
	const confirmed = `
		FROM channels c
		JOIN subscriptions u ON u.id = c.id AND u.confirmed_at IS NOT NULL
		WHERE c.audience = 'public'`
	if s.Channel.Type == store.ChannelEmail {
		var crowd store.Crowd
		err := tx.QueryRowContext(ctx, `SELECT count(*)`+confirmed+` AND c.type = ? AND c.id <> ?`, s.Channel.Type, s.ID).Scan(&crowd.Mailed)
		return crowd, err
	}
	posted, err := query(ctx, tx, db.scanChannel, `SELECT `+channelColumns+confirmed+` AND c.type <> ?`, store.ChannelEmail)
	return store.CrowdAt(s, posted), err
}

// leaveEndpoint takes an endpoint that goes from what names it. What named nothing else covers nothing.
func leaveEndpoint(ctx context.Context, tx *sql.Tx, endpointID string) error {
	// instr passes over most of them without reading their JSON.
	const without = `
		SET endpoints = (SELECT json_group_array(e.value ORDER BY e.key) FROM json_each(endpoints) e WHERE e.value <> ?1)
		WHERE instr(endpoints, ?1) > 0`
	for _, statement := range []string{`UPDATE maintenances` + without, `UPDATE subscriptions` + without} {
		if _, err := tx.ExecContext(ctx, statement, endpointID); err != nil {
			return err
		}
	}
	return nil
}

// DeleteSubscription implements store.Store.
func (db *DB) DeleteSubscription(ctx context.Context, id string) error {
	return db.write(ctx, "delete subscription", func(tx *sql.Tx) error {
		s, err := db.subscription(ctx, tx, `u.id = ?`, id)
		if err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM channels WHERE id = ? AND audience <> 'team'`, id); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, s, nil)
	})
}

// Subscription implements store.Store.
func (db *DB) Subscription(ctx context.Context, id string) (s store.Subscription, err error) {
	err = db.read(ctx, "read subscription", func(tx *sql.Tx) (err error) {
		s, err = db.subscription(ctx, tx, `u.id = ?`, id)
		return err
	})
	return s, err
}

// SubscriptionByToken implements store.Store.
func (db *DB) SubscriptionByToken(ctx context.Context, hash []byte) (s store.Subscription, err error) {
	err = db.read(ctx, "find subscription", func(tx *sql.Tx) (err error) {
		s, err = db.subscription(ctx, tx, `u.confirm_hash = ?1 OR u.manage_hash = ?1`, append([]byte{}, hash...))
		return err
	})
	return s, err
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
	var found []store.Subscription
	err = db.read(ctx, "list subscriptions", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, db.scanSubscription, `
			SELECT `+subscriptionColumns+`, `+channelColumns+`
			FROM subscriptions u
			JOIN channels c ON c.id = u.id
			`+w.String()+`
			ORDER BY u.created_at DESC, u.id DESC
			LIMIT ?`, append(w.args, limit+1)...)
		return err
	})
	if err != nil {
		return store.Page[store.Subscription]{}, err
	}
	return store.PageOf(found, limit, func(s store.Subscription) string {
		return store.TimeCursor(subscriptionList, s.CreatedAt, s.ID)
	}), nil
}

func whereSubscriptions(f store.SubscriptionFilter) (where, error) {
	var w where
	if f.UserID != "" {
		w.and(`u.user_id = ?`, f.UserID)
	}
	if f.PublicOnly {
		w.and(`u.user_id IS NULL`)
	}
	if f.PageID != nil {
		w.and(`u.user_id IS NULL AND COALESCE(u.page_id, '') = ?`, *f.PageID)
	}
	if f.Address != "" {
		w.and(`u.address_hash = ?`, store.AddressHash(f.Address))
	}
	if !f.Since.IsZero() {
		w.and(`u.created_at >= ?`, f.Since.UnixMicro())
	}
	if f.Cursor != "" {
		at, id, err := store.ReadTimeCursor(subscriptionList, f.Cursor)
		if err != nil {
			return where{}, err
		}
		w.and(`(u.created_at, u.id) < (?, ?)`, at.UnixMicro(), id)
	}
	return w, nil
}

// PruneSubscriptions implements store.Store.
func (db *DB) PruneSubscriptions(ctx context.Context, before time.Time) (int, error) {
	n := int64(0)
	err := db.write(ctx, "prune subscriptions", func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `
			DELETE FROM channels
			WHERE id IN (SELECT id FROM subscriptions WHERE confirmed_at IS NULL AND created_at < ?)`, before.UnixMicro())
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return int(n), err
}

// subscription returns the one that a condition on subscriptions u selects.
func (db *DB) subscription(ctx context.Context, tx *sql.Tx, condition string, args ...any) (store.Subscription, error) {
	s, err := db.scanSubscription(tx.QueryRowContext(ctx, `
		SELECT `+subscriptionColumns+`, `+channelColumns+`
		FROM subscriptions u
		JOIN channels c ON c.id = u.id
		WHERE `+condition, args...))
	return s, notFound(err)
}

// checkAddress returns a Conflict when the address is subscribed already by the same member, or by the public on the same page, and
// ErrNotFound when the member or the page is not there.
func checkAddress(ctx context.Context, tx *sql.Tx, s store.Subscription) error {
	var one int
	err := tx.QueryRowContext(ctx, `
		SELECT 1
		FROM subscriptions
		WHERE address_hash = ? AND COALESCE(user_id, '') = ? AND COALESCE(page_id, '') = ? AND id <> ?`,
		store.AddressHash(s.Address()), s.UserID, s.PageID, s.ID).Scan(&one)
	if err == nil {
		return store.Conflict{Field: "address", Message: "is subscribed already"}
	}
	switch {
	case !errors.Is(err, sql.ErrNoRows):
		return err
	case s.PageID != "":
		return notFound(tx.QueryRowContext(ctx, `SELECT 1 FROM status_pages WHERE id = ?`, s.PageID).Scan(&one))
	case s.Public():
		return nil
	}
	return notFound(tx.QueryRowContext(ctx, `SELECT 1 FROM users WHERE id = ?`, s.UserID).Scan(&one))
}

func putSubscription(ctx context.Context, tx *sql.Tx, s store.Subscription) error {
	endpoints, err := jsonText(append([]string{}, s.Endpoints...))
	if err != nil {
		return err
	}
	tags, err := jsonText(append([]string{}, s.Tags...))
	if err != nil {
		return err
	}
	var severities, quiet any
	if s.Severities != nil {
		if severities, err = jsonText(s.Severities); err != nil {
			return err
		}
	}
	if s.Quiet != nil {
		if quiet, err = jsonText(s.Quiet); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO subscriptions (
		    id, user_id, page_id, everything, endpoints, tags, severities, quiet, address_hash, confirmed_at, confirm_hash, manage_hash,
		    created_at
		) VALUES (?, NULLIF(?, ''), NULLIF(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE
		SET user_id = excluded.user_id, everything = excluded.everything, endpoints = excluded.endpoints, tags = excluded.tags,
		    severities = excluded.severities, quiet = excluded.quiet, address_hash = excluded.address_hash,
		    confirmed_at = excluded.confirmed_at, confirm_hash = excluded.confirm_hash, manage_hash = excluded.manage_hash`,
		s.ID, s.UserID, s.PageID, s.All, endpoints, tags, severities, quiet, store.AddressHash(s.Address()), microsOrNil(s.ConfirmedAt),
		s.ConfirmHash, s.ManageHash, s.CreatedAt.UnixMicro())
	return err
}

// subscriptionColumns are what subscriptionDest takes, of subscriptions u.
const subscriptionColumns = `
	u.id, COALESCE(u.user_id, ''), COALESCE(u.page_id, ''), u.everything, u.endpoints, u.tags, u.severities, u.quiet, u.confirmed_at, u.confirm_hash,
	u.manage_hash, u.created_at`

func subscriptionDest(s *store.Subscription) []any {
	return []any{
		&s.ID, &s.UserID, &s.PageID, &s.All, textsInto{&s.Endpoints}, textsInto{&s.Tags}, jsonOrNil{&s.Severities}, jsonOrNil{&s.Quiet},
		timeOrNil{&s.ConfirmedAt}, &s.ConfirmHash, &s.ManageHash, timeInto{&s.CreatedAt},
	}
}

// scanSubscription scans a subscription with its channel.
func (db *DB) scanSubscription(row scanner) (store.Subscription, error) {
	var s store.Subscription
	var c channelRow
	if err := row.Scan(append(subscriptionDest(&s), c.dest()...)...); err != nil {
		return store.Subscription{}, err
	}
	channel, err := c.channel(db.sealer)
	s.Channel = channel
	return s, err
}
