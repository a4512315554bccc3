package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rollcallhq/rollcall/store"
)

// CreateStatusPage implements store.Store.
func (db *DB) CreateStatusPage(ctx context.Context, p store.StatusPage) (store.StatusPage, error) {
	p, err := store.EnrollStatusPage(p, time.Now())
	if err != nil {
		return store.StatusPage{}, err
	}
	err = db.write(ctx, "create status page", func(tx pgx.Tx) error {
		if err := lockStatusPages(ctx, tx); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM status_pages`).Scan(&n); err != nil {
			return err
		}
		if err := store.TooManyStatusPages(n); err != nil {
			return err
		}
		if err := refuse(ctx, tx, "slug", `SELECT EXISTS (SELECT FROM status_pages WHERE slug = $1)`, p.Slug); err != nil {
			return err
		}
		if err := putStatusPage(ctx, tx, p); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditCreate, nil, p)
	})
	if err != nil {
		return store.StatusPage{}, err
	}
	return p, nil
}

// lockStatusPages keeps others from changing pages until the transaction ends: they are few and change rarely.
func lockStatusPages(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `LOCK TABLE status_pages IN SHARE ROW EXCLUSIVE MODE`)
	return err
}

// UpdateStatusPage implements store.Store. change may be called again when the transaction got in another's way.
func (db *DB) UpdateStatusPage(
	ctx context.Context, slug string, change func(*store.StatusPage) error,
) (p store.StatusPage, err error) {
	err = db.write(ctx, "update status page", func(tx pgx.Tx) error {
		if err := lockStatusPages(ctx, tx); err != nil {
			return err
		}
		before, err := statusPage(ctx, tx, slug)
		if err != nil {
			return err
		}
		if p, err = store.EditStatusPage(before, change, time.Now()); err != nil {
			return err
		}
		if err := putStatusPage(ctx, tx, p); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditUpdate, before, p)
	})
	if err != nil {
		return store.StatusPage{}, err
	}
	return p, nil
}

// DeleteStatusPage implements store.Store.
func (db *DB) DeleteStatusPage(ctx context.Context, slug string) error {
	return db.write(ctx, "delete status page", func(tx pgx.Tx) error {
		if err := lockStatusPages(ctx, tx); err != nil {
			return err
		}
		p, err := statusPage(ctx, tx, store.CleanText(slug))
		if err != nil {
			return err
		}
		// Who subscribes at this moment waits, and finds it gone.
		if err := execOne(ctx, tx, `SELECT FROM status_pages WHERE id = $1 FOR UPDATE`, p.ID); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM channels WHERE id IN (SELECT id FROM subscriptions WHERE page_id = $1)`, p.ID)
		if err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM status_pages WHERE id = $1`, p.ID); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, p, nil)
	})
}

// StatusPage implements store.Store.
func (db *DB) StatusPage(ctx context.Context, slug string) (store.StatusPage, error) {
	p, err := statusPage(ctx, db.pool, slug)
	return p, explain("read status page", err)
}

// StatusPages implements store.Store.
func (db *DB) StatusPages(ctx context.Context) ([]store.StatusPage, error) {
	found, err := query(ctx, db.pool, scanStatusPage, `
		SELECT `+statusPageColumns+`, NULL::bytea
		FROM status_pages p
		ORDER BY p.slug`)
	return found, explain("list status pages", err)
}

func statusPage(ctx context.Context, q querier, slug string) (store.StatusPage, error) {
	return queryOne(ctx, q, scanStatusPage, `
		SELECT `+statusPageColumns+`, p.logo
		FROM status_pages p
		WHERE p.slug = $1`, store.CleanText(slug))
}

// statusPageColumns are what scanStatusPage scans before the logo, of status_pages p.
const statusPageColumns = `
	p.id, p.slug, p.name, p.text, p.logo_type, p.accent, p.sections, COALESCE(p.domain, ''), p.domain_token, p.domain_proven_at,
	p.password_hash, p.hidden, p.created_at, p.updated_at`

func scanStatusPage(row pgx.CollectableRow) (p store.StatusPage, err error) {
	err = row.Scan(&p.ID, &p.Slug, &p.Name, &p.Text, &p.LogoType, &p.Accent, &p.Sections, &p.Domain, &p.DomainToken,
		&p.DomainProvenAt, &p.PasswordHash, &p.HideFromSearch, &p.CreatedAt, &p.UpdatedAt, &p.Logo)
	return p, err
}

func putStatusPage(ctx context.Context, tx pgx.Tx, p store.StatusPage) error {
	if p.Domain != "" {
		err := refuse(ctx, tx, "domain", `SELECT EXISTS (SELECT FROM status_pages WHERE domain = $1 AND id <> $2)`, p.Domain, p.ID)
		if err != nil {
			return err
		}
	}
	sections, err := json.Marshal(p.Sections)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO status_pages (
		    id, slug, name, text, logo, logo_type, accent, sections, domain, domain_token, domain_proven_at, password_hash, hidden,
		    created_at, updated_at
		) VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, NULLIF($9, ''), $10, $11, $12, $13, $14, $15)
		ON CONFLICT (id) DO UPDATE
		SET name = excluded.name, text = excluded.text, logo = excluded.logo, logo_type = excluded.logo_type,
		    accent = excluded.accent, sections = excluded.sections, domain = excluded.domain,
		    domain_proven_at = excluded.domain_proven_at, password_hash = excluded.password_hash, hidden = excluded.hidden,
		    updated_at = excluded.updated_at`,
		p.ID, p.Slug, p.Name, p.Text, p.Logo, p.LogoType, p.Accent, string(sections), p.Domain, p.DomainToken, p.DomainProvenAt,
		p.PasswordHash, p.HideFromSearch, p.CreatedAt, p.UpdatedAt)
	return err
}
