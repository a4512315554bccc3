package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// CreateStatusPage implements store.Store.
func (db *DB) CreateStatusPage(ctx context.Context, p store.StatusPage) (store.StatusPage, error) {
	p, err := store.EnrollStatusPage(p, time.Now())
	if err != nil {
		return store.StatusPage{}, err
	}
	err = db.write(ctx, "create status page", func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM status_pages`).Scan(&n); err != nil {
			return err
		}
		if err := store.TooManyStatusPages(n); err != nil {
			return err
		}
		if err := refuse(ctx, tx, "slug", `SELECT 1 FROM status_pages WHERE slug = ?`, p.Slug); err != nil {
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

// UpdateStatusPage implements store.Store. change must not call the store.
func (db *DB) UpdateStatusPage(
	ctx context.Context, slug string, change func(*store.StatusPage) error,
) (p store.StatusPage, err error) {
	err = db.write(ctx, "update status page", func(tx *sql.Tx) error {
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
	return db.write(ctx, "delete status page", func(tx *sql.Tx) error {
		p, err := statusPage(ctx, tx, slug)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM channels WHERE id IN (SELECT id FROM subscriptions WHERE page_id = ?)`, p.ID)
		if err != nil {
			return err
		}
		if err := execOne(ctx, tx, `DELETE FROM status_pages WHERE slug = ?`, slug); err != nil {
			return err
		}
		return audit(ctx, tx, store.AuditDelete, p, nil)
	})
}

// StatusPage implements store.Store.
func (db *DB) StatusPage(ctx context.Context, slug string) (p store.StatusPage, err error) {
	err = db.read(ctx, "read status page", func(tx *sql.Tx) (err error) {
		p, err = statusPage(ctx, tx, slug)
		return err
	})
	return p, err
}

// StatusPages implements store.Store.
func (db *DB) StatusPages(ctx context.Context) (found []store.StatusPage, err error) {
	err = db.read(ctx, "list status pages", func(tx *sql.Tx) (err error) {
		found, err = query(ctx, tx, scanStatusPage, `
			SELECT `+statusPageColumns+`, NULL
			FROM status_pages p
			ORDER BY p.slug`)
		return err
	})
	return found, err
}

func statusPage(ctx context.Context, tx *sql.Tx, slug string) (store.StatusPage, error) {
	p, err := scanStatusPage(tx.QueryRowContext(ctx, `
		SELECT `+statusPageColumns+`, p.logo
		FROM status_pages p
		WHERE p.slug = ?`, slug))
	return p, notFound(err)
}

// subscribedPages returns the pages that anybody has subscribed on, without their logos, by id.
func subscribedPages(ctx context.Context, tx *sql.Tx) (map[string]*store.StatusPage, error) {
	found, err := query(ctx, tx, scanStatusPage, `
		SELECT `+statusPageColumns+`, NULL
		FROM status_pages p
		WHERE p.id IN (SELECT page_id FROM subscriptions WHERE page_id IS NOT NULL)`)
	pages := map[string]*store.StatusPage{}
	for _, p := range found {
		pages[p.ID] = &p
	}
	return pages, err
}

// statusPageColumns are what scanStatusPage scans before the logo, of status_pages p.
const statusPageColumns = `
	p.id, p.slug, p.name, p.text, p.logo_type, p.accent, p.sections, COALESCE(p.domain, ''), p.domain_token, p.domain_proven_at,
	p.password_hash, p.hidden, p.created_at, p.updated_at`

func scanStatusPage(row scanner) (store.StatusPage, error) {
	var p store.StatusPage
	err := row.Scan(&p.ID, &p.Slug, &p.Name, &p.Text, &p.LogoType, &p.Accent, jsonInto{&p.Sections}, &p.Domain, &p.DomainToken,
		timeOrNil{&p.DomainProvenAt}, &p.PasswordHash, &p.HideFromSearch, timeInto{&p.CreatedAt}, timeInto{&p.UpdatedAt}, &p.Logo)
	return p, err
}

func putStatusPage(ctx context.Context, tx *sql.Tx, p store.StatusPage) error {
	if p.Domain != "" {
		err := refuse(ctx, tx, "domain", `SELECT 1 FROM status_pages WHERE domain = ? AND id <> ?`, p.Domain, p.ID)
		if err != nil {
			return err
		}
	}
	sections, err := jsonText(p.Sections)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO status_pages (
		    id, slug, name, text, logo, logo_type, accent, sections, domain, domain_token, domain_proven_at, password_hash, hidden,
		    created_at, updated_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE
		SET name = excluded.name, text = excluded.text, logo = excluded.logo, logo_type = excluded.logo_type,
		    accent = excluded.accent, sections = excluded.sections, domain = excluded.domain,
		    domain_proven_at = excluded.domain_proven_at, password_hash = excluded.password_hash, hidden = excluded.hidden,
		    updated_at = excluded.updated_at`,
		p.ID, p.Slug, p.Name, p.Text, p.Logo, p.LogoType, p.Accent, sections, p.Domain, p.DomainToken, microsOrNil(p.DomainProvenAt),
		p.PasswordHash, p.HideFromSearch, p.CreatedAt.UnixMicro(), p.UpdatedAt.UnixMicro())
	return err
}
