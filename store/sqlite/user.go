package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
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
		return createUser(ctx, tx, u)
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

// Users implements store.Store.
func (db *DB) Users(ctx context.Context) (found []store.User, err error) {
	err = db.read(ctx, "list users", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanUser, `SELECT `+userColumns+` FROM users u ORDER BY u.name_key`)
		return err
	})
	return found, err
}

// User implements store.Store.
func (db *DB) User(ctx context.Context, id string) (store.User, error) {
	return db.readUser(ctx, `u.id = ?`, id)
}

// UserByName implements store.Store.
func (db *DB) UserByName(ctx context.Context, name string) (store.User, error) {
	return db.readUser(ctx, `u.name_key = ?`, store.Fold(name))
}

// UserByIdentity implements store.Store.
func (db *DB) UserByIdentity(ctx context.Context, issuer, subject string) (store.User, error) {
	return db.readUser(ctx, `u.issuer = ? AND u.subject = ?`, issuer, subject)
}

func (db *DB) readUser(ctx context.Context, condition string, args ...any) (u store.User, err error) {
	err = db.read(ctx, "read user", func(tx *sql.Tx) (err error) {
		u, err = user(ctx, tx, condition, args...)
		return err
	})
	return u, err
}

// user returns the one that a condition on users u selects.
func user(ctx context.Context, tx *sql.Tx, condition string, args ...any) (store.User, error) {
	u, err := scanUser(tx.QueryRowContext(ctx, `SELECT `+userColumns+` FROM users u WHERE `+condition, args...))
	return u, notFound(err)
}

// CreateUser implements store.Store.
func (db *DB) CreateUser(ctx context.Context, u store.User) (store.User, error) {
	u, err := store.EnrollMember(u, time.Now())
	if err != nil {
		return store.User{}, err
	}
	if err := db.write(ctx, "create user", func(tx *sql.Tx) error { return createUser(ctx, tx, u) }); err != nil {
		return store.User{}, err
	}
	return u, nil
}

func createUser(ctx context.Context, tx *sql.Tx, u store.User) error {
	if err := checkUser(ctx, tx, u); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO users (id, name, name_key, password_hash, role, disabled_at, issuer, subject, created_at)
		VALUES (?, ?, ?, ?, ?, ?, NULLIF(?, ''), NULLIF(?, ''), ?)`,
		u.ID, u.Name, store.Fold(u.Name), u.PasswordHash, u.Role, microsOrNil(u.DisabledAt), u.Issuer, u.Subject, u.CreatedAt.UnixMicro())
	if err != nil {
		return err
	}
	return audit(ctx, tx, store.AuditCreate, nil, u)
}

// checkUser returns a Conflict when somebody else has the name, or the identity.
func checkUser(ctx context.Context, tx *sql.Tx, u store.User) error {
	err := refuse(ctx, tx, "name", `SELECT 1 FROM users WHERE name_key = ? AND id <> ?`, store.Fold(u.Name), u.ID)
	if err != nil || u.Issuer == "" {
		return err
	}
	return refuse(ctx, tx, "subject", `SELECT 1 FROM users WHERE issuer = ? AND subject = ? AND id <> ?`, u.Issuer, u.Subject, u.ID)
}

// UpdateUser implements store.Store. change must not call the store.
func (db *DB) UpdateUser(ctx context.Context, id string, change func(*store.User) error) (u store.User, err error) {
	err = db.write(ctx, "update user", func(tx *sql.Tx) (err error) {
		u, err = updateUser(ctx, tx, id, change)
		return err
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

func updateUser(ctx context.Context, tx *sql.Tx, id string, change func(*store.User) error) (store.User, error) {
	before, err := user(ctx, tx, `u.id = ?`, id)
	if err != nil {
		return store.User{}, err
	}
	after, err := store.EditUser(before, change)
	if err != nil {
		return store.User{}, err
	}
	if store.LosesAdmin(before, &after) {
		if err := refuseLastAdmin(ctx, tx, id); err != nil {
			return store.User{}, err
		}
	}
	if err := checkUser(ctx, tx, after); err != nil {
		return store.User{}, err
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE users
		SET name = ?, name_key = ?, password_hash = ?, role = ?, disabled_at = ?, issuer = NULLIF(?, ''), subject = NULLIF(?, '')
		WHERE id = ?`,
		after.Name, store.Fold(after.Name), after.PasswordHash, after.Role, microsOrNil(after.DisabledAt), after.Issuer, after.Subject, id)
	if err != nil {
		return store.User{}, err
	}
	if store.EndsSessions(before, after) {
		if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE user_id = ?`, id); err != nil {
			return store.User{}, err
		}
	}
	if store.EndsSubscriptions(before, after) {
		if err := endSubscriptions(ctx, tx, id); err != nil {
			return store.User{}, err
		}
	}
	return after, audit(ctx, tx, store.AuditUpdate, before, after)
}

// refuseLastAdmin returns store.ErrLastAdmin unless somebody else is an admin who can log in.
func refuseLastAdmin(ctx context.Context, tx *sql.Tx, id string) error {
	var others bool
	err := tx.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM users WHERE role = ? AND disabled_at IS NULL AND id <> ?)`, store.RoleAdmin, id).Scan(&others)
	if err == nil && !others {
		return store.ErrLastAdmin
	}
	return err
}

// endSubscriptions removes what a user is sent, with its channels.
func endSubscriptions(ctx context.Context, tx *sql.Tx, userID string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM channels WHERE id IN (SELECT id FROM subscriptions WHERE user_id = ?)`, userID)
	return err
}

// DeleteUser implements store.Store.
func (db *DB) DeleteUser(ctx context.Context, id string) error {
	return db.write(ctx, "delete user", func(tx *sql.Tx) error {
		before, err := user(ctx, tx, `u.id = ?`, id)
		if err != nil {
			return err
		}
		if store.LosesAdmin(before, nil) {
			if err := refuseLastAdmin(ctx, tx, id); err != nil {
				return err
			}
		}
		if err := endSubscriptions(ctx, tx, id); err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM users WHERE id = ?`, id); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, before, nil)
	})
}

// userColumns are what userDest takes, of users u.
const userColumns = `
	u.id, u.name, u.password_hash, u.role, u.disabled_at, COALESCE(u.issuer, ''), COALESCE(u.subject, ''), u.created_at,
	EXISTS (SELECT 1 FROM second_factors f WHERE f.user_id = u.id AND f.confirmed_at IS NOT NULL)`

func userDest(u *store.User) []any {
	return []any{
		&u.ID, &u.Name, &u.PasswordHash, &u.Role, timeOrNil{&u.DisabledAt}, &u.Issuer, &u.Subject, timeInto{&u.CreatedAt}, &u.HasFactor,
	}
}

func scanUser(row scanner) (u store.User, err error) {
	err = row.Scan(userDest(&u)...)
	return u, err
}

// CreateSession implements store.Store. It also clears out the sessions that have expired when this one is created.
func (db *DB) CreateSession(ctx context.Context, s store.Session) error {
	s = store.EnrollSession(s)
	return db.write(ctx, "create session", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE expires_at <= ?`, s.CreatedAt.UnixMicro()); err != nil {
			return err
		}
		return execOne(ctx, tx, `
			INSERT INTO sessions (token_hash, user_id, address, user_agent, created_at, last_seen_at, expires_at)
			SELECT ?, u.id, ?, ?, ?, ?, ?
			FROM users u
			WHERE u.id = ?`,
			s.TokenHash, s.Address, s.UserAgent, s.CreatedAt.UnixMicro(), s.LastSeenAt.UnixMicro(), s.ExpiresAt.UnixMicro(), s.UserID)
	})
}

// Session implements store.Store.
func (db *DB) Session(ctx context.Context, tokenHash []byte, now time.Time) (store.Session, store.User, error) {
	var s store.Session
	var u store.User
	err := db.read(ctx, "read session", func(tx *sql.Tx) error {
		return notFound(tx.QueryRowContext(ctx, `
			SELECT `+sessionColumns+`, `+userColumns+`
			FROM sessions s
			JOIN users u ON u.id = s.user_id
			WHERE s.token_hash = ? AND s.expires_at > ? AND u.disabled_at IS NULL`, tokenHash, now.UnixMicro()).
			Scan(append(sessionDest(&s), userDest(&u)...)...))
	})
	return s, u, err
}

// SeeSession implements store.Store.
func (db *DB) SeeSession(ctx context.Context, tokenHash []byte, at time.Time) error {
	return db.write(ctx, "see session", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE sessions SET last_seen_at = ? WHERE token_hash = ?`, at.UnixMicro(), tokenHash)
		return err
	})
}

// Sessions implements store.Store.
func (db *DB) Sessions(ctx context.Context, userID string, now time.Time) (found []store.Session, err error) {
	err = db.read(ctx, "list sessions", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanSession, `
			SELECT `+sessionColumns+`
			FROM sessions s
			WHERE s.user_id = ? AND s.expires_at > ?
			ORDER BY COALESCE(s.last_seen_at, s.created_at) DESC, s.token_hash`, userID, now.UnixMicro())
		return err
	})
	return found, err
}

// DeleteSession implements store.Store.
func (db *DB) DeleteSession(ctx context.Context, tokenHash []byte) error {
	return db.write(ctx, "delete session", func(tx *sql.Tx) error {
		_, err := deleteSessions(ctx, tx, `token_hash = ?`, tokenHash)
		return err
	})
}

// DeleteSessions implements store.Store.
func (db *DB) DeleteSessions(ctx context.Context, userID string, keep []byte) (n int, err error) {
	err = db.write(ctx, "delete sessions", func(tx *sql.Tx) (err error) {
		n, err = deleteSessions(ctx, tx, `user_id = ? AND token_hash <> ?`, userID, append([]byte{}, keep...))
		return err
	})
	return n, err
}

// deleteSessions ends those that a condition selects, and says how many.
func deleteSessions(ctx context.Context, tx *sql.Tx, condition string, args ...any) (int, error) {
	gone, err := query(ctx, tx, scanSession, `DELETE FROM sessions WHERE `+condition+` RETURNING `+returnedSession, args...)
	if err != nil {
		return 0, err
	}
	for _, s := range gone {
		if err := audit(ctx, tx, store.AuditDelete, s, nil); err != nil {
			return 0, err
		}
	}
	return len(gone), nil
}

// sessionColumns are what sessionDest takes, of sessions s; returnedSession is the same for RETURNING, which knows no alias.
const (
	sessionColumns = `
	s.token_hash, s.user_id, s.address, s.user_agent, s.created_at, COALESCE(s.last_seen_at, s.created_at), s.expires_at`
	returnedSession = `token_hash, user_id, address, user_agent, created_at, COALESCE(last_seen_at, created_at), expires_at`
)

func sessionDest(s *store.Session) []any {
	return []any{
		&s.TokenHash, &s.UserID, &s.Address, &s.UserAgent, timeInto{&s.CreatedAt}, timeInto{&s.LastSeenAt}, timeInto{&s.ExpiresAt},
	}
}

func scanSession(row scanner) (s store.Session, err error) {
	err = row.Scan(sessionDest(&s)...)
	return s, err
}

// CreateToken implements store.Store.
func (db *DB) CreateToken(ctx context.Context, t store.Token) (store.Token, error) {
	t = store.EnrollToken(t, time.Now())
	err := db.write(ctx, "create token", func(tx *sql.Tx) error {
		scopes, err := jsonText(append([]store.Scope{}, t.Scopes...))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO tokens (id, name, hash, role, scopes, created_at, expires_at)
			VALUES (?, ?, ?, ?, ?, ?, ?)`, t.ID, t.Name, t.Hash, t.Role, scopes, t.CreatedAt.UnixMicro(), microsOrNil(t.ExpiresAt))
		if err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, t)
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
			WHERE hash = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`, hash, now.UnixMicro()))
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
		before, err := scanToken(tx.QueryRowContext(ctx, `SELECT `+tokenColumns+` FROM tokens WHERE id = ?`, id))
		if err != nil || before.RevokedAt != nil {
			return notFound(err)
		}
		after := before
		after.RevokedAt = &now
		if err := execOne(ctx, tx, `UPDATE tokens SET revoked_at = ? WHERE id = ?`, now.UnixMicro(), id); err != nil {
			return err
		}
		return audit(ctx, tx, "revoke", before, after)
	})
}

// Logins implements store.Store.
func (db *DB) Logins(ctx context.Context, hashes [][]byte, now time.Time) (found []store.Login, err error) {
	texts := make([]string, 0, len(hashes))
	for _, hash := range hashes {
		texts = append(texts, hex.EncodeToString(hash))
	}
	list, err := jsonText(texts)
	if err != nil {
		return nil, err
	}
	// CROSS JOIN keeps the order: a look into the index for each hash.
	err = db.read(ctx, "look at logins", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanLogin, `
			WITH hashes (hash) AS (SELECT unhex(value) FROM json_each(?1))
			SELECT s.token_hash, u.role
			FROM hashes h
			CROSS JOIN sessions s ON s.token_hash = h.hash AND s.expires_at > ?2
			CROSS JOIN users u ON u.id = s.user_id AND u.disabled_at IS NULL
			UNION ALL
			SELECT t.hash, t.role
			FROM hashes h
			CROSS JOIN tokens t ON t.hash = h.hash AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > ?2)`,
			list, now.UnixMicro())
		return err
	})
	return found, err
}

func scanLogin(row scanner) (l store.Login, err error) {
	err = row.Scan(&l.Hash, &l.Role)
	return l, err
}

// tokenColumns are what scanToken scans.
const tokenColumns = `id, name, hash, role, scopes, created_at, expires_at, last_used_at, revoked_at`

func scanToken(row scanner) (store.Token, error) {
	var t store.Token
	err := row.Scan(&t.ID, &t.Name, &t.Hash, &t.Role, jsonInto{&t.Scopes}, timeInto{&t.CreatedAt}, timeOrNil{&t.ExpiresAt},
		timeOrNil{&t.LastUsedAt}, timeOrNil{&t.RevokedAt})
	if len(t.Scopes) == 0 {
		t.Scopes = nil
	}
	return t, err
}
