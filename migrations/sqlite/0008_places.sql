-- Where endpoints stand as seen from each location, and roll-ups by the hour and by the day.

-- Where it is probed from; empty means everywhere.
ALTER TABLE endpoints ADD COLUMN locations TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(locations)); -- array of strings

-- How many locations must find it down; 0 means the majority.
ALTER TABLE endpoints ADD COLUMN quorum INTEGER NOT NULL DEFAULT 0;

-- Endpoints as seen from each location: what the checks so far add up to.
CREATE TABLE places (
    num               INTEGER PRIMARY KEY,
    endpoint_id       TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    location          TEXT NOT NULL,
    version           INTEGER NOT NULL DEFAULT 1, -- grows with each change
    -- "paused" is not among them: it follows from the endpoint.
    status            TEXT NOT NULL CHECK (status IN ('pending', 'up', 'degraded', 'down', 'gated', 'unknown')),
    since             INTEGER,
    last_scheduled_at INTEGER, -- names the latest check, which may be pruned
    last_check_at     INTEGER,
    chain             TEXT,    -- kind and id of the chain, NULL for what is no chain node
    head_at           INTEGER, -- when the head of the chain was seen that stands in the evidence
    evidence          TEXT NOT NULL CHECK (json_valid(evidence)), -- streaks, failure, and what the next probe is told
    hour              INTEGER, -- the beginning of the hour that sums are of: the running one, or the last with a check
    sums              BLOB,    -- its counts and latencies, packed; they go to uptime_hours and uptime_days when it is over
    UNIQUE (endpoint_id, location)
) STRICT;

-- For the heads of one chain. Without the time, which changes with every check.
CREATE INDEX places_of_chain ON places (chain) WHERE chain IS NOT NULL;

-- Every check counts in an hour, and hours outlive checks: they know all places.
INSERT INTO places (endpoint_id, location, status, since, last_scheduled_at, last_check_at, chain, head_at, evidence)
SELECT p.endpoint_id, p.location, s.status, s.since, c.scheduled_at, s.last_check_at, s.chain, s.head_at, s.evidence
FROM (SELECT DISTINCT endpoint_id, location FROM uptime_hours) p
JOIN endpoint_states s ON s.endpoint_id = p.endpoint_id
LEFT JOIN checks c ON c.id = s.last_check_id AND c.location = p.location;

-- What the places of an endpoint add up to. Every endpoint has one; it is written when the status changes.
ALTER TABLE endpoint_states ADD COLUMN version INTEGER NOT NULL DEFAULT 1; -- grows with each change
ALTER TABLE endpoint_states ADD COLUMN failure TEXT CHECK (failure IS NULL OR json_valid(failure)); -- why the status is not up, NULL when there is nothing to say
UPDATE endpoint_states SET failure = evidence -> '$.failure' WHERE evidence -> '$.failure' IS NOT NULL;
DROP INDEX endpoint_states_heads;
ALTER TABLE endpoint_states DROP COLUMN last_check_id;
ALTER TABLE endpoint_states DROP COLUMN last_check_at;
ALTER TABLE endpoint_states DROP COLUMN evidence;
ALTER TABLE endpoint_states DROP COLUMN chain;
ALTER TABLE endpoint_states DROP COLUMN head;
ALTER TABLE endpoint_states DROP COLUMN head_at;

-- Checks are listed, and let go of, by the time they were scheduled for.
DROP INDEX checks_newest;
DROP INDEX checks_oldest;
CREATE INDEX checks_newest ON checks (endpoint_id, scheduled_at DESC, id DESC);
CREATE INDEX checks_oldest ON checks (scheduled_at);

-- What was said in checks that failed, and in the last good one of each place.
ALTER TABLE transcripts ADD COLUMN location TEXT NOT NULL DEFAULT '';
UPDATE transcripts SET location = (SELECT c.location FROM checks c WHERE c.id = transcripts.check_id);
DROP INDEX transcripts_of_endpoint;
CREATE INDEX transcripts_newest ON transcripts (endpoint_id, location, good, at DESC);

-- How many checks failed by class, as an object; NULL when none did, or when nobody counted. Hours that are over stand here:
-- the running one stands in places.
ALTER TABLE uptime_hours ADD COLUMN classes TEXT CHECK (classes IS NULL OR json_valid(classes));

-- Counts and latencies by day in UTC, of the hours of it that are over. Kept for ever. The program fills it from the hours
-- when it first opens the database: merging sketches is beyond SQL.
CREATE TABLE uptime_days (
    endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    location    TEXT NOT NULL,
    day         INTEGER NOT NULL, -- its beginning
    up          INTEGER NOT NULL,
    degraded    INTEGER NOT NULL,
    down        INTEGER NOT NULL,
    gated       INTEGER NOT NULL,
    unknown     INTEGER NOT NULL,
    classes     TEXT CHECK (classes IS NULL OR json_valid(classes)),
    latencies   BLOB NOT NULL,    -- sketches by step
    PRIMARY KEY (endpoint_id, day, location)
) STRICT;

-- NULL when it is about this service itself.
ALTER TABLE events ALTER COLUMN endpoint_id DROP NOT NULL;
