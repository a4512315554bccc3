package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// ForgetSecrets removes everything from the database at url that was sealed with a key that is lost, and makes sealer's
// key the one of the database; Open works with it afterwards. Endpoints lose their headers and options, channels their secrets, and
// those are broken until somebody enters them again. store.ErrKeyFits when the key is not lost. No service may run on the
// database.
func ForgetSecrets(ctx context.Context, url string, sealer *store.Sealer) (store.Forgotten, error) {
	if sealer == nil {
		return store.Forgotten{}, errNoKey
	}
	pool, err := connect(ctx, url)
	if err != nil {
		return store.Forgotten{}, err
	}
	defer pool.Close()
	if _, _, err := migrate(ctx, pool); err != nil {
		return store.Forgotten{}, err
	}
	var forgotten store.Forgotten
	db := &DB{pool: pool, sealer: sealer}
	err = db.write(ctx, "forget secrets", func(tx pgx.Tx) (err error) {
		forgotten, err = forgetSecrets(ctx, tx, sealer)
		return err
	})
	if err != nil {
		return store.Forgotten{}, err
	}
	return forgotten, nil
}

func forgetSecrets(ctx context.Context, tx pgx.Tx, sealer *store.Sealer) (forgotten store.Forgotten, err error) {
	if err := replaceProof(ctx, tx, sealer); err != nil {
		return store.Forgotten{}, err
	}
	forgotten.Endpoints, err = query(ctx, tx, pgx.RowTo[string], `
		UPDATE endpoints
		SET headers = NULL, options = NULL, updated_at = now()
		WHERE headers IS NOT NULL OR options IS NOT NULL
		RETURNING slug`)
	if err != nil {
		return store.Forgotten{}, err
	}
	forgotten.Channels, err = query(ctx, tx, pgx.RowTo[string], `
		WITH forgotten AS (
		    UPDATE channels
		    SET secrets = NULL, broken = $1, broken_at = now(), updated_at = now()
		    WHERE secrets IS NOT NULL
		    RETURNING name, audience
		)
		SELECT name FROM forgotten WHERE audience = 'team'`, store.WhyForgotten)
	if err != nil {
		return store.Forgotten{}, err
	}
	forgotten.Members, err = query(ctx, tx, pgx.RowTo[string], `
		WITH forgotten AS (
		    DELETE FROM second_factors
		    RETURNING user_id
		)
		SELECT u.name
		FROM users u
		JOIN forgotten ON forgotten.user_id = u.id
		ORDER BY u.name_key`)
	slices.Sort(forgotten.Endpoints)
	slices.Sort(forgotten.Channels)
	return forgotten, err
}

func replaceProof(ctx context.Context, tx pgx.Tx, sealer *store.Sealer) error {
	var proof []byte
	err := tx.QueryRow(ctx, `SELECT proof FROM secret_key`).Scan(&proof)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if err == nil && sealer.CheckProof(proof) == nil {
		return store.ErrKeyFits
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO secret_key (id, proof)
		VALUES (1, $1)
		ON CONFLICT (id) DO UPDATE SET proof = excluded.proof`, sealer.SealProof())
	return err
}
