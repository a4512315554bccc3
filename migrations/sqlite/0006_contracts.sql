-- What MCP servers promise, and what else happened to endpoints beside outages.

CREATE TABLE contracts (
    id            TEXT PRIMARY KEY NOT NULL,
    endpoint_id   TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    key           TEXT NOT NULL,    -- protocol era and credential: lists of different keys are not compared
    hash          TEXT NOT NULL,
    first_seen_at INTEGER NOT NULL,
    last_seen_at  INTEGER,          -- NULL while it is the present one: the state of the endpoint knows
    tools         BLOB,             -- the canonical list, compressed; NULL when it was too large or is long past
    changes       TEXT NOT NULL CHECK (json_valid(changes)) -- against the one before of the same key
) STRICT;

-- For the list of an endpoint's contracts, newest first.
CREATE INDEX contracts_of_endpoint ON contracts (endpoint_id, first_seen_at DESC, id DESC);

-- The timeline of an endpoint.
CREATE TABLE events (
    id          TEXT PRIMARY KEY NOT NULL,
    endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    at          INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    severity    TEXT NOT NULL,
    title       TEXT NOT NULL,
    data        TEXT NOT NULL CHECK (json_valid(data))
) STRICT;

-- For the timeline, newest first.
CREATE INDEX events_of_endpoint ON events (endpoint_id, at DESC, id DESC);

-- A notice tells of an incident or of an event. SQLite changes a column's constraints only with its table, and a table
-- that others refer to goes only with their rows: so the log of attempts moves along.
CREATE TABLE notices_anew (
    -- The order in which notices came to be, which clocks cannot disturb: a resolution never overtakes its opening.
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    incident_id  TEXT REFERENCES incidents (id) ON DELETE CASCADE,
    event_id     TEXT REFERENCES events (id) ON DELETE CASCADE,
    channel_id   TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL,
    status       TEXT NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'sent', 'failed')),
    created_at   INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    lease_id     TEXT,
    leased_until INTEGER,
    ref          TEXT NOT NULL DEFAULT '', -- what the channel gave to find the message again
    -- Each channel hears each thing about an incident once. Also for finding what else a channel must hear first.
    UNIQUE (incident_id, channel_id, kind),
    UNIQUE (event_id, channel_id),
    CHECK ((incident_id IS NULL) <> (event_id IS NULL)),
    CHECK ((lease_id IS NULL) = (leased_until IS NULL))
) STRICT;
INSERT INTO notices_anew (
    seq, id, incident_id, channel_id, kind, status, created_at, due_at, attempts, lease_id, leased_until, ref
)
SELECT seq, id, incident_id, channel_id, kind, status, created_at, due_at, attempts, lease_id, leased_until, ref
FROM notices;

-- Every attempt to deliver a notice.
CREATE TABLE notice_attempts_anew (
    notice_id TEXT NOT NULL REFERENCES notices_anew (id) ON DELETE CASCADE,
    attempt   INTEGER NOT NULL, -- 1, 2, 3, …
    at        INTEGER NOT NULL,
    outcome   TEXT NOT NULL CHECK (outcome IN ('sent', 'retry', 'failed')),
    error     TEXT NOT NULL,    -- without secrets, empty when it was sent
    PRIMARY KEY (notice_id, attempt)
) STRICT, WITHOUT ROWID;
INSERT INTO notice_attempts_anew (notice_id, attempt, at, outcome, error)
SELECT notice_id, attempt, at, outcome, error
FROM notice_attempts;

DROP TABLE notice_attempts;
DROP TABLE notices;
ALTER TABLE notices_anew RENAME TO notices;
ALTER TABLE notice_attempts_anew RENAME TO notice_attempts;

-- For what is due, and for the number of those that wait.
CREATE INDEX notices_waiting ON notices (due_at) WHERE status = 'waiting';

-- For the removal of a channel.
CREATE INDEX notices_by_channel ON notices (channel_id);
