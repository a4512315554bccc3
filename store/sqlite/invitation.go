package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// CreateInvitation implements store.Store. It also clears out those that have expired when this one is created.
func (db *DB) CreateInvitation(ctx context.Context, i store.Invitation) (store.Invitation, error) {
	i, err := store.EnrollInvitation(i, time.Now())
	if err != nil {
		return store.Invitation{}, err
	}
	err = db.write(ctx, "create invitation", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM invitations WHERE expires_at <= ? OR user_id = NULLIF(?, '')`,
			i.CreatedAt.UnixMicro(), i.UserID)
		if err != nil {
			return err
		}
		if !i.Invites() {
			if _, err := user(ctx, tx, `u.id = ?`, i.UserID); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO invitations (id, hash, user_id, name, role, author, created_at, expires_at)
			VALUES (?, ?, NULLIF(?, ''), ?, ?, ?, ?, ?)`,
			i.ID, i.Hash, i.UserID, i.Name, i.Role, i.Author, i.CreatedAt.UnixMicro(), i.ExpiresAt.UnixMicro())
		if err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, i)
	})
	if err != nil {
		return store.Invitation{}, err
	}
	return i, nil
}

// Invitations implements store.Store.
func (db *DB) Invitations(ctx context.Context, now time.Time) (found []store.Invitation, err error) {
	err = db.read(ctx, "list invitations", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanInvitation, `
			SELECT `+invitationColumns+`
			FROM invitations
			WHERE expires_at > ?
			ORDER BY created_at DESC, id DESC`, now.UnixMicro())
		return err
	})
	return found, err
}

// Invitation implements store.Store.
func (db *DB) Invitation(ctx context.Context, hash []byte, now time.Time) (i store.Invitation, err error) {
	err = db.read(ctx, "read invitation", func(tx *sql.Tx) (err error) {
		i, err = goodInvitation(ctx, tx, hash, now)
		return err
	})
	return i, err
}

func goodInvitation(ctx context.Context, tx *sql.Tx, hash []byte, now time.Time) (store.Invitation, error) {
	i, err := scanInvitation(tx.QueryRowContext(ctx, `
		SELECT `+invitationColumns+`
		FROM invitations
		WHERE hash = ? AND expires_at > ?`, hash, now.UnixMicro()))
	return i, notFound(err)
}

// DeleteInvitation implements store.Store.
func (db *DB) DeleteInvitation(ctx context.Context, id string) error {
	return db.write(ctx, "delete invitation", func(tx *sql.Tx) error {
		i, err := scanInvitation(tx.QueryRowContext(ctx, `DELETE FROM invitations WHERE id = ? RETURNING `+invitationColumns, id))
		if err != nil {
			return notFound(err)
		}
		return audit(ctx, tx, store.AuditDelete, i, nil)
	})
}

// AcceptInvitation implements store.Store.
func (db *DB) AcceptInvitation(ctx context.Context, hash []byte, now time.Time, u store.User) (member store.User, err error) {
	err = db.write(ctx, "accept invitation", func(tx *sql.Tx) error {
		i, err := goodInvitation(ctx, tx, hash, now)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM invitations WHERE id = ?`, i.ID); err != nil {
			return err
		}
		if i.Invites() {
			if member, err = i.Accept(u, now); err != nil {
				return err
			}
			return createUser(ctx, tx, member)
		}
		member, err = updateUser(ctx, tx, i.UserID, func(known *store.User) error {
			known.PasswordHash = u.PasswordHash
			return nil
		})
		return err
	})
	if err != nil {
		return store.User{}, err
	}
	return member, nil
}

// invitationColumns are what scanInvitation scans.
const invitationColumns = `id, hash, COALESCE(user_id, ''), name, role, author, created_at, expires_at`

func scanInvitation(row scanner) (store.Invitation, error) {
	var i store.Invitation
	err := row.Scan(&i.ID, &i.Hash, &i.UserID, &i.Name, &i.Role, &i.Author, timeInto{&i.CreatedAt}, timeInto{&i.ExpiresAt})
	return i, err
}
