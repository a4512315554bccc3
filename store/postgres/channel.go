package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// CreateChannel implements store.Store. Names of channels are unique without regard to case.
func (db *DB) CreateChannel(ctx context.Context, c store.Channel) (store.Channel, error) {
	c, err := store.EnrollChannel(c, time.Now())
	if err != nil {
		return store.Channel{}, err
	}
	err = db.write(ctx, "create channel", func(tx pgx.Tx) error {
		if err := lockChannelName(ctx, tx, c); err != nil {
			return err
		}
		if err := db.insertChannel(ctx, tx, c, store.AudienceTeam); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, c)
	})
	if err != nil {
		return store.Channel{}, err
	}
	return c, nil
}

func (db *DB) insertChannel(ctx context.Context, tx pgx.Tx, c store.Channel, audience store.Audience) error {
	settings, secrets, err := db.channelForms(c)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO channels (id, name, name_key, type, settings, secrets, created_at, updated_at, audience)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		c.ID, c.Name, store.Fold(c.Name), c.Type, settings, secrets, c.CreatedAt, c.UpdatedAt, audience)
	return err
}

// UpdateChannel implements store.Store. change may be called again when the transaction got in another's way.
func (db *DB) UpdateChannel(ctx context.Context, id string, change func(*store.Channel) error) (store.Channel, error) {
	var c store.Channel
	err := db.write(ctx, "update channel", func(tx pgx.Tx) error {
		before, err := queryOne(ctx, tx, db.scanChannel, `
			SELECT `+channelColumns+`
			FROM channels c
			WHERE c.id = $1 AND c.audience = 'team'
			FOR NO KEY UPDATE`, id)
		if err != nil {
			return err
		}
		if c, err = store.EditChannel(before, change, time.Now()); err != nil {
			return err
		}
		if err := lockChannelName(ctx, tx, c); err != nil {
			return err
		}
		settings, secrets, err := db.channelForms(c)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE channels
			SET name = $2, name_key = $3, type = $4, settings = $5, secrets = $6, broken = NULL, broken_at = NULL, updated_at = $7
			WHERE id = $1`, c.ID, c.Name, store.Fold(c.Name), c.Type, settings, secrets, c.UpdatedAt)
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
	return db.write(ctx, "delete channel", func(tx pgx.Tx) error {
		c, err := queryOne(ctx, tx, db.scanChannel, `
			DELETE FROM channels c
			WHERE c.id = $1 AND c.audience = 'team'
			RETURNING `+channelColumns, id)
		if err != nil {
			return err
		}
		if err := leaveEscalations(ctx, tx, id); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, c, nil)
	})
}

// leaveEscalations takes a channel that is gone out of the escalations of all endpoints.
func leaveEscalations(ctx context.Context, tx pgx.Tx, channelID string) error {
	type named struct {
		id       string
		alerting store.Alerting
	}
	found, err := query(ctx, tx, func(row pgx.CollectableRow) (n named, err error) {
		err = row.Scan(&n.id, &n.alerting)
		return n, err
	}, `
		SELECT id, alerting
		FROM endpoints
		WHERE strpos(alerting::text, $1) > 0
		ORDER BY id
		FOR NO KEY UPDATE`, channelID)
	if err != nil {
		return err
	}
	for _, n := range found {
		text, err := json.Marshal(n.alerting.Without(channelID))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE endpoints SET alerting = $2::text::jsonb WHERE id = $1`, n.id, string(text)); err != nil {
			return err
		}
	}
	return nil
}

// Channel implements store.Store.
func (db *DB) Channel(ctx context.Context, id string) (store.Channel, error) {
	c, err := queryOne(ctx, db.pool, db.scanChannel, `SELECT `+channelColumns+` FROM channels c WHERE c.id = $1 AND c.audience = 'team'`, id)
	return c, explain("read channel", err)
}

// Channels implements store.Store.
func (db *DB) Channels(ctx context.Context) ([]store.Channel, error) {
	found, err := query(ctx, db.pool, db.scanChannel, `
		SELECT `+channelColumns+`
		FROM channels c
		WHERE c.audience = 'team'
		ORDER BY c.name_key`)
	return found, explain("list channels", err)
}

// lockChannelName makes sure that the name of c is free, and stays so until the transaction ends.
func lockChannelName(ctx context.Context, tx pgx.Tx, c store.Channel) error {
	if err := lock(ctx, tx, lockNames); err != nil {
		return err
	}
	return refuse(ctx, tx, "name", `SELECT EXISTS (SELECT 1 FROM channels WHERE name_key = $1 AND id <> $2 AND audience = 'team')`,
		store.Fold(c.Name), c.ID)
}

// channelForms returns the columns of c that are not kept as they are.
func (db *DB) channelForms(c store.Channel) (settings string, secrets []byte, err error) {
	text, err := json.Marshal(c.Settings)
	if err != nil {
		return "", nil, err
	}
	secrets, err = db.sealer.SealSecrets(c.ID, c.Secrets)
	return string(text), secrets, err
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
		&c.ID, &c.Name, &c.Type, &c.Settings, &r.secrets, &c.Broken, &c.BrokenAt, &c.CreatedAt, &c.UpdatedAt,
	}
}

func (r *channelRow) channel(sealer *store.Sealer) (store.Channel, error) {
	c := r.c
	secrets, err := sealer.OpenSecrets(c.ID, r.secrets)
	c.Secrets = secrets
	return c, err
}

func (db *DB) scanChannel(row pgx.CollectableRow) (store.Channel, error) {
	var r channelRow
	if err := row.Scan(r.dest()...); err != nil {
		return store.Channel{}, err
	}
	return r.channel(db.sealer)
}
