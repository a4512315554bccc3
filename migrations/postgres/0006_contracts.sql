-- What MCP servers promise, and what else happened to endpoints beside outages.

CREATE TABLE contracts (
    id            text COLLATE "C" PRIMARY KEY,
    endpoint_id   text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    key           text COLLATE "C" NOT NULL,
    hash          text NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at  timestamptz,
    tools         bytea,
    changes       jsonb NOT NULL
);
ALTER TABLE contracts ALTER COLUMN tools SET STORAGE EXTERNAL; -- it is compressed already
COMMENT ON TABLE contracts IS 'Tool lists of MCP servers as they were, one row for each that differs from the one before.';
COMMENT ON COLUMN contracts.key IS 'Protocol era and credential: lists of different keys are not compared.';
COMMENT ON COLUMN contracts.last_seen_at IS 'NULL while it is the present one: the state of the endpoint knows.';
COMMENT ON COLUMN contracts.tools IS 'The canonical list, compressed; NULL when it was too large or is long past.';
COMMENT ON COLUMN contracts.changes IS 'Against the one before of the same key.';

CREATE INDEX contracts_of_endpoint ON contracts (endpoint_id, first_seen_at DESC, id DESC);
COMMENT ON INDEX contracts_of_endpoint IS 'For the list of an endpoint''s contracts, newest first.';

CREATE TABLE events (
    id          text COLLATE "C" PRIMARY KEY,
    endpoint_id text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    kind        text NOT NULL,
    severity    text NOT NULL,
    title       text NOT NULL,
    data        jsonb NOT NULL
);
COMMENT ON TABLE events IS 'The timelines of endpoints: what happened to them beside outages.';

CREATE INDEX events_of_endpoint ON events (endpoint_id, at DESC, id DESC);
COMMENT ON INDEX events_of_endpoint IS 'For the timeline, newest first.';

ALTER TABLE notices
    ALTER COLUMN incident_id DROP NOT NULL,
    ADD COLUMN event_id text COLLATE "C" REFERENCES events (id) ON DELETE CASCADE,
    ADD UNIQUE (event_id, channel_id),
    ADD CHECK ((incident_id IS NULL) <> (event_id IS NULL)); -- a notice tells of an incident or of an event
COMMENT ON COLUMN notices.event_id IS 'What it tells of, when it does not tell of an incident.';
