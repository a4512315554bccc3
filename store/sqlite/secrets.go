package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// ForgetSecrets removes everything from the file at path that was sealed with a key that is lost, and makes sealer's key
// the one of the file; Open works with it afterwards. Endpoints lose their headers and options, channels their secrets, and those are
// broken until somebody enters them again. store.ErrKeyFits when the key is not lost. No service may run on the file.
func ForgetSecrets(ctx context.Context, path string, sealer *store.Sealer) (store.Forgotten, error) {
	if sealer == nil {
		return store.Forgotten{}, errNoKey
	}
	writer, _, err := openWriter(path)
	if err != nil {
		return store.Forgotten{}, err
	}
	forgotten, err := forgetSecrets(ctx, writer, sealer)
	return forgotten, errors.Join(err, writer.Close())
}

func forgetSecrets(ctx context.Context, writer *sql.DB, sealer *store.Sealer) (forgotten store.Forgotten, err error) {
	if _, _, err := migrate(ctx, writer); err != nil {
		return store.Forgotten{}, err
	}
	err = inTx(ctx, writer, "forget secrets", func(tx *sql.Tx) error {
		if err := replaceProof(ctx, tx, sealer); err != nil {
			return err
		}
		now := time.Now().UnixMicro()
		forgotten.Endpoints, err = query(ctx, tx, scanString, `
			UPDATE endpoints
			SET headers = NULL, options = NULL, updated_at = ?
			WHERE headers IS NOT NULL OR options IS NOT NULL
			RETURNING slug`, now)
		if err != nil {
			return err
		}
		forgotten.Channels, err = query(ctx, tx, scanString, `
			UPDATE channels
			SET secrets = NULL, broken = ?1, broken_at = ?2, updated_at = ?2
			WHERE secrets IS NOT NULL
			RETURNING IIF(audience = 'team', name, '')`, store.WhyForgotten, now)
		if err != nil {
			return err
		}
		forgotten.Members, err = query(ctx, tx, scanString, `
			SELECT name FROM users WHERE id IN (SELECT user_id FROM second_factors) ORDER BY name_key`)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM second_factors`)
		return err
	})
	if err != nil {
		return store.Forgotten{}, err
	}
	slices.Sort(forgotten.Endpoints)
	forgotten.Channels = slices.DeleteFunc(forgotten.Channels, func(name string) bool { return name == "" })
	slices.Sort(forgotten.Channels)
	return forgotten, nil
}

func replaceProof(ctx context.Context, tx *sql.Tx, sealer *store.Sealer) error {
	var proof []byte
	err := tx.QueryRowContext(ctx, `SELECT proof FROM secret_key`).Scan(&proof)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err == nil && sealer.CheckProof(proof) == nil {
		return store.ErrKeyFits
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO secret_key (id, proof)
		VALUES (1, ?)
		ON CONFLICT (id) DO UPDATE SET proof = excluded.proof`, sealer.SealProof())
	return err
}
