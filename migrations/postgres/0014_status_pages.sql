CREATE TABLE status_pages (
    id               text COLLATE "C" PRIMARY KEY,
    slug             text COLLATE "C" NOT NULL UNIQUE,
    name             text NOT NULL,
    text             text NOT NULL,
    logo             bytea,
    logo_type        text NOT NULL,
    accent           text NOT NULL,
    sections         jsonb NOT NULL,
    domain           text COLLATE "C",
    domain_token     text NOT NULL,
    domain_proven_at timestamptz,
    password_hash    text NOT NULL,
    hidden           boolean NOT NULL,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    CHECK (octet_length(logo) <= 102400),
    CHECK (domain_proven_at IS NULL OR domain IS NOT NULL)
);
COMMENT ON TABLE status_pages IS 'Status pages beside the built-in one.';
COMMENT ON COLUMN status_pages.sections IS 'Array of objects with a title, endpoints by their ids, which may be gone, and tags.';
COMMENT ON COLUMN status_pages.domain IS 'Where the page is at the root; NULL for nowhere.';
COMMENT ON COLUMN status_pages.domain_proven_at IS 'When its TXT record was last seen; NULL when the domain is not proven.';
COMMENT ON COLUMN status_pages.password_hash IS 'Empty for a page that everybody may see.';
COMMENT ON COLUMN status_pages.hidden IS 'From search engines.';

CREATE UNIQUE INDEX status_pages_by_domain ON status_pages (domain) WHERE domain IS NOT NULL;
COMMENT ON INDEX status_pages_by_domain IS 'A domain leads to one page.';
