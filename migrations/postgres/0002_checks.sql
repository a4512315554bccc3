-- What was seen, one row per check, and what it adds up to per hour.

CREATE TABLE checks (
    id             text COLLATE "C" PRIMARY KEY,
    endpoint_id    text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    location       text COLLATE "C" NOT NULL,
    scheduled_at   timestamptz NOT NULL,
    started_at     timestamptz NOT NULL,
    duration_ms    double precision NOT NULL,
    kind           text NOT NULL,
    era            text NOT NULL,
    verdict        text NOT NULL CHECK (verdict IN ('up', 'degraded', 'down', 'gated', 'unknown')),
    failed_step    text,
    class          text,
    code           bigint,
    message        text,
    retry_after_ms double precision NOT NULL,
    steps          jsonb NOT NULL,
    warnings       jsonb NOT NULL,
    facts          jsonb NOT NULL,
    -- A check is made once: what two instances or a repeated write bring again is passed over.
    UNIQUE (endpoint_id, location, scheduled_at),
    CHECK ((failed_step IS NULL) = (class IS NULL) AND (class IS NULL) = (code IS NULL) AND (code IS NULL) = (message IS NULL))
);
COMMENT ON TABLE checks IS 'What was seen: one probe of an endpoint each.';
COMMENT ON COLUMN checks.failed_step IS
    'With class, code and message: why the verdict is not up, NULL when there is nothing to say.';

CREATE INDEX checks_newest ON checks (endpoint_id, started_at DESC, id DESC);
COMMENT ON INDEX checks_newest IS 'For the list of an endpoint''s checks, newest first.';

CREATE INDEX checks_oldest ON checks (started_at);
COMMENT ON INDEX checks_oldest IS 'For pruning, oldest first.';

CREATE VIEW check_steps AS
SELECT e.slug                                     AS endpoint,
       c.started_at                               AS started_at,
       s.value ->> 'name'                         AS step,
       (s.value ->> 'latency_ms')::double precision AS latency,
       (s.value ->> 'http_status')::integer       AS http_status,
       s.value ->> 'class'                        AS class,
       (s.value ->> 'code')::bigint               AS code,
       s.value ->> 'message'                      AS message,
       c.location                                 AS location,
       c.id                                       AS check_id,
       s.position                                 AS position
FROM checks c
JOIN endpoints e ON e.id = c.endpoint_id
CROSS JOIN LATERAL jsonb_array_elements(c.steps) WITH ORDINALITY s (value, position);
COMMENT ON VIEW check_steps IS 'The steps of all checks, one row each, for questions in SQL.';
COMMENT ON COLUMN check_steps.started_at IS 'When the check started.';
COMMENT ON COLUMN check_steps.latency IS 'In milliseconds.';
COMMENT ON COLUMN check_steps.http_status IS '0 when no answer came.';
COMMENT ON COLUMN check_steps.class IS 'Why the step failed, empty when it went well.';
COMMENT ON COLUMN check_steps.code IS 'JSON-RPC error code or HTTP status of a step that failed, 0 when none came.';

CREATE TABLE uptime_hours (
    endpoint_id text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    location    text COLLATE "C" NOT NULL,
    hour        timestamptz NOT NULL,
    up          integer NOT NULL,
    degraded    integer NOT NULL,
    down        integer NOT NULL,
    gated       integer NOT NULL,
    unknown     integer NOT NULL,
    latencies   bytea NOT NULL,
    PRIMARY KEY (endpoint_id, hour, location)
);
COMMENT ON TABLE uptime_hours IS 'Counts and latencies by hour. They outlive the checks that they were made of.';
COMMENT ON COLUMN uptime_hours.hour IS 'Its beginning.';
COMMENT ON COLUMN uptime_hours.latencies IS 'Sketches by step.';

CREATE INDEX uptime_hours_by_hour ON uptime_hours (hour);
COMMENT ON INDEX uptime_hours_by_hour IS 'For the counts of all endpoints since a time.';
