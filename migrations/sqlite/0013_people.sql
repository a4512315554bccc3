-- Members with roles, how they prove who they are, and the log of what they change.

ALTER TABLE users ADD COLUMN disabled_at INTEGER; -- NULL of one who may log in
ALTER TABLE users ADD COLUMN issuer TEXT;         -- with subject: who a provider of identities knows them as; NULL of nobody there
ALTER TABLE users ADD COLUMN subject TEXT;
CREATE UNIQUE INDEX users_by_identity ON users (issuer, subject) WHERE issuer IS NOT NULL;

ALTER TABLE sessions ADD COLUMN address TEXT NOT NULL DEFAULT '';    -- from where it began
ALTER TABLE sessions ADD COLUMN user_agent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN last_seen_at INTEGER;                -- to the minute; NULL: not since it began

-- For the list of somebody's sessions, and for the end of all of them.
CREATE INDEX sessions_of_user ON sessions (user_id);

ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(scopes)); -- empty: all that the role may
ALTER TABLE tokens ADD COLUMN expires_at INTEGER; -- NULL: never

-- Links that work once, as their hashes.
CREATE TABLE invitations (
    id         TEXT PRIMARY KEY NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    user_id    TEXT REFERENCES users (id) ON DELETE CASCADE, -- whose password it sets; NULL of one that makes a member
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    author     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

-- One link at a time sets somebody's password.
CREATE UNIQUE INDEX invitations_of_user ON invitations (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE second_factors (
    user_id      TEXT PRIMARY KEY NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    secret       BLOB NOT NULL,     -- sealed
    confirmed_at INTEGER,           -- NULL while it waits for a first code
    last_step    INTEGER NOT NULL,  -- of the last code that was used: none works twice
    recovery     TEXT NOT NULL CHECK (json_valid(recovery)), -- hashes of the recovery codes that are left
    created_at   INTEGER NOT NULL
) STRICT;

-- Who changed what. Nothing here refers to anything: lines outlast what they are about.
CREATE TABLE audits (
    id          TEXT PRIMARY KEY NOT NULL,
    at          INTEGER NOT NULL,
    author      TEXT NOT NULL,
    author_kind TEXT NOT NULL,
    address     TEXT NOT NULL,
    noun        TEXT NOT NULL, -- the first half of the action
    action      TEXT NOT NULL,
    target      TEXT NOT NULL,
    name        TEXT NOT NULL,
    changes     TEXT NOT NULL CHECK (json_valid(changes)) -- array of objects, without secrets
) STRICT;

-- For the log, newest first, and for the removal of what is old.
CREATE INDEX audits_newest ON audits (at DESC, id DESC);
CREATE INDEX audits_by_noun ON audits (noun, at DESC, id DESC);
CREATE INDEX audits_by_author ON audits (author, at DESC, id DESC);
