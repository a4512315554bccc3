-- Who may come in.

CREATE TABLE users (
    id            TEXT PRIMARY KEY NOT NULL,
    name          TEXT NOT NULL,
    name_key      TEXT NOT NULL UNIQUE, -- the name without case, as the program folds it: people log in by it
    password_hash TEXT NOT NULL,
    role          TEXT NOT NULL,
    created_at    INTEGER NOT NULL
) STRICT;

-- The token of the setup link, as its hash. It is spent when the first user is made.
CREATE TABLE setup_token (
    id         INTEGER PRIMARY KEY CHECK (id = 1), -- only the latest link works
    hash       BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Logins. The cookie holds a secret, the table its hash.
CREATE TABLE sessions (
    token_hash BLOB PRIMARY KEY NOT NULL,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- For clearing out what has expired.
CREATE INDEX sessions_expiring ON sessions (expires_at);

-- Keys to the REST API, as their hashes.
CREATE TABLE tokens (
    id           TEXT PRIMARY KEY NOT NULL,
    name         TEXT NOT NULL,
    hash         BLOB NOT NULL UNIQUE,
    role         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER, -- to the minute
    revoked_at   INTEGER
) STRICT;
