package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// CreateChannel implements store.Store. Names of channels are unique without regard to case.
func (db *DB) CreateChannel(ctx context.Context, c store.Channel) (store.Channel, error) {
	c, err := store.EnrollChannel(c, time.Now())
	if err != nil {
		return store.Channel{}, err
	}
	err = db.write(ctx, "create channel", func(tx *sql.Tx) error {
		settings, secrets, err := db.channelForms(c)
		if err != nil {
			return err
		}
		if err := checkChannelName(ctx, tx, c); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO channels (id, name, name_key, type, settings, secrets, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			c.ID, c.Name, store.Fold(c.Name), c.Type, settings, secrets, c.CreatedAt.UnixMicro(), c.UpdatedAt.UnixMicro())
		if err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, c)
	})
	if err != nil {
		return store.Channel{}, err
	}
	return c, nil
}

// UpdateChannel implements store.Store. change must not call the store.
func (db *DB) UpdateChannel(ctx context.Context, id string, change func(*store.Channel) error) (store.Channel, error) {
	var c store.Channel
	err := db.write(ctx, "update channel", func(tx *sql.Tx) error {
		before, err := db.channel(ctx, tx, id)
		if err != nil {
			return err
		}
		if c, err = store.EditChannel(before, change, time.Now()); err != nil {
			return err
		}
		if err := checkChannelName(ctx, tx, c); err != nil {
			return err
		}
		settings, secrets, err := db.channelForms(c)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			UPDATE channels
			SET name = ?, name_key = ?, type = ?, settings = ?, secrets = ?, broken = NULL, broken_at = NULL, updated_at = ?
			WHERE id = ?`, c.Name, store.Fold(c.Name), c.Type, settings, secrets, c.UpdatedAt.UnixMicro(), c.ID)
		if err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditUpdate, before, c)
	})
	if err != nil {
		return store.Channel{}, err
	}
	return c, nil
}

// DeleteChannel implements store.Store.
func (db *DB) DeleteChannel(ctx context.Context, id string) error {
	return db.write(ctx, "delete channel", func(tx *sql.Tx) error {
		c, err := db.channel(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := forgetChannel(ctx, tx, id); err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM channels WHERE id = ?`, id); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, c, nil)
	})
}

// forgetChannel takes a channel out of the escalation of every endpoint.
func forgetChannel(ctx context.Context, tx *sql.Tx, id string) error {
	type escalation struct {
		endpointID string
		store.Alerting
	}
	scan := func(row scanner) (e escalation, err error) {
		err = row.Scan(&e.endpointID, jsonInto{&e.Alerting})
		return e, err
	}
	found, err := query(ctx, tx, scan, `
		SELECT e.id, e.alerting
		FROM endpoints e
		WHERE EXISTS (
		    SELECT 1
		    FROM json_each(e.alerting, '$.escalation') step
		    JOIN json_each(step.value, '$.channels') channel
		    WHERE channel.value = ?
		)`, id)
	if err != nil {
		return err
	}
	var args [][]any
	for _, e := range found {
		text, err := jsonText(e.Without(id))
		if err != nil {
			return err
		}
		args = append(args, []any{text, e.endpointID})
	}
	return execEach(ctx, tx, `UPDATE endpoints SET alerting = ? WHERE id = ?`, args)
}

// Channel implements store.Store.
func (db *DB) Channel(ctx context.Context, id string) (store.Channel, error) {
	var c store.Channel
	err := db.read(ctx, "read channel", func(tx *sql.Tx) (err error) {
		c, err = db.channel(ctx, tx, id)
		return err
	})
	return c, err
}

// Channels implements store.Store.
func (db *DB) Channels(ctx context.Context) ([]store.Channel, error) {
	var found []store.Channel
	err := db.read(ctx, "list channels", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, db.scanChannel, `SELECT `+channelColumns+` FROM channels c WHERE c.audience = 'team' ORDER BY c.name_key`)
		return err
	})
	return found, err
}

func (db *DB) channel(ctx context.Context, tx *sql.Tx, id string) (store.Channel, error) {
	c, err := db.scanChannel(tx.QueryRowContext(ctx, `SELECT `+channelColumns+` FROM channels c WHERE c.id = ? AND c.audience = 'team'`, id))
	return c, notFound(err)
}

// anyChannel returns a channel of any audience.
func (db *DB) anyChannel(ctx context.Context, tx *sql.Tx, id string) (c store.Channel, audience store.Audience, err error) {
	var r channelRow
	err = tx.QueryRowContext(ctx, `SELECT `+channelColumns+`, c.audience FROM channels c WHERE c.id = ?`, id).
		Scan(append(r.dest(), &audience)...)
	if err != nil {
		return c, audience, notFound(err)
	}
	c, err = r.channel(db.sealer)
	return c, audience, err
}

func checkChannelName(ctx context.Context, tx *sql.Tx, c store.Channel) error {
	return refuse(ctx, tx, "name", `SELECT 1 FROM channels WHERE name_key = ? AND id <> ?`, store.Fold(c.Name), c.ID)
}

// channelForms returns the columns of c that are not kept as they are.
func (db *DB) channelForms(c store.Channel) (settings string, secrets []byte, err error) {
	if settings, err = jsonText(c.Settings); err != nil {
		return "", nil, err
	}
	secrets, err = db.sealer.SealSecrets(c.ID, c.Secrets)
	return settings, secrets, err
}

// channelColumns are what channelRow scans, of channels c.
const channelColumns = `
	c.id, c.name, c.type, c.settings, c.secrets, COALESCE(c.broken, ''), c.broken_at, c.created_at, c.updated_at`

// channelRow is a channel being scanned.
type channelRow struct {
	c       store.Channel
	secrets []byte
}

func (r *channelRow) dest() []any {
	c := &r.c
	return []any{
		&c.ID, &c.Name, &c.Type, jsonInto{&c.Settings}, &r.secrets, &c.Broken, timeOrNil{&c.BrokenAt},
		timeInto{&c.CreatedAt}, timeInto{&c.UpdatedAt},
	}
}

func (r *channelRow) channel(sealer *store.Sealer) (store.Channel, error) {
	c := r.c
	secrets, err := sealer.OpenSecrets(c.ID, r.secrets)
	c.Secrets = secrets
	return c, err
}

func (db *DB) scanChannel(row scanner) (store.Channel, error) {
	var r channelRow
	if err := row.Scan(r.dest()...); err != nil {
		return store.Channel{}, err
	}
	return r.channel(db.sealer)
}
