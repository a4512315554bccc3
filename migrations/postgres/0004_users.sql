-- Who may come in.

CREATE TABLE users (
    id            text COLLATE "C" PRIMARY KEY,
    name          text NOT NULL,
    name_key      text COLLATE "C" NOT NULL UNIQUE,
    password_hash text NOT NULL,
    role          text NOT NULL,
    created_at    timestamptz NOT NULL
);
COMMENT ON TABLE users IS 'Who may log in.';
COMMENT ON COLUMN users.name_key IS 'The name without case, as the program folds it: people log in by it.';

CREATE TABLE setup_token (
    id         integer PRIMARY KEY CHECK (id = 1), -- only the latest link works
    hash       bytea NOT NULL,
    created_at timestamptz NOT NULL
);
COMMENT ON TABLE setup_token IS 'The token of the setup link, as its hash. It is spent when the first user is made.';

CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY,
    user_id    text COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE sessions IS 'Logins. The cookie holds a secret, the table its hash.';

CREATE INDEX sessions_expiring ON sessions (expires_at);
COMMENT ON INDEX sessions_expiring IS 'For clearing out what has expired.';

CREATE TABLE tokens (
    id           text COLLATE "C" PRIMARY KEY,
    name         text NOT NULL,
    hash         bytea NOT NULL UNIQUE,
    role         text NOT NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at   timestamptz
);
COMMENT ON TABLE tokens IS 'Keys to the REST API, as their hashes.';
COMMENT ON COLUMN tokens.last_used_at IS 'To the minute.';
