-- Incidents have a kind, a subject and a timeline; who hears of what, when, and when nobody does.

-- The team's lists show the team's channels only: those of subscriptions are theirs.
ALTER TABLE channels ADD COLUMN audience TEXT NOT NULL DEFAULT 'team' CHECK (audience IN ('team', 'public', 'member'));

ALTER TABLE endpoints ADD COLUMN alerting TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(alerting));
ALTER TABLE endpoints ADD COLUMN objectives TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(objectives)); -- array of objects

-- What an endpoint stands behind: while a parent is down, its own opening waits. The program keeps circles out.
CREATE TABLE endpoint_parents (
    endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    parent_id   TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    position    INTEGER NOT NULL, -- parents stay in the order in which they were given
    PRIMARY KEY (endpoint_id, parent_id),
    CHECK (endpoint_id <> parent_id)
) STRICT, WITHOUT ROWID;

-- For those that stand behind an endpoint, and for its removal.
CREATE INDEX endpoint_parents_by_parent ON endpoint_parents (parent_id);

ALTER TABLE endpoint_states ADD COLUMN flips TEXT CHECK (flips IS NULL OR json_valid(flips));    -- times of the last changes
ALTER TABLE endpoint_states ADD COLUMN hushed TEXT CHECK (hushed IS NULL OR json_valid(hushed)); -- what somebody declared over

-- Checks made under maintenance count neither way.
ALTER TABLE checks ADD COLUMN maintenance INTEGER NOT NULL DEFAULT 0 CHECK (maintenance IN (0, 1));
ALTER TABLE uptime_hours ADD COLUMN maintenance INTEGER NOT NULL DEFAULT 0;
ALTER TABLE uptime_days ADD COLUMN maintenance INTEGER NOT NULL DEFAULT 0;

-- SQLite changes a column's constraints only with its table, and a table that others refer to goes only with their rows: so
-- notices and the log of attempts move along with incidents.
CREATE TABLE incidents_anew (
    id              TEXT PRIMARY KEY NOT NULL,
    kind            TEXT NOT NULL,
    subject         TEXT NOT NULL, -- what it is about, in words of the program
    endpoint_id     TEXT REFERENCES endpoints (id) ON DELETE CASCADE, -- NULL when it is about none, or about several
    title           TEXT NOT NULL,
    severity        TEXT NOT NULL, -- at present, or when it ended
    worst           TEXT NOT NULL,
    started_at      INTEGER NOT NULL, -- of the first bad check
    opened_at       INTEGER NOT NULL, -- when it was confirmed
    resolved_at     INTEGER,
    resolution      TEXT,
    cause_step      TEXT NOT NULL,
    cause_class     TEXT NOT NULL,
    cause_code      INTEGER NOT NULL,
    cause_message   TEXT NOT NULL,
    check_id        TEXT NOT NULL, -- that opened it, empty when none did; no foreign key: the check may be pruned
    seen_from       TEXT NOT NULL CHECK (json_valid(seen_from)), -- array of locations
    flapping        INTEGER NOT NULL CHECK (flapping IN (0, 1)),
    acknowledged_at INTEGER,
    acknowledged_by TEXT NOT NULL DEFAULT '',
    snoozed_until   INTEGER,
    CHECK ((resolved_at IS NULL) = (resolution IS NULL)),
    CHECK (resolved_at >= started_at) -- an outage does not end before it begins
) STRICT;
INSERT INTO incidents_anew (
    id, kind, subject, endpoint_id, title, severity, worst, started_at, opened_at, resolved_at, resolution,
    cause_step, cause_class, cause_code, cause_message, check_id, seen_from, flapping
)
SELECT id, 'endpoint', endpoint_id, endpoint_id, '', severity, severity, started_at, opened_at, resolved_at, resolution,
    cause_step, cause_class, cause_code, cause_message, '', '[]', 0
FROM incidents;

-- The lines of timelines.
CREATE TABLE incident_entries (
    id          TEXT PRIMARY KEY NOT NULL,
    incident_id TEXT NOT NULL REFERENCES incidents_anew (id) ON DELETE CASCADE,
    at          INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    author      TEXT NOT NULL, -- empty: this service itself
    text        TEXT NOT NULL,
    public      INTEGER NOT NULL CHECK (public IN (0, 1)),
    severity    TEXT NOT NULL, -- from then on, empty where it did not change
    cause       TEXT CHECK (cause IS NULL OR json_valid(cause)) -- likewise, NULL
) STRICT;

-- What is known of those from before there were timelines. Ids sort by the time they were made: an end after its beginning.
INSERT INTO incident_entries (id, incident_id, at, kind, author, text, public, severity, cause)
SELECT 'ent_' || substr(id, 5) || '0', id, opened_at, 'opened', '', '', 0, severity,
    CASE WHEN cause_class = '' THEN NULL
         ELSE json_object('failed_step', cause_step, 'class', cause_class, 'code', cause_code, 'message', cause_message) END
FROM incidents;
INSERT INTO incident_entries (id, incident_id, at, kind, author, text, public, severity)
SELECT 'ent_' || substr(id, 5) || '1', id, resolved_at, 'resolved', '',
    CASE resolution WHEN 'paused' THEN 'the endpoint was paused' ELSE '' END, 0, ''
FROM incidents
WHERE resolved_at IS NOT NULL;

-- Which endpoints are, or were, in an incident that may have several.
CREATE TABLE incident_endpoints (
    incident_id TEXT NOT NULL REFERENCES incidents_anew (id) ON DELETE CASCADE,
    endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    joined_at   INTEGER NOT NULL,
    left_at     INTEGER, -- NULL while it is in it
    PRIMARY KEY (incident_id, endpoint_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE notices_anew (
    -- The order in which notices came to be, which clocks cannot disturb: a resolution never overtakes its opening.
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    incident_id  TEXT REFERENCES incidents_anew (id) ON DELETE CASCADE,
    event_id     TEXT REFERENCES events (id) ON DELETE CASCADE,
    entry_id     TEXT REFERENCES incident_entries (id) ON DELETE SET NULL, -- the line of the timeline that it tells of
    channel_id   TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL,
    status       TEXT NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'sent', 'passed', 'failed')),
    created_at   INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    lease_id     TEXT,
    holder       TEXT,                      -- who has the lease
    leased_until INTEGER,
    ref          TEXT NOT NULL DEFAULT '', -- what the channel gave to find the message again
    UNIQUE (event_id, channel_id),
    CHECK ((incident_id IS NULL) <> (event_id IS NULL)),
    CHECK ((lease_id IS NULL) = (leased_until IS NULL)),
    CHECK (holder IS NULL OR lease_id IS NOT NULL)
) STRICT;
INSERT INTO notices_anew (
    seq, id, incident_id, event_id, channel_id, kind, status, created_at, due_at, attempts, lease_id, leased_until, ref
)
SELECT seq, id, incident_id, event_id, channel_id, kind, status, created_at, due_at, attempts, lease_id, leased_until, ref
FROM notices;

-- Every attempt to deliver a notice, along with those that one message told as well.
CREATE TABLE notice_attempts_anew (
    notice_id TEXT NOT NULL REFERENCES notices_anew (id) ON DELETE CASCADE,
    attempt   INTEGER NOT NULL, -- 1, 2, 3, …
    at        INTEGER NOT NULL,
    outcome   TEXT NOT NULL CHECK (outcome IN ('sent', 'passed', 'retry', 'failed')),
    error     TEXT NOT NULL,    -- without secrets, empty when it was sent
    took_ms   REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (notice_id, attempt)
) STRICT, WITHOUT ROWID;
INSERT INTO notice_attempts_anew (notice_id, attempt, at, outcome, error)
SELECT notice_id, attempt, at, outcome, error
FROM notice_attempts;

DROP TABLE notice_attempts;
DROP TABLE notices;
DROP TABLE incidents;
ALTER TABLE incidents_anew RENAME TO incidents;
ALTER TABLE notices_anew RENAME TO notices;
ALTER TABLE notice_attempts_anew RENAME TO notice_attempts;

-- At most one incident of a subject is open.
CREATE UNIQUE INDEX incidents_one_open ON incidents (subject) WHERE resolved_at IS NULL;

-- For the open ones of an endpoint, of which most have none.
CREATE INDEX incidents_open ON incidents (endpoint_id) WHERE resolved_at IS NULL;

-- For the list of all incidents, newest first, and that of one endpoint.
CREATE INDEX incidents_newest ON incidents (started_at DESC, id DESC);
CREATE INDEX incidents_of_endpoint ON incidents (endpoint_id, started_at DESC, id DESC);
CREATE INDEX incident_endpoints_by_endpoint ON incident_endpoints (endpoint_id);
CREATE INDEX incident_entries_in_order ON incident_entries (incident_id, at, id);

-- For what is due, and for the number of those that wait.
CREATE INDEX notices_waiting ON notices (due_at) WHERE status = 'waiting';

-- For all that waits for a channel, and for who sends to it at present.
CREATE INDEX notices_waiting_of_channel ON notices (channel_id, seq) WHERE status = 'waiting';
CREATE INDEX notices_leased ON notices (channel_id) WHERE lease_id IS NOT NULL;

-- For who was told of an incident, and for what a channel must hear first.
CREATE INDEX notices_of_incident ON notices (incident_id, channel_id) WHERE incident_id IS NOT NULL;

-- For the removal of a channel.
CREATE INDEX notices_by_channel ON notices (channel_id);

-- For the removal of an incident with its entries.
CREATE INDEX notices_by_entry ON notices (entry_id) WHERE entry_id IS NOT NULL;

-- For the log of deliveries, newest first.
CREATE INDEX notice_attempts_newest ON notice_attempts (at DESC, notice_id DESC, attempt DESC);

-- When checks go on but nothing alerts.
CREATE TABLE maintenances (
    id          TEXT PRIMARY KEY NOT NULL,
    title       TEXT NOT NULL,
    text        TEXT NOT NULL,
    starts_at   INTEGER NOT NULL,
    ends_at     INTEGER,          -- NULL of one that recurs for ever
    schedule    TEXT NOT NULL,    -- empty when it happens once
    duration_ms REAL NOT NULL,    -- each time, of one that recurs
    everything  INTEGER NOT NULL CHECK (everything IN (0, 1)), -- it covers all endpoints
    endpoints   TEXT NOT NULL CHECK (json_valid(endpoints)),   -- array of ids, which may be gone
    tags        TEXT NOT NULL CHECK (json_valid(tags)),        -- array of strings
    public      INTEGER NOT NULL CHECK (public IN (0, 1)),
    author      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    CHECK (ends_at > starts_at)
) STRICT;

-- Who wants to hear beside the team's channels. Each has a channel of the same id, with which it goes.
CREATE TABLE subscriptions (
    id           TEXT PRIMARY KEY NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    user_id      TEXT REFERENCES users (id) ON DELETE CASCADE, -- NULL for one from the public
    everything   INTEGER NOT NULL CHECK (everything IN (0, 1)), -- it is about all endpoints
    endpoints    TEXT NOT NULL CHECK (json_valid(endpoints)),   -- array of ids, which may be gone
    tags         TEXT NOT NULL CHECK (json_valid(tags)),        -- array of strings
    severities   TEXT CHECK (severities IS NULL OR json_valid(severities)), -- array of strings, NULL for those that are told
    quiet        TEXT CHECK (quiet IS NULL OR json_valid(quiet)),
    address_hash BLOB NOT NULL, -- of the address without case, which may be a secret
    confirmed_at INTEGER,
    confirm_hash BLOB,
    manage_hash  BLOB,
    created_at   INTEGER NOT NULL
) STRICT;

-- An address is subscribed once by each member, and once by the public.
CREATE UNIQUE INDEX subscriptions_by_address ON subscriptions (address_hash, COALESCE(user_id, ''));

-- For the links in messages.
CREATE UNIQUE INDEX subscriptions_to_confirm ON subscriptions (confirm_hash) WHERE confirm_hash IS NOT NULL;
CREATE UNIQUE INDEX subscriptions_to_manage ON subscriptions (manage_hash) WHERE manage_hash IS NOT NULL;

-- For the list of them, newest first, and for the removal of a user.
CREATE INDEX subscriptions_newest ON subscriptions (created_at DESC, id DESC);
CREATE INDEX subscriptions_of_user ON subscriptions (user_id) WHERE user_id IS NOT NULL;
