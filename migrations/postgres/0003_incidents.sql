-- Outages, and who still has to hear of them.

CREATE TABLE incidents (
    id            text COLLATE "C" PRIMARY KEY,
    endpoint_id   text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    severity      text NOT NULL,
    started_at    timestamptz NOT NULL,
    opened_at     timestamptz NOT NULL,
    resolved_at   timestamptz,
    resolution    text,
    cause_step    text NOT NULL,
    cause_class   text NOT NULL,
    cause_code    bigint NOT NULL,
    cause_message text NOT NULL,
    CHECK ((resolved_at IS NULL) = (resolution IS NULL)),
    CHECK (resolved_at >= started_at) -- an outage does not end before it begins
);
COMMENT ON TABLE incidents IS 'Stretches in which an endpoint was down.';
COMMENT ON COLUMN incidents.started_at IS 'When the first bad check started.';
COMMENT ON COLUMN incidents.opened_at IS 'When it was confirmed.';

CREATE UNIQUE INDEX incidents_one_open ON incidents (endpoint_id) WHERE resolved_at IS NULL;
COMMENT ON INDEX incidents_one_open IS 'At most one incident is open per endpoint.';

CREATE INDEX incidents_newest ON incidents (started_at DESC, id DESC);
COMMENT ON INDEX incidents_newest IS 'For the list of all incidents, newest first.';

CREATE INDEX incidents_of_endpoint ON incidents (endpoint_id, started_at DESC, id DESC);
COMMENT ON INDEX incidents_of_endpoint IS 'For the list of an endpoint''s incidents, newest first.';

CREATE TABLE notices (
    seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text COLLATE "C" NOT NULL UNIQUE,
    incident_id  text COLLATE "C" NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
    channel_id   text COLLATE "C" NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    kind         text NOT NULL,
    status       text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'sent', 'failed')),
    created_at   timestamptz NOT NULL,
    due_at       timestamptz NOT NULL,
    attempts     integer NOT NULL DEFAULT 0,
    lease_id     text,
    leased_until timestamptz,
    ref          text NOT NULL DEFAULT '',
    -- Each channel hears each thing about an incident once. Also for finding what else a channel must hear first.
    UNIQUE (incident_id, channel_id, kind),
    CHECK ((lease_id IS NULL) = (leased_until IS NULL))
);
COMMENT ON TABLE notices IS 'Word of a change that one channel has to hear.';
COMMENT ON COLUMN notices.seq IS
    'The order in which notices came to be, which clocks cannot disturb: a resolution never overtakes its opening.';
COMMENT ON COLUMN notices.ref IS 'What the channel gave to find the message again.';

CREATE INDEX notices_waiting ON notices (due_at) WHERE status = 'waiting';
COMMENT ON INDEX notices_waiting IS 'For what is due, and for the number of those that wait.';

CREATE INDEX notices_by_channel ON notices (channel_id);
COMMENT ON INDEX notices_by_channel IS 'For the removal of a channel.';

CREATE TABLE notice_attempts (
    notice_id text COLLATE "C" NOT NULL REFERENCES notices (id) ON DELETE CASCADE,
    attempt   integer NOT NULL,
    at        timestamptz NOT NULL,
    outcome   text NOT NULL CHECK (outcome IN ('sent', 'retry', 'failed')),
    error     text NOT NULL,
    PRIMARY KEY (notice_id, attempt)
);
COMMENT ON TABLE notice_attempts IS 'Every attempt to deliver a notice.';
COMMENT ON COLUMN notice_attempts.error IS 'Without secrets, empty when it was sent.';
