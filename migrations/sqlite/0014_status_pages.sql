-- Status pages beside the built-in one.
CREATE TABLE status_pages (
    id               TEXT PRIMARY KEY NOT NULL,
    slug             TEXT NOT NULL UNIQUE,
    name             TEXT NOT NULL,
    text             TEXT NOT NULL,
    logo             BLOB,          -- NULL for none
    logo_type        TEXT NOT NULL, -- empty for none
    accent           TEXT NOT NULL, -- empty for the usual one
    sections         TEXT NOT NULL CHECK (json_valid(sections)), -- array of objects; endpoints in it may be gone
    domain           TEXT,          -- NULL for none
    domain_token     TEXT NOT NULL,
    domain_proven_at INTEGER,       -- when its record was last seen, NULL when it is not proven
    password_hash    TEXT NOT NULL, -- empty for a page that everybody may see
    hidden           INTEGER NOT NULL CHECK (hidden IN (0, 1)), -- from search engines
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    CHECK (length(logo) <= 102400),
    CHECK (domain_proven_at IS NULL OR domain IS NOT NULL)
) STRICT;

-- A domain leads to one page.
CREATE UNIQUE INDEX status_pages_by_domain ON status_pages (domain) WHERE domain IS NOT NULL;
