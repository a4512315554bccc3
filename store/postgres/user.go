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
		return createUser(ctx, tx, u)
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

// Users implements store.Store.
func (db *DB) Users(ctx context.Context) ([]store.User, error) {
	found, err := query(ctx, db.pool, scanUser, `SELECT `+userColumns+` FROM users u ORDER BY u.name_key`)
	return found, explain("list users", err)
}

// User implements store.Store.
func (db *DB) User(ctx context.Context, id string) (store.User, error) {
	return db.user(ctx, `u.id = $1`, id)
}

// UserByName implements store.Store.
func (db *DB) UserByName(ctx context.Context, name string) (store.User, error) {
	return db.user(ctx, `u.name_key = $1`, store.Fold(name))
}

// UserByIdentity implements store.Store.
func (db *DB) UserByIdentity(ctx context.Context, issuer, subject string) (store.User, error) {
	return db.user(ctx, `u.issuer = $1 AND u.subject = $2`, issuer, subject)
}

// user returns the one that a condition on users u selects.
func (db *DB) user(ctx context.Context, condition string, args ...any) (store.User, error) {
	u, err := queryOne(ctx, db.pool, scanUser, `SELECT `+userColumns+` FROM users u WHERE `+condition, args...)
	return u, explain("read user", err)
}

// lockUser returns a user whom nobody else changes until the transaction ends.
func lockUser(ctx context.Context, tx pgx.Tx, id string) (store.User, error) {
	return queryOne(ctx, tx, scanUser, `SELECT `+userColumns+` FROM users u WHERE u.id = $1 FOR NO KEY UPDATE OF u`, id)
}

// CreateUser implements store.Store.
func (db *DB) CreateUser(ctx context.Context, u store.User) (store.User, error) {
	u, err := store.EnrollMember(u, time.Now())
	if err != nil {
		return store.User{}, err
	}
	if err := db.write(ctx, "create user", func(tx pgx.Tx) error { return createUser(ctx, tx, u) }); err != nil {
		return store.User{}, err
	}
	return u, nil
}

func createUser(ctx context.Context, tx pgx.Tx, u store.User) error {
	if err := lockUserName(ctx, tx, u); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO users (id, name, name_key, password_hash, role, disabled_at, issuer, subject, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, NULLIF($7, ''), NULLIF($8, ''), $9)`,
		u.ID, u.Name, store.Fold(u.Name), u.PasswordHash, u.Role, u.DisabledAt, u.Issuer, u.Subject, u.CreatedAt)
	if err != nil {
		return err
	}
	return audit(ctx, tx, store.AuditCreate, nil, u)
}

// lockUserName returns a Conflict when somebody else has the name, or the identity, and keeps others from taking them until the
// transaction ends.
func lockUserName(ctx context.Context, tx pgx.Tx, u store.User) error {
	if err := lock(ctx, tx, lockNames); err != nil {
		return err
	}
	err := refuse(ctx, tx, "name", `SELECT EXISTS (SELECT 1 FROM users WHERE name_key = $1 AND id <> $2)`, store.Fold(u.Name), u.ID)
	if err != nil || u.Issuer == "" {
		return err
	}
	return refuse(ctx, tx, "subject", `SELECT EXISTS (SELECT 1 FROM users WHERE issuer = $1 AND subject = $2 AND id <> $3)`,
		u.Issuer, u.Subject, u.ID)
}

// UpdateUser implements store.Store. change may be called again when the transaction got in another's way.
func (db *DB) UpdateUser(ctx context.Context, id string, change func(*store.User) error) (u store.User, err error) {
	err = db.write(ctx, "update user", func(tx pgx.Tx) (err error) {
		u, err = updateUser(ctx, tx, id, change)
		return err
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

func updateUser(ctx context.Context, tx pgx.Tx, id string, change func(*store.User) error) (store.User, error) {
	if err := lock(ctx, tx, lockSetup); err != nil { // two admins could demote each other
		return store.User{}, err
	}
	before, err := lockUser(ctx, tx, id)
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
	if err := lockUserName(ctx, tx, after); err != nil {
		return store.User{}, err
	}
	_, err = tx.Exec(ctx, `
		UPDATE users
		SET name = $2, name_key = $3, password_hash = $4, role = $5, disabled_at = $6, issuer = NULLIF($7, ''), subject = NULLIF($8, '')
		WHERE id = $1`,
		id, after.Name, store.Fold(after.Name), after.PasswordHash, after.Role, after.DisabledAt, after.Issuer, after.Subject)
	if err != nil {
		return store.User{}, err
	}
	if store.EndsSessions(before, after) {
		if _, err := tx.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1`, id); err != nil {
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
func refuseLastAdmin(ctx context.Context, tx pgx.Tx, id string) error {
	var others bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT 1 FROM users WHERE role = $1 AND disabled_at IS NULL AND id <> $2)`, store.RoleAdmin, id).Scan(&others)
	if err == nil && !others {
		return store.ErrLastAdmin
	}
	return err
}

// endSubscriptions removes what a user is sent, with its channels.
func endSubscriptions(ctx context.Context, tx pgx.Tx, userID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM channels WHERE id IN (SELECT id FROM subscriptions WHERE user_id = $1)`, userID)
	return err
}

// DeleteUser implements store.Store.
func (db *DB) DeleteUser(ctx context.Context, id string) error {
	return db.write(ctx, "delete user", func(tx pgx.Tx) error {
		if err := lock(ctx, tx, lockSetup); err != nil {
			return err
		}
		before, err := lockUser(ctx, tx, id)
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
		if err := execOne(ctx, tx, `DELETE FROM users WHERE id = $1`, id); err != nil {
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
	return []any{&u.ID, &u.Name, &u.PasswordHash, &u.Role, &u.DisabledAt, &u.Issuer, &u.Subject, &u.CreatedAt, &u.HasFactor}
}

func scanUser(row pgx.CollectableRow) (u store.User, err error) {
	err = row.Scan(userDest(&u)...)
	return u, err
}

// CreateSession implements store.Store. It also clears out the sessions that have expired when this one is created.
func (db *DB) CreateSession(ctx context.Context, s store.Session) error {
	s = store.EnrollSession(s)
	return db.write(ctx, "create session", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM sessions WHERE expires_at <= $1`, s.CreatedAt); err != nil {
			return err
		}
		return execOne(ctx, tx, `
			INSERT INTO sessions (token_hash, user_id, address, user_agent, created_at, last_seen_at, expires_at)
			SELECT $1, u.id, $3, $4, $5, $6, $7
			FROM users u
			WHERE u.id = $2`, s.TokenHash, s.UserID, s.Address, s.UserAgent, s.CreatedAt, s.LastSeenAt, s.ExpiresAt)
	})
}

// Session implements store.Store.
func (db *DB) Session(ctx context.Context, tokenHash []byte, now time.Time) (store.Session, store.User, error) {
	var s store.Session
	var u store.User
	err := db.pool.QueryRow(ctx, `
		SELECT `+sessionColumns+`, `+userColumns+`
		FROM sessions s
		JOIN users u ON u.id = s.user_id
		WHERE s.token_hash = $1 AND s.expires_at > $2 AND u.disabled_at IS NULL`, tokenHash, now).
		Scan(append(sessionDest(&s), userDest(&u)...)...)
	return s, u, explain("read session", err)
}

// SeeSession implements store.Store.
func (db *DB) SeeSession(ctx context.Context, tokenHash []byte, at time.Time) error {
	_, err := db.pool.Exec(ctx, `UPDATE sessions SET last_seen_at = $2 WHERE token_hash = $1`, tokenHash, at)
	return explain("see session", err)
}

// Sessions implements store.Store.
func (db *DB) Sessions(ctx context.Context, userID string, now time.Time) ([]store.Session, error) {
	found, err := query(ctx, db.pool, scanSession, `
		SELECT `+sessionColumns+`
		FROM sessions s
		WHERE s.user_id = $1 AND s.expires_at > $2
		ORDER BY COALESCE(s.last_seen_at, s.created_at) DESC, s.token_hash`, userID, now)
	return found, explain("list sessions", err)
}

// DeleteSession implements store.Store.
func (db *DB) DeleteSession(ctx context.Context, tokenHash []byte) error {
	return db.write(ctx, "delete session", func(tx pgx.Tx) error {
		_, err := deleteSessions(ctx, tx, `s.token_hash = $1`, tokenHash)
		return err
	})
}

// DeleteSessions implements store.Store.
func (db *DB) DeleteSessions(ctx context.Context, userID string, keep []byte) (n int, err error) {
	err = db.write(ctx, "delete sessions", func(tx pgx.Tx) (err error) {
		n, err = deleteSessions(ctx, tx, `s.user_id = $1 AND s.token_hash <> $2`, userID, append([]byte{}, keep...))
		return err
	})
	return n, err
}

// deleteSessions ends those that a condition on s selects, and says how many.
func deleteSessions(ctx context.Context, tx pgx.Tx, condition string, args ...any) (int, error) {
	gone, err := query(ctx, tx, scanSession, `DELETE FROM sessions s WHERE `+condition+` RETURNING `+sessionColumns, args...)
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

// sessionColumns are what sessionDest takes, of sessions s.
const sessionColumns = `
	s.token_hash, s.user_id, s.address, s.user_agent, s.created_at, COALESCE(s.last_seen_at, s.created_at), s.expires_at`

func sessionDest(s *store.Session) []any {
	return []any{&s.TokenHash, &s.UserID, &s.Address, &s.UserAgent, &s.CreatedAt, &s.LastSeenAt, &s.ExpiresAt}
}

func scanSession(row pgx.CollectableRow) (s store.Session, err error) {
	err = row.Scan(sessionDest(&s)...)
	return s, err
}

// CreateToken implements store.Store.
func (db *DB) CreateToken(ctx context.Context, t store.Token) (store.Token, error) {
	t = store.EnrollToken(t, time.Now())
	err := db.write(ctx, "create token", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO tokens (id, name, hash, role, scopes, created_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, t.ID, t.Name, t.Hash, t.Role, scopeTexts(t.Scopes), t.CreatedAt, t.ExpiresAt)
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

// scopeTexts returns scopes as their column keeps them, which no NULL is in.
func scopeTexts(scopes []store.Scope) []string {
	texts := make([]string, 0, len(scopes))
	for _, s := range scopes {
		texts = append(texts, string(s))
	}
	return texts
}

// UseToken implements store.Store. It writes once a minute at most.
func (db *DB) UseToken(ctx context.Context, hash []byte, now time.Time) (store.Token, error) {
	t, err := queryOne(ctx, db.pool, scanToken, `
		SELECT `+tokenColumns+`
		FROM tokens
		WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`, hash, now)
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
	return db.write(ctx, "revoke token", func(tx pgx.Tx) error {
		before, err := queryOne(ctx, tx, scanToken, `SELECT `+tokenColumns+` FROM tokens WHERE id = $1 FOR UPDATE`, id)
		if err != nil || before.RevokedAt != nil {
			return err
		}
		after := before
		after.RevokedAt = &now
		if err := execOne(ctx, tx, `UPDATE tokens SET revoked_at = $2 WHERE id = $1`, id, now); err != nil {
			return err
		}
		return audit(ctx, tx, "revoke", before, after)
	})
}

// Logins implements store.Store.
func (db *DB) Logins(ctx context.Context, hashes [][]byte, now time.Time) ([]store.Login, error) {
	found, err := query(ctx, db.pool, scanLogin, `
		SELECT s.token_hash, u.role
		FROM sessions s
		JOIN users u ON u.id = s.user_id
		WHERE s.token_hash = ANY ($1) AND s.expires_at > $2 AND u.disabled_at IS NULL
		UNION ALL
		SELECT hash, role
		FROM tokens
		WHERE hash = ANY ($1) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`, hashes, now)
	return found, explain("look at logins", err)
}

func scanLogin(row pgx.CollectableRow) (l store.Login, err error) {
	err = row.Scan(&l.Hash, &l.Role)
	return l, err
}

// tokenColumns are what scanToken scans.
const tokenColumns = `id, name, hash, role, scopes, created_at, expires_at, last_used_at, revoked_at`

func scanToken(row pgx.CollectableRow) (store.Token, error) {
	var t store.Token
	var scopes []string
	err := row.Scan(&t.ID, &t.Name, &t.Hash, &t.Role, &scopes, &t.CreatedAt, &t.ExpiresAt, &t.LastUsedAt, &t.RevokedAt)
	for _, s := range scopes {
		t.Scopes = append(t.Scopes, store.Scope(s))
	}
	return t, err
}
