package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// CreateInvitation implements store.Store. It also clears out those that have expired when this one is created.
func (db *DB) CreateInvitation(ctx context.Context, i store.Invitation) (store.Invitation, error) {
	i, err := store.EnrollInvitation(i, time.Now())
	if err != nil {
		return store.Invitation{}, err
	}
	err = db.write(ctx, "create invitation", func(tx pgx.Tx) error {
		if !i.Invites() {
			if _, err := lockUser(ctx, tx, i.UserID); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `DELETE FROM invitations WHERE expires_at <= $1 OR user_id = NULLIF($2, '')`, i.CreatedAt, i.UserID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO invitations (id, hash, user_id, name, role, author, created_at, expires_at)
			VALUES ($1, $2, NULLIF($3, ''), $4, $5, $6, $7, $8)`,
			i.ID, i.Hash, i.UserID, i.Name, i.Role, i.Author, i.CreatedAt, i.ExpiresAt)
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
func (db *DB) Invitations(ctx context.Context, now time.Time) ([]store.Invitation, error) {
	found, err := query(ctx, db.pool, scanInvitation, `
		SELECT `+invitationColumns+`
		FROM invitations
		WHERE expires_at > $1
		ORDER BY created_at DESC, id DESC`, now)
	return found, explain("list invitations", err)
}

// Invitation implements store.Store.
func (db *DB) Invitation(ctx context.Context, hash []byte, now time.Time) (store.Invitation, error) {
	i, err := queryOne(ctx, db.pool, scanInvitation, `
		SELECT `+invitationColumns+`
		FROM invitations
		WHERE hash = $1 AND expires_at > $2`, hash, now)
	return i, explain("read invitation", err)
}

// DeleteInvitation implements store.Store.
func (db *DB) DeleteInvitation(ctx context.Context, id string) error {
	return db.write(ctx, "delete invitation", func(tx pgx.Tx) error {
		i, err := queryOne(ctx, tx, scanInvitation, `DELETE FROM invitations WHERE id = $1 RETURNING `+invitationColumns, id)
		if err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, i, nil)
	})
}

// AcceptInvitation implements store.Store.
func (db *DB) AcceptInvitation(ctx context.Context, hash []byte, now time.Time, u store.User) (member store.User, err error) {
	err = db.write(ctx, "accept invitation", func(tx pgx.Tx) error {
		i, err := queryOne(ctx, tx, scanInvitation, `
			DELETE FROM invitations
			WHERE hash = $1 AND expires_at > $2
			RETURNING `+invitationColumns, hash, now)
		if err != nil {
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

func scanInvitation(row pgx.CollectableRow) (store.Invitation, error) {
	var i store.Invitation
	err := row.Scan(&i.ID, &i.Hash, &i.UserID, &i.Name, &i.Role, &i.Author, &i.CreatedAt, &i.ExpiresAt)
	return i, err
}
