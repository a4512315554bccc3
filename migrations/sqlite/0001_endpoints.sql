-- What is watched, and where word of it goes.
--
-- Times are integers: microseconds since 1970-01-01 UTC. Durations are milliseconds. Booleans are 0 or 1.
-- Ids are made by the program and sort by the time they were made.

-- Proof of the key that secrets are sealed with, so that another key is refused at once and not secret by secret.
CREATE TABLE secret_key (
    id    INTEGER PRIMARY KEY CHECK (id = 1), -- one key for the whole database
    proof BLOB NOT NULL
) STRICT;

CREATE TABLE channels (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL,
    name_key   TEXT NOT NULL UNIQUE, -- the name without case, as the program folds it: people choose channels by name
    type       TEXT NOT NULL,
    settings   TEXT NOT NULL CHECK (json_valid(settings)),
    secrets    BLOB,                 -- sealed JSON, NULL when there are none
    broken     TEXT,                 -- why nothing more is sent here
    broken_at  INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK ((broken IS NULL) = (broken_at IS NULL))
) STRICT;

CREATE TABLE endpoints (
    id                TEXT PRIMARY KEY NOT NULL,
    slug              TEXT NOT NULL UNIQUE, -- part of addresses
    name              TEXT NOT NULL,
    name_key          TEXT NOT NULL UNIQUE, -- the name without case, as the program folds it: lists are sorted by it
    search            TEXT NOT NULL,        -- name, slug and redacted URL without case: what a search looks into
    kind              TEXT NOT NULL,
    url               TEXT NOT NULL,
    headers           BLOB,                 -- sealed JSON, NULL when there are none
    request_method    TEXT NOT NULL,
    request_params    BLOB,                 -- JSON to be sent byte for byte, NULL when there are none
    schedule          TEXT NOT NULL,
    timeout_ms        REAL NOT NULL,
    degraded_over_ms  REAL NOT NULL,
    confirm_failures  INTEGER NOT NULL,
    confirm_successes INTEGER NOT NULL,
    confirm_after_ms  REAL NOT NULL,
    public            INTEGER NOT NULL CHECK (public IN (0, 1)),
    paused            INTEGER NOT NULL CHECK (paused IN (0, 1)),
    tags              TEXT NOT NULL CHECK (json_valid(tags)), -- array of strings
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL
) STRICT;

-- Who hears of an endpoint. A channel that goes leaves every endpoint.
CREATE TABLE endpoint_channels (
    endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    channel_id  TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    position    INTEGER NOT NULL, -- channels stay in the order in which they were given
    PRIMARY KEY (endpoint_id, channel_id)
) STRICT, WITHOUT ROWID;

-- For the removal of a channel.
CREATE INDEX endpoint_channels_by_channel ON endpoint_channels (channel_id);

-- What the checks of an endpoint so far add up to. Every endpoint has one, apart from it because every check writes here.
CREATE TABLE endpoint_states (
    endpoint_id   TEXT PRIMARY KEY NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    -- "paused" is not among them: it follows from the endpoint.
    status        TEXT NOT NULL CHECK (status IN ('pending', 'up', 'degraded', 'down', 'gated', 'unknown')),
    since         INTEGER,
    last_check_id TEXT, -- no foreign key: the check may be pruned
    last_check_at INTEGER,
    evidence      TEXT NOT NULL CHECK (json_valid(evidence)) -- streaks, failure, and what the next probe is told
) STRICT;
