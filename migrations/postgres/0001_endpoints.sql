-- What is watched, and where word of it goes.
--
-- Durations are milliseconds. Ids are made by the program and sort by the time they were made. Texts that lists are sorted
-- by are compared byte by byte (COLLATE "C"): the order must not depend on the locale of the server.

CREATE TABLE secret_key (
    id    integer PRIMARY KEY CHECK (id = 1), -- one key for the whole database
    proof bytea NOT NULL
);
COMMENT ON TABLE secret_key IS
    'Proof of the key that secrets are sealed with, so that another key is refused at once and not secret by secret.';

CREATE TABLE channels (
    id         text COLLATE "C" PRIMARY KEY,
    name       text NOT NULL,
    name_key   text COLLATE "C" NOT NULL UNIQUE,
    type       text NOT NULL,
    settings   json NOT NULL,
    secrets    bytea,
    broken     text,
    broken_at  timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CHECK ((broken IS NULL) = (broken_at IS NULL))
);
COMMENT ON TABLE channels IS 'Where notices go.';
COMMENT ON COLUMN channels.name_key IS 'The name without case, as the program folds it: people choose channels by name.';
COMMENT ON COLUMN channels.settings IS 'json, not jsonb, which refuses characters that people can type.';
COMMENT ON COLUMN channels.secrets IS 'Sealed JSON, NULL when there are none.';
COMMENT ON COLUMN channels.broken IS 'Why nothing more is sent here.';

CREATE TABLE endpoints (
    id                text COLLATE "C" PRIMARY KEY,
    slug              text COLLATE "C" NOT NULL UNIQUE,
    name              text NOT NULL,
    name_key          text COLLATE "C" NOT NULL UNIQUE,
    search            text NOT NULL,
    kind              text NOT NULL,
    url               text NOT NULL,
    headers           bytea,
    request_method    text NOT NULL,
    request_params    bytea,
    schedule          text NOT NULL,
    timeout_ms        double precision NOT NULL,
    degraded_over_ms  double precision NOT NULL,
    confirm_failures  integer NOT NULL,
    confirm_successes integer NOT NULL,
    confirm_after_ms  double precision NOT NULL,
    public            boolean NOT NULL,
    paused            boolean NOT NULL,
    tags              text[] NOT NULL,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL
);
COMMENT ON TABLE endpoints IS 'What is watched. Whoever changes anything kept about an endpoint locks its row here first.';
COMMENT ON COLUMN endpoints.slug IS 'Part of addresses: never changes.';
COMMENT ON COLUMN endpoints.name_key IS 'The name without case, as the program folds it: lists are sorted by it.';
COMMENT ON COLUMN endpoints.search IS 'Name, slug and redacted URL without case: what a search looks into.';
COMMENT ON COLUMN endpoints.headers IS 'Sealed JSON, NULL when there are none.';
COMMENT ON COLUMN endpoints.request_params IS 'JSON to be sent byte for byte, NULL when there are none.';

CREATE TABLE endpoint_channels (
    endpoint_id text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    channel_id  text COLLATE "C" NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    position    integer NOT NULL,
    PRIMARY KEY (endpoint_id, channel_id)
);
COMMENT ON TABLE endpoint_channels IS 'Who hears of an endpoint. A channel that goes leaves every endpoint.';
COMMENT ON COLUMN endpoint_channels.position IS 'Channels stay in the order in which they were given.';

CREATE INDEX endpoint_channels_by_channel ON endpoint_channels (channel_id);
COMMENT ON INDEX endpoint_channels_by_channel IS 'For the removal of a channel.';

CREATE TABLE endpoint_states (
    endpoint_id   text COLLATE "C" PRIMARY KEY REFERENCES endpoints (id) ON DELETE CASCADE,
    -- "paused" is not among them: it follows from the endpoint.
    status        text NOT NULL CHECK (status IN ('pending', 'up', 'degraded', 'down', 'gated', 'unknown')),
    since         timestamptz,
    last_check_id text COLLATE "C",
    last_check_at timestamptz,
    evidence      jsonb NOT NULL
);
COMMENT ON TABLE endpoint_states IS
    'What the checks of an endpoint so far add up to. Every endpoint has one, apart from it because every check writes here.';
COMMENT ON COLUMN endpoint_states.last_check_id IS 'No foreign key: the check may be pruned.';
COMMENT ON COLUMN endpoint_states.evidence IS 'Streaks, failure, and what the next probe is told.';
