package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// CreateFirstUser implements store.Store.
func (db *DB) CreateFirstUser(ctx context.Context, setupTokenHash []byte, u store.User) (store.User, error) {
	u = store.EnrollUser(u, time.Now())
	err := db.write(ctx, "create first user", func(tx pgx.Tx) error {
		if err := refuseUsers(ctx, tx); err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM setup_token WHERE hash = $1`, setupTokenHash); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO users (id, name, name_key, password_hash, role, created_at)
			VALUES ($1, $2, $3, $4, $5, $6)`, u.ID, u.Name, store.Fold(u.Name), u.PasswordHash, u.Role, u.CreatedAt)
		return err
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

// PutSetupToken implements store.Store.
func (db *DB) PutSetupToken(ctx context.Context, hash []byte, now time.Time) error {
	return db.write(ctx, "put setup token", func(tx pgx.Tx) error {
		if err := refuseUsers(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO setup_token (id, hash, created_at)
			VALUES (1, $1, $2)
			ON CONFLICT (id) DO UPDATE
			SET hash = excluded.hash, created_at = excluded.created_at`, hash, now)
		return err
	})
}

// refuseUsers returns a Conflict when there is a user, and keeps others from making one until the transaction ends.
func refuseUsers(ctx context.Context, tx pgx.Tx) error {
	if err := lock(ctx, tx, lockSetup); err != nil {
		return err
	}
	n, err := userCount(ctx, tx)
	if err != nil {
		return err
	}
	return store.OnlyFirstUser(n)
}

// HasSetupToken implements store.Store.
func (db *DB) HasSetupToken(ctx context.Context, hash []byte) (bool, error) {
	var has bool
	err := db.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM setup_token WHERE hash = $1)`, hash).Scan(&has)
	return has, explain("read setup token", err)
}

// UserCount implements store.Store.
func (db *DB) UserCount(ctx context.Context) (int, error) {
	n, err := userCount(ctx, db.pool)
	return n, explain("count users", err)
}

func userCount(ctx context.Context, q querier) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT COUNT(*) FROM users`).Scan(&n)
	return n, err
}

// UserByName implements store.Store.
func (db *DB) UserByName(ctx context.Context, name string) (store.User, error) {
	var u store.User
	err := db.pool.QueryRow(ctx, `
		SELECT `+userColumns+`
		FROM users u
		WHERE u.name_key = $1`, store.Fold(name)).Scan(userDest(&u)...)
	return u, explain("read user", err)
}

// userColumns are what userDest takes, of users u.
const userColumns = `u.id, u.name, u.password_hash, u.role, u.created_at`

func userDest(u *store.User) []any {
	return []any{&u.ID, &u.Name, &u.PasswordHash, &u.Role, &u.CreatedAt}
}

// CreateSession implements store.Store. It also clears out the sessions that have expired when this one is created.
func (db *DB) CreateSession(ctx context.Context, s store.Session) error {
	return db.write(ctx, "create session", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM sessions WHERE expires_at <= $1`, s.CreatedAt); err != nil {
			return err
		}
		return execOne(ctx, tx, `
			INSERT INTO sessions (token_hash, user_id, created_at, expires_at)
			SELECT $1, u.id, $3, $4
			FROM users u
			WHERE u.id = $2`, s.TokenHash, s.UserID, s.CreatedAt, s.ExpiresAt)
	})
}

// Session implements store.Store.
func (db *DB) Session(ctx context.Context, tokenHash []byte, now time.Time) (store.Session, store.User, error) {
	var s store.Session
	var u store.User
	err := db.pool.QueryRow(ctx, `
		SELECT s.token_hash, s.user_id, s.created_at, s.expires_at, `+userColumns+`
		FROM sessions s
		JOIN users u ON u.id = s.user_id
		WHERE s.token_hash = $1 AND s.expires_at > $2`, tokenHash, now).
		Scan(append([]any{&s.TokenHash, &s.UserID, &s.CreatedAt, &s.ExpiresAt}, userDest(&u)...)...)
	return s, u, explain("read session", err)
}

// DeleteSession implements store.Store.
func (db *DB) DeleteSession(ctx context.Context, tokenHash []byte) error {
	_, err := db.pool.Exec(ctx, `DELETE FROM sessions WHERE token_hash = $1`, tokenHash)
	return explain("delete session", err)
}

// CreateToken implements store.Store.
func (db *DB) CreateToken(ctx context.Context, t store.Token) (store.Token, error) {
	t = store.EnrollToken(t, time.Now())
	_, err := db.pool.Exec(ctx, `
		INSERT INTO tokens (id, name, hash, role, created_at)
		VALUES ($1, $2, $3, $4, $5)`, t.ID, t.Name, t.Hash, t.Role, t.CreatedAt)
	if err != nil {
		return store.Token{}, explain("create token", err)
	}
	return t, nil
}

// UseToken implements store.Store. It writes once a minute at most.
func (db *DB) UseToken(ctx context.Context, hash []byte, now time.Time) (store.Token, error) {
	t, err := queryOne(ctx, db.pool, scanToken, `
		SELECT `+tokenColumns+`
		FROM tokens
		WHERE hash = $1 AND revoked_at IS NULL`, hash)
	used := now.UTC().Truncate(time.Minute)
	if err != nil || t.LastUsedAt != nil && !t.LastUsedAt.Before(used) {
		return t, explain("read token", err)
	}
	err = execOne(ctx, db.pool, `UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND revoked_at IS NULL`, t.ID, used)
	if err != nil {
		return store.Token{}, explain("use token", err)
	}
	t.LastUsedAt = &used
	return t, nil
}

// Tokens implements store.Store.
func (db *DB) Tokens(ctx context.Context) ([]store.Token, error) {
	found, err := query(ctx, db.pool, scanToken, `SELECT `+tokenColumns+` FROM tokens ORDER BY created_at DESC, id DESC`)
	return found, explain("list tokens", err)
}

// RevokeToken implements store.Store. A token that is revoked already keeps its time.
func (db *DB) RevokeToken(ctx context.Context, id string, now time.Time) error {
	return explain("revoke token", execOne(ctx, db.pool, `
		UPDATE tokens
		SET revoked_at = COALESCE(revoked_at, $2)
		WHERE id = $1`, id, now))
}

// tokenColumns are what scanToken scans.
const tokenColumns = `id, name, hash, role, created_at, last_used_at, revoked_at`

func scanToken(row pgx.CollectableRow) (store.Token, error) {
	var t store.Token
	err := row.Scan(&t.ID, &t.Name, &t.Hash, &t.Role, &t.CreatedAt, &t.LastUsedAt, &t.RevokedAt)
	return t, err
}
