package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// CreateFirstUser implements store.Store.
func (db *DB) CreateFirstUser(ctx context.Context, setupTokenHash []byte, u store.User) (store.User, error) {
	u = store.EnrollUser(u, time.Now())
	err := db.write(ctx, "create first user", func(tx *sql.Tx) error {
		if err := refuseUsers(ctx, tx); err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM setup_token WHERE hash = ?`, setupTokenHash); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO users (id, name, name_key, password_hash, role, created_at)
			VALUES (?, ?, ?, ?, ?, ?)`, u.ID, u.Name, store.Fold(u.Name), u.PasswordHash, u.Role, u.CreatedAt.UnixMicro())
		return err
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

// PutSetupToken implements store.Store.
func (db *DB) PutSetupToken(ctx context.Context, hash []byte, now time.Time) error {
	return db.write(ctx, "put setup token", func(tx *sql.Tx) error {
		if err := refuseUsers(ctx, tx); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO setup_token (id, hash, created_at)
			VALUES (1, ?, ?)
			ON CONFLICT (id) DO UPDATE
			SET hash = excluded.hash, created_at = excluded.created_at`, hash, now.UnixMicro())
		return err
	})
}

// refuseUsers returns a Conflict when there is a user.
func refuseUsers(ctx context.Context, tx *sql.Tx) error {
	n, err := userCount(ctx, tx)
	if err != nil {
		return err
	}
	return store.OnlyFirstUser(n)
}

// HasSetupToken implements store.Store.
func (db *DB) HasSetupToken(ctx context.Context, hash []byte) (bool, error) {
	var has bool
	err := db.read(ctx, "read setup token", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM setup_token WHERE hash = ?)`, hash).Scan(&has)
	})
	return has, err
}

// UserCount implements store.Store.
func (db *DB) UserCount(ctx context.Context) (int, error) {
	n := 0
	err := db.read(ctx, "count users", func(tx *sql.Tx) (err error) {
		n, err = userCount(ctx, tx)
		return err
	})
	return n, err
}

func userCount(ctx context.Context, tx *sql.Tx) (n int, err error) {
	err = tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM users`).Scan(&n)
	return n, err
}

// UserByName implements store.Store.
func (db *DB) UserByName(ctx context.Context, name string) (store.User, error) {
	var u store.User
	err := db.read(ctx, "read user", func(tx *sql.Tx) error {
		return notFound(tx.QueryRowContext(ctx, `
			SELECT `+userColumns+`
			FROM users u
			WHERE u.name_key = ?`, store.Fold(name)).Scan(userDest(&u)...))
	})
	return u, err
}

// userColumns are what userDest takes, of users u.
const userColumns = `u.id, u.name, u.password_hash, u.role, u.created_at`

func userDest(u *store.User) []any {
	return []any{&u.ID, &u.Name, &u.PasswordHash, &u.Role, timeInto{&u.CreatedAt}}
}

// CreateSession implements store.Store. It also clears out the sessions that have expired when this one is created.
func (db *DB) CreateSession(ctx context.Context, s store.Session) error {
	return db.write(ctx, "create session", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE expires_at <= ?`, s.CreatedAt.UnixMicro()); err != nil {
			return err
		}
		return execOne(ctx, tx, `
			INSERT INTO sessions (token_hash, user_id, created_at, expires_at)
			SELECT ?, u.id, ?, ?
			FROM users u
			WHERE u.id = ?`, s.TokenHash, s.CreatedAt.UnixMicro(), s.ExpiresAt.UnixMicro(), s.UserID)
	})
}

// Session implements store.Store.
func (db *DB) Session(ctx context.Context, tokenHash []byte, now time.Time) (store.Session, store.User, error) {
	var s store.Session
	var u store.User
	err := db.read(ctx, "read session", func(tx *sql.Tx) error {
		return notFound(tx.QueryRowContext(ctx, `
			SELECT s.token_hash, s.user_id, s.created_at, s.expires_at, `+userColumns+`
			FROM sessions s
			JOIN users u ON u.id = s.user_id
			WHERE s.token_hash = ? AND s.expires_at > ?`, tokenHash, now.UnixMicro()).
			Scan(append([]any{&s.TokenHash, &s.UserID, timeInto{&s.CreatedAt}, timeInto{&s.ExpiresAt}}, userDest(&u)...)...))
	})
	return s, u, err
}

// DeleteSession implements store.Store.
func (db *DB) DeleteSession(ctx context.Context, tokenHash []byte) error {
	return db.write(ctx, "delete session", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE token_hash = ?`, tokenHash)
		return err
	})
}

// CreateToken implements store.Store.
func (db *DB) CreateToken(ctx context.Context, t store.Token) (store.Token, error) {
	t = store.EnrollToken(t, time.Now())
	err := db.write(ctx, "create token", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO tokens (id, name, hash, role, created_at)
			VALUES (?, ?, ?, ?, ?)`, t.ID, t.Name, t.Hash, t.Role, t.CreatedAt.UnixMicro())
		return err
	})
	if err != nil {
		return store.Token{}, err
	}
	return t, nil
}

// UseToken implements store.Store. It writes once a minute at most.
func (db *DB) UseToken(ctx context.Context, hash []byte, now time.Time) (store.Token, error) {
	var t store.Token
	err := db.read(ctx, "read token", func(tx *sql.Tx) (err error) {
		t, err = scanToken(tx.QueryRowContext(ctx, `
			SELECT `+tokenColumns+`
			FROM tokens
			WHERE hash = ? AND revoked_at IS NULL`, hash))
		return notFound(err)
	})
	used := now.UTC().Truncate(time.Minute)
	if err != nil || t.LastUsedAt != nil && !t.LastUsedAt.Before(used) {
		return t, err
	}
	err = db.write(ctx, "use token", func(tx *sql.Tx) error {
		return execOne(ctx, tx, `UPDATE tokens SET last_used_at = ? WHERE id = ? AND revoked_at IS NULL`, used.UnixMicro(), t.ID)
	})
	if err != nil {
		return store.Token{}, err
	}
	t.LastUsedAt = &used
	return t, nil
}

// Tokens implements store.Store.
func (db *DB) Tokens(ctx context.Context) ([]store.Token, error) {
	var found []store.Token
	err := db.read(ctx, "list tokens", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanToken, `SELECT `+tokenColumns+` FROM tokens ORDER BY created_at DESC, id DESC`)
		return err
	})
	return found, err
}

// RevokeToken implements store.Store. A token that is revoked already keeps its time.
func (db *DB) RevokeToken(ctx context.Context, id string, now time.Time) error {
	return db.write(ctx, "revoke token", func(tx *sql.Tx) error {
		return execOne(ctx, tx, `UPDATE tokens SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ?`, now.UnixMicro(), id)
	})
}

// tokenColumns are what scanToken scans.
const tokenColumns = `id, name, hash, role, created_at, last_used_at, revoked_at`

func scanToken(row scanner) (store.Token, error) {
	var t store.Token
	err := row.Scan(&t.ID, &t.Name, &t.Hash, &t.Role, timeInto{&t.CreatedAt}, timeOrNil{&t.LastUsedAt}, timeOrNil{&t.RevokedAt})
	return t, err
}
