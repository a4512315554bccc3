-- Where endpoints stand as seen from each location, checks by day in little room, and roll-ups by the hour and by the day.

ALTER TABLE endpoints
    ADD COLUMN locations text[] NOT NULL DEFAULT '{}',
    ADD COLUMN quorum    integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN endpoints.locations IS 'Where it is probed from; empty means everywhere.';
COMMENT ON COLUMN endpoints.quorum IS 'How many locations must find it down; 0 means the majority.';

CREATE TABLE places (
    num               integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint_id       text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    location          text COLLATE "C" NOT NULL,
    version           integer NOT NULL DEFAULT 1,
    -- "paused" is not among them: it follows from the endpoint.
    status            text NOT NULL CHECK (status IN ('pending', 'up', 'degraded', 'down', 'gated', 'unknown')),
    since             timestamptz,
    last_scheduled_at timestamptz,
    last_check_at     timestamptz,
    chain             text COLLATE "C",
    head_at           timestamptz,
    evidence          json NOT NULL,
    hour              timestamptz,
    sums              bytea,
    UNIQUE (endpoint_id, location)
) WITH (fillfactor = 50); -- every check writes here, and room on the page keeps the indexes out of it
ALTER TABLE places ALTER COLUMN sums SET STORAGE EXTERNAL; -- it does not compress
COMMENT ON TABLE places IS
    'Endpoints as seen from each location: what the checks so far add up to. Only who holds the lease of an endpoint writes here.';
COMMENT ON COLUMN places.num IS 'Its name in checks and roll-ups, by the million and short for that.';
COMMENT ON COLUMN places.version IS 'Grows with each change: who has read another one writes nothing.';
COMMENT ON COLUMN places.last_scheduled_at IS 'Names the latest check.';
COMMENT ON COLUMN places.chain IS 'Kind and id of the chain, NULL for what is no chain node.';
COMMENT ON COLUMN places.head_at IS 'When the head of the chain was seen that stands in the evidence.';
COMMENT ON COLUMN places.evidence IS 'Streaks, failure, and what the next probe is told.';
COMMENT ON COLUMN places.hour IS 'The beginning of the hour that sums are of: the running one, or the last with a check.';
COMMENT ON COLUMN places.sums IS 'Counts and latencies of that hour, as the program packs them. They go to uptime_hours and uptime_days when it is over.';

CREATE INDEX places_of_chain ON places (chain) WHERE chain IS NOT NULL;
COMMENT ON INDEX places_of_chain IS 'For the heads of one chain. Without the time, which changes with every check.';

INSERT INTO places (endpoint_id, location, status, since, last_scheduled_at, last_check_at, chain, head_at, evidence)
SELECT p.endpoint_id, p.location, s.status, s.since, c.scheduled_at, s.last_check_at, s.chain, s.head_at, s.evidence::json
FROM (SELECT endpoint_id, location FROM checks UNION SELECT endpoint_id, location FROM uptime_hours) p
JOIN endpoint_states s ON s.endpoint_id = p.endpoint_id
LEFT JOIN checks c ON c.id = s.last_check_id AND c.location = p.location;

ALTER TABLE endpoint_states
    ADD COLUMN version integer NOT NULL DEFAULT 1,
    ADD COLUMN failure json;
UPDATE endpoint_states SET failure = evidence -> 'failure' WHERE evidence -> 'failure' IS NOT NULL;
ALTER TABLE endpoint_states
    DROP COLUMN last_check_id, DROP COLUMN last_check_at, DROP COLUMN evidence,
    DROP COLUMN chain, DROP COLUMN head, DROP COLUMN head_at;
COMMENT ON TABLE endpoint_states IS 'What the places of an endpoint add up to. Every endpoint has one; it is written when the status changes.';
COMMENT ON COLUMN endpoint_states.version IS 'Grows with each change, and with each check of an endpoint that has several places.';
COMMENT ON COLUMN endpoint_states.failure IS 'Why the status is not up, NULL when there is nothing to say.';

-- Checks. An up check with four steps takes about 130 bytes with its index, because it says only what differs from check to
-- check; what it has in common with others of its day stands in its shape.

DROP VIEW check_steps;
ALTER TABLE transcripts RENAME TO transcripts_before;
ALTER TABLE checks RENAME TO checks_before;
ALTER TABLE uptime_hours RENAME TO uptime_hours_before;
ALTER INDEX checks_pkey RENAME TO checks_before_pkey;
ALTER INDEX transcripts_pkey RENAME TO transcripts_before_pkey;
ALTER INDEX transcripts_of_endpoint RENAME TO transcripts_before_of_endpoint;
ALTER INDEX uptime_hours_pkey RENAME TO uptime_hours_before_pkey;

CREATE TABLE checks (
    place        integer NOT NULL, -- no foreign key: looking it up would cost as much as the check
    shape        integer NOT NULL,
    scheduled_at timestamptz NOT NULL,
    verdict      "char" NOT NULL,
    latencies    bytea NOT NULL,
    numbers      bytea,
    -- A check is made once: what two instances or a repeated write bring again is passed over.
    PRIMARY KEY (place, scheduled_at)
) PARTITION BY RANGE (scheduled_at);
COMMENT ON TABLE checks IS
    'What was seen: one probe of an endpoint each. A partition holds the checks of one day in UTC; the program makes them ahead and drops the oldest.';
COMMENT ON COLUMN checks.place IS 'places.num.';
COMMENT ON COLUMN checks.shape IS 'check_shapes.id, of the same place and day.';
COMMENT ON COLUMN checks.verdict IS 'u up, d degraded, x down, g gated, ? unknown.';
COMMENT ON COLUMN checks.latencies IS 'Of the steps in order: microseconds, four bytes each, the most significant first.';
COMMENT ON COLUMN checks.numbers IS
    'Times and sizes as the program packs them; NULL when they stand in the shape. See store/pack.go.';

CREATE TABLE check_shapes (
    place integer NOT NULL,
    day   date NOT NULL,
    id    integer NOT NULL,
    shape jsonb NOT NULL,
    PRIMARY KEY (place, day, id)
) PARTITION BY RANGE (day);
COMMENT ON TABLE check_shapes IS
    'What checks of one place and day have in common: the steps and how they went, warnings, failure, facts. Partitions as of checks.';
COMMENT ON COLUMN check_shapes.id IS 'A hash of what it says.';

CREATE TABLE transcripts (
    place        integer NOT NULL REFERENCES places (num) ON DELETE CASCADE,
    scheduled_at timestamptz NOT NULL,
    good         boolean NOT NULL,
    at           timestamptz NOT NULL,
    body         bytea NOT NULL,
    PRIMARY KEY (place, scheduled_at)
);
ALTER TABLE transcripts ALTER COLUMN body SET STORAGE EXTERNAL; -- it is compressed already
COMMENT ON TABLE transcripts IS 'What was said in checks that failed, and in the last good one of each place.';
COMMENT ON COLUMN transcripts.at IS 'When the check started.';
COMMENT ON COLUMN transcripts.body IS 'Compressed JSON, without secrets.';

CREATE INDEX transcripts_newest ON transcripts (place, good, at DESC);
COMMENT ON INDEX transcripts_newest IS 'For letting go of what is no longer the last good one, and of too many bad ones.';

INSERT INTO transcripts (place, scheduled_at, good, at, body)
SELECT p.num, c.scheduled_at, t.good, t.at, t.body
FROM transcripts_before t
JOIN checks_before c ON c.id = t.check_id
JOIN places p ON p.endpoint_id = c.endpoint_id AND p.location = c.location;

-- Roll-ups.

CREATE TABLE uptime_hours (
    place     integer NOT NULL,
    hour      timestamptz NOT NULL,
    up        integer NOT NULL,
    degraded  integer NOT NULL,
    down      integer NOT NULL,
    gated     integer NOT NULL,
    unknown   integer NOT NULL,
    classes   json,
    latencies bytea NOT NULL,
    PRIMARY KEY (place, hour)
) PARTITION BY RANGE (hour);
ALTER TABLE uptime_hours ALTER COLUMN latencies SET STORAGE EXTERNAL; -- it does not compress
COMMENT ON TABLE uptime_hours IS
    'Counts and latencies by hour, of hours that are over: the running one stands in places. A partition holds a month.';
COMMENT ON COLUMN uptime_hours.hour IS 'Its beginning.';
COMMENT ON COLUMN uptime_hours.classes IS 'How many checks failed by class, NULL when none did.';
COMMENT ON COLUMN uptime_hours.latencies IS 'DDSketches by step.';

CREATE TABLE uptime_days (
    place     integer NOT NULL REFERENCES places (num) ON DELETE CASCADE,
    day       date NOT NULL,
    up        integer NOT NULL,
    degraded  integer NOT NULL,
    down      integer NOT NULL,
    gated     integer NOT NULL,
    unknown   integer NOT NULL,
    classes   json,
    latencies bytea NOT NULL,
    PRIMARY KEY (place, day)
);
ALTER TABLE uptime_days ALTER COLUMN latencies SET STORAGE EXTERNAL;
COMMENT ON TABLE uptime_days IS 'Counts and latencies by day in UTC, of the hours of it that are over. Kept for ever.';

ALTER TABLE events ALTER COLUMN endpoint_id DROP NOT NULL;
COMMENT ON COLUMN events.endpoint_id IS 'NULL when it is about this service itself.';

-- What was kept before goes along: each check with a shape of its own that says everything, for want of numbers.

DO $$
DECLARE
    day date;
BEGIN
    FOR day IN SELECT DISTINCT (scheduled_at AT TIME ZONE 'UTC')::date FROM checks_before LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF checks FOR VALUES FROM (%L) TO (%L)',
            'checks_' || to_char(day, 'YYYYMMDD'), day || ' 00:00:00+00', (day + 1) || ' 00:00:00+00');
        EXECUTE format('CREATE TABLE %I PARTITION OF check_shapes FOR VALUES FROM (%L) TO (%L)',
            'check_shapes_' || to_char(day, 'YYYYMMDD'), day, day + 1);
    END LOOP;
    FOR day IN SELECT DISTINCT date_trunc('month', hour AT TIME ZONE 'UTC')::date FROM uptime_hours_before LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF uptime_hours FOR VALUES FROM (%L) TO (%L)',
            'uptime_hours_' || to_char(day, 'YYYYMM'), day || ' 00:00:00+00', (day + interval '1 month')::date || ' 00:00:00+00');
    END LOOP;
END $$;

WITH numbered AS MATERIALIZED (
    SELECT p.num AS place, c.*, (c.scheduled_at AT TIME ZONE 'UTC')::date AS day,
           row_number() OVER (PARTITION BY p.num, (c.scheduled_at AT TIME ZONE 'UTC')::date ORDER BY c.scheduled_at)::integer AS shape
    FROM checks_before c
    JOIN places p ON p.endpoint_id = c.endpoint_id AND p.location = c.location
), shapes AS (
    INSERT INTO check_shapes (place, day, id, shape)
    SELECT place, day, shape, jsonb_build_object(
        'kind', kind, 'era', era, 'steps', steps, 'warnings', warnings, 'facts', facts,
        'started_at', to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'duration_ms', duration_ms, 'retry_after_ms', retry_after_ms,
        'failure', CASE WHEN class IS NOT NULL THEN
            jsonb_build_object('step', failed_step, 'class', class, 'code', code, 'message', message) END)
    FROM numbered
)
INSERT INTO checks (place, shape, scheduled_at, verdict, latencies)
SELECT place, shape, scheduled_at,
       (CASE verdict WHEN 'up' THEN 'u' WHEN 'degraded' THEN 'd' WHEN 'down' THEN 'x' WHEN 'gated' THEN 'g' ELSE '?' END)::"char",
       COALESCE((
           SELECT string_agg(int4send(LEAST(GREATEST(round((s.value ->> 'latency_ms')::numeric * 1000), 0), 2147483647)::integer), ''::bytea
                             ORDER BY s.position)
           FROM jsonb_array_elements(steps) WITH ORDINALITY s (value, position)
       ), ''::bytea)
FROM numbered;

INSERT INTO uptime_hours (place, hour, up, degraded, down, gated, unknown, latencies)
SELECT p.num, u.hour, u.up, u.degraded, u.down, u.gated, u.unknown, u.latencies
FROM uptime_hours_before u
JOIN places p ON p.endpoint_id = u.endpoint_id AND p.location = u.location;

DROP TABLE transcripts_before, checks_before, uptime_hours_before;

CREATE VIEW check_steps AS
SELECT e.slug                                            AS endpoint,
       c.scheduled_at                                    AS started_at,
       s.value ->> 'name'                                AS step,
       ('x' || encode(substring(c.latencies FROM (4 * s.position - 3)::integer FOR 4), 'hex'))::bit(32)::bigint
           / 1000::double precision                      AS latency,
       COALESCE((s.value ->> 'http_status')::integer, 0) AS http_status,
       COALESCE(s.value ->> 'class', '')                 AS class,
       COALESCE((s.value ->> 'code')::bigint, 0)         AS code,
       COALESCE(s.value ->> 'message', '')               AS message,
       p.location                                        AS location,
       'chk_' || regexp_replace(p.endpoint_id, '^ep_', '')
           || '_' || lpad(to_hex((extract(epoch FROM c.scheduled_at) * 1000000)::bigint), 16, '0')
           || left(encode(sha256(convert_to(p.location, 'UTF8')), 'hex'), 8) AS check_id,
       s.position                                        AS position
FROM checks c
JOIN places p ON p.num = c.place
JOIN endpoints e ON e.id = p.endpoint_id
JOIN check_shapes h ON h.place = c.place AND h.day = (c.scheduled_at AT TIME ZONE 'UTC')::date AND h.id = c.shape
CROSS JOIN LATERAL jsonb_array_elements(h.shape -> 'steps') WITH ORDINALITY s (value, position);
COMMENT ON VIEW check_steps IS 'The steps of all checks, one row each, for questions in SQL.';
COMMENT ON COLUMN check_steps.started_at IS 'When the check was due, and but for milliseconds when it started.';
COMMENT ON COLUMN check_steps.latency IS 'In milliseconds.';
COMMENT ON COLUMN check_steps.http_status IS '0 when no answer came.';
COMMENT ON COLUMN check_steps.class IS 'Why the step failed, empty when it went well.';
COMMENT ON COLUMN check_steps.code IS 'JSON-RPC error code or HTTP status of a step that failed, 0 when none came.';
