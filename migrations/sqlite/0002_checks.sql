-- What was seen, one row per check, and what it adds up to per hour.

CREATE TABLE checks (
    id             TEXT PRIMARY KEY NOT NULL,
    endpoint_id    TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    location       TEXT NOT NULL,
    scheduled_at   INTEGER NOT NULL,
    started_at     INTEGER NOT NULL,
    duration_ms    REAL NOT NULL,
    kind           TEXT NOT NULL,
    era            TEXT NOT NULL,
    verdict        TEXT NOT NULL CHECK (verdict IN ('up', 'degraded', 'down', 'gated', 'unknown')),
    failed_step    TEXT, -- with class, code and message: why the verdict is not up, NULL when there is nothing to say
    class          TEXT,
    code           INTEGER,
    message        TEXT,
    retry_after_ms REAL NOT NULL,
    steps          TEXT NOT NULL CHECK (json_valid(steps)),
    warnings       TEXT NOT NULL CHECK (json_valid(warnings)),
    facts          TEXT NOT NULL CHECK (json_valid(facts)),
    -- A check is made once: what two instances or a repeated write bring again is passed over.
    UNIQUE (endpoint_id, location, scheduled_at),
    CHECK ((failed_step IS NULL) = (class IS NULL) AND (class IS NULL) = (code IS NULL) AND (code IS NULL) = (message IS NULL))
) STRICT;

-- For the list of an endpoint's checks, newest first.
CREATE INDEX checks_newest ON checks (endpoint_id, started_at DESC, id DESC);

-- For pruning, oldest first.
CREATE INDEX checks_oldest ON checks (started_at);

-- The steps of all checks, one row each, for questions in SQL. started_at is that of the check, latency is in milliseconds;
-- http_status and code are 0 where none came, class is empty where the step went well.
CREATE VIEW check_steps AS
SELECT e.slug                   AS endpoint,
       c.started_at             AS started_at,
       s.value ->> 'name'       AS step,
       s.value ->> 'latency_ms' AS latency,
       s.value ->> 'http_status' AS http_status,
       s.value ->> 'class'      AS class,
       s.value ->> 'code'       AS code,
       s.value ->> 'message'    AS message,
       c.location               AS location,
       c.id                     AS check_id,
       s.key + 1                AS position
FROM checks c
JOIN endpoints e ON e.id = c.endpoint_id
JOIN json_each(c.steps) s;

-- Counts and latencies by hour. They outlive the checks that they were made of.
CREATE TABLE uptime_hours (
    endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    location    TEXT NOT NULL,
    hour        INTEGER NOT NULL, -- its beginning
    up          INTEGER NOT NULL,
    degraded    INTEGER NOT NULL,
    down        INTEGER NOT NULL,
    gated       INTEGER NOT NULL,
    unknown     INTEGER NOT NULL,
    latencies   BLOB NOT NULL,    -- sketches by step
    PRIMARY KEY (endpoint_id, hour, location)
) STRICT;

-- For the counts of all endpoints since a time.
CREATE INDEX uptime_hours_by_hour ON uptime_hours (hour);
