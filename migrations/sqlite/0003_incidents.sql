-- Outages, and who still has to hear of them.

CREATE TABLE incidents (
    id            TEXT PRIMARY KEY NOT NULL,
    endpoint_id   TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    severity      TEXT NOT NULL,
    started_at    INTEGER NOT NULL, -- of the first bad check
    opened_at     INTEGER NOT NULL, -- when it was confirmed
    resolved_at   INTEGER,
    resolution    TEXT,
    cause_step    TEXT NOT NULL,
    cause_class   TEXT NOT NULL,
    cause_code    INTEGER NOT NULL,
    cause_message TEXT NOT NULL,
    CHECK ((resolved_at IS NULL) = (resolution IS NULL)),
    CHECK (resolved_at >= started_at) -- an outage does not end before it begins
) STRICT;

-- At most one incident is open per endpoint.
CREATE UNIQUE INDEX incidents_one_open ON incidents (endpoint_id) WHERE resolved_at IS NULL;

-- For the list of all incidents, newest first, and that of one endpoint.
CREATE INDEX incidents_newest ON incidents (started_at DESC, id DESC);
CREATE INDEX incidents_of_endpoint ON incidents (endpoint_id, started_at DESC, id DESC);

CREATE TABLE notices (
    -- The order in which notices came to be, which clocks cannot disturb: a resolution never overtakes its opening.
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    incident_id  TEXT NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
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
    CHECK ((lease_id IS NULL) = (leased_until IS NULL))
) STRICT;

-- For what is due, and for the number of those that wait.
CREATE INDEX notices_waiting ON notices (due_at) WHERE status = 'waiting';

-- For the removal of a channel.
CREATE INDEX notices_by_channel ON notices (channel_id);

-- Every attempt to deliver a notice.
CREATE TABLE notice_attempts (
    notice_id TEXT NOT NULL REFERENCES notices (id) ON DELETE CASCADE,
    attempt   INTEGER NOT NULL, -- 1, 2, 3, …
    at        INTEGER NOT NULL,
    outcome   TEXT NOT NULL CHECK (outcome IN ('sent', 'retry', 'failed')),
    error     TEXT NOT NULL,    -- without secrets, empty when it was sent
    PRIMARY KEY (notice_id, attempt)
) STRICT, WITHOUT ROWID;
