-- Members with roles, how they prove who they are, and the log of what they change.

ALTER TABLE users
    ADD COLUMN disabled_at timestamptz,
    ADD COLUMN issuer      text COLLATE "C",
    ADD COLUMN subject     text COLLATE "C";
COMMENT ON COLUMN users.disabled_at IS 'NULL of one who may log in.';
COMMENT ON COLUMN users.issuer IS 'With subject: who a provider of identities knows them as; NULL of nobody there.';
CREATE UNIQUE INDEX users_by_identity ON users (issuer, subject) WHERE issuer IS NOT NULL;

ALTER TABLE sessions
    ADD COLUMN address      text NOT NULL DEFAULT '',
    ADD COLUMN user_agent   text NOT NULL DEFAULT '',
    ADD COLUMN last_seen_at timestamptz;
COMMENT ON COLUMN sessions.address IS 'From where it began.';
COMMENT ON COLUMN sessions.last_seen_at IS 'To the minute; NULL: not since it began.';
CREATE INDEX sessions_of_user ON sessions (user_id);
COMMENT ON INDEX sessions_of_user IS 'For the list of somebody''s sessions, and for the end of all of them.';

ALTER TABLE tokens
    ADD COLUMN scopes     text[] NOT NULL DEFAULT '{}',
    ADD COLUMN expires_at timestamptz;
COMMENT ON COLUMN tokens.scopes IS 'Empty: all that the role may.';
COMMENT ON COLUMN tokens.expires_at IS 'NULL: never.';

CREATE TABLE invitations (
    id         text COLLATE "C" PRIMARY KEY,
    hash       bytea NOT NULL UNIQUE,
    user_id    text COLLATE "C" REFERENCES users (id) ON DELETE CASCADE,
    name       text NOT NULL,
    role       text NOT NULL,
    author     text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE invitations IS 'Links that work once, as their hashes.';
COMMENT ON COLUMN invitations.user_id IS 'Whose password it sets; NULL of one that makes a member.';
CREATE UNIQUE INDEX invitations_of_user ON invitations (user_id) WHERE user_id IS NOT NULL;
COMMENT ON INDEX invitations_of_user IS 'One link at a time sets somebody''s password.';

CREATE TABLE second_factors (
    user_id      text COLLATE "C" PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    secret       bytea NOT NULL,
    confirmed_at timestamptz,
    last_step    bigint NOT NULL,
    recovery     text[] NOT NULL,
    created_at   timestamptz NOT NULL
);
COMMENT ON TABLE second_factors IS 'What members have to show beside the password.';
COMMENT ON COLUMN second_factors.secret IS 'Sealed.';
COMMENT ON COLUMN second_factors.confirmed_at IS 'NULL while it waits for a first code.';
COMMENT ON COLUMN second_factors.last_step IS 'Of the last code that was used: none works twice.';
COMMENT ON COLUMN second_factors.recovery IS 'Hashes of the recovery codes that are left.';

CREATE TABLE audits (
    id          text COLLATE "C" PRIMARY KEY,
    at          timestamptz NOT NULL,
    author      text NOT NULL,
    author_kind text NOT NULL,
    address     text NOT NULL,
    noun        text NOT NULL,
    action      text NOT NULL,
    target      text NOT NULL,
    name        text NOT NULL,
    changes     json NOT NULL
);
COMMENT ON TABLE audits IS 'Who changed what. Nothing here refers to anything: lines outlast what they are about.';
COMMENT ON COLUMN audits.noun IS 'The first half of the action.';
COMMENT ON COLUMN audits.changes IS 'Array of objects, without secrets.';
CREATE INDEX audits_newest ON audits (at DESC, id DESC);
COMMENT ON INDEX audits_newest IS 'For the log, newest first, and for the removal of what is old.';
CREATE INDEX audits_by_noun ON audits (noun, at DESC, id DESC);
CREATE INDEX audits_by_author ON audits (author, at DESC, id DESC);
