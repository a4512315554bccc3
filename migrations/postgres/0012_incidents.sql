-- Incidents of several kinds with their course, who else hears of them, and when nobody does.

-- Channels of subscriptions are known to nothing but their subscription.

ALTER TABLE channels
    DROP CONSTRAINT channels_name_key_key,
    ADD COLUMN audience text NOT NULL DEFAULT 'team' CHECK (audience IN ('team', 'public', 'member'));
COMMENT ON COLUMN channels.audience IS 'Who sees it: the team, or nobody but the subscription that it is of, from the public or of a member.';

CREATE UNIQUE INDEX channels_by_name ON channels (name_key) WHERE audience = 'team';
COMMENT ON INDEX channels_by_name IS 'For the list, by name; the names of subscriptions'' channels are nobody''s.';

ALTER TABLE endpoints
    ADD COLUMN alerting   jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN objectives jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN endpoints.alerting IS 'Who hears what, and when; durations in nanoseconds.';
COMMENT ON COLUMN endpoints.objectives IS 'What it is meant to achieve; durations in nanoseconds.';

CREATE TABLE endpoint_parents (
    endpoint_id text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    parent_id   text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    position    integer NOT NULL,
    PRIMARY KEY (endpoint_id, parent_id),
    CHECK (endpoint_id <> parent_id)
);
COMMENT ON TABLE endpoint_parents IS 'Which endpoints one stands behind: while one of them is down, its own opening waits.';
COMMENT ON COLUMN endpoint_parents.position IS 'Parents stay in the order in which they were given.';

CREATE INDEX endpoint_parents_by_parent ON endpoint_parents (parent_id);
COMMENT ON INDEX endpoint_parents_by_parent IS 'For those that stand behind an endpoint, also when it goes.';

ALTER TABLE endpoint_states
    ADD COLUMN flips  json,
    ADD COLUMN hushed json;
COMMENT ON COLUMN endpoint_states.flips IS 'When it last turned from well to not well or back, oldest first; NULL for never.';
COMMENT ON COLUMN endpoint_states.hushed IS 'The incident that somebody declared over although it was not, NULL as a rule.';

-- Incidents.

ALTER TABLE incidents
    ALTER COLUMN endpoint_id DROP NOT NULL,
    ADD COLUMN kind            text NOT NULL DEFAULT 'endpoint',
    ADD COLUMN subject         text COLLATE "C",
    ADD COLUMN title           text NOT NULL DEFAULT '',
    ADD COLUMN worst           text,
    ADD COLUMN check_id        text NOT NULL DEFAULT '',
    ADD COLUMN seen_from       text[] NOT NULL DEFAULT '{}',
    ADD COLUMN flapping        boolean NOT NULL DEFAULT false,
    ADD COLUMN acknowledged_at timestamptz,
    ADD COLUMN acknowledged_by text NOT NULL DEFAULT '',
    ADD COLUMN snoozed_until   timestamptz;
UPDATE incidents SET subject = endpoint_id, worst = severity;
ALTER TABLE incidents
    ALTER COLUMN subject SET NOT NULL,
    ALTER COLUMN worst SET NOT NULL;
COMMENT ON TABLE incidents IS 'What was wrong, or somebody said so: from its first sign to its end.';
COMMENT ON COLUMN incidents.endpoint_id IS 'NULL for what is of no single endpoint: of a chain, a location, or by hand.';
COMMENT ON COLUMN incidents.subject IS 'What it is about: the id of the endpoint, or a name made of kind and what it is of.';
COMMENT ON COLUMN incidents.title IS 'What it is called, empty where it is called as its endpoint.';
COMMENT ON COLUMN incidents.severity IS 'How serious it is, or was when it ended.';
COMMENT ON COLUMN incidents.worst IS 'The most serious that it was.';
COMMENT ON COLUMN incidents.check_id IS 'The check that opened it, empty where there is none. No foreign key: the check may be pruned.';
COMMENT ON COLUMN incidents.seen_from IS 'The locations that see it.';
COMMENT ON COLUMN incidents.acknowledged_by IS 'Who looks after it, empty when nobody does.';

DROP INDEX incidents_one_open;
CREATE UNIQUE INDEX incidents_one_open ON incidents (subject) WHERE resolved_at IS NULL;
COMMENT ON INDEX incidents_one_open IS 'At most one incident is open per subject.';

CREATE INDEX incidents_open_of_endpoint ON incidents (endpoint_id) WHERE resolved_at IS NULL;
COMMENT ON INDEX incidents_open_of_endpoint IS 'For where an endpoint stands.';

CREATE INDEX incidents_of_subject ON incidents (subject, started_at DESC, id DESC);
COMMENT ON INDEX incidents_of_subject IS 'For the list of a subject''s incidents, newest first.';

CREATE TABLE incident_endpoints (
    incident_id text COLLATE "C" NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
    endpoint_id text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    joined_at   timestamptz NOT NULL,
    left_at     timestamptz,
    PRIMARY KEY (incident_id, endpoint_id)
);
COMMENT ON TABLE incident_endpoints IS 'Which endpoints are, or were, in an incident that several may be in.';
COMMENT ON COLUMN incident_endpoints.left_at IS 'NULL while it is in it.';

CREATE INDEX incident_endpoints_by_endpoint ON incident_endpoints (endpoint_id);
COMMENT ON INDEX incident_endpoints_by_endpoint IS 'For the incidents that an endpoint is or was in, also when it goes.';

CREATE TABLE incident_entries (
    id          text COLLATE "C" PRIMARY KEY,
    incident_id text COLLATE "C" NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    kind        text NOT NULL,
    author      text NOT NULL DEFAULT '',
    text        text NOT NULL DEFAULT '',
    public      boolean NOT NULL DEFAULT false,
    severity    text NOT NULL DEFAULT '',
    cause       json
);
COMMENT ON TABLE incident_entries IS 'The timelines of incidents, line by line.';
COMMENT ON COLUMN incident_entries.author IS 'Who did it, empty for the program itself.';
COMMENT ON COLUMN incident_entries.public IS 'Whether status pages show it.';
COMMENT ON COLUMN incident_entries.severity IS 'From then on, empty where it did not change.';
COMMENT ON COLUMN incident_entries.cause IS 'From then on, NULL where it did not change.';

CREATE INDEX incident_entries_of_incident ON incident_entries (incident_id, at, id);
COMMENT ON INDEX incident_entries_of_incident IS 'For the timeline, oldest first.';

-- What is known of incidents from before: when they were opened, and when they ended.
INSERT INTO incident_entries (id, incident_id, at, kind, severity, cause)
SELECT 'ent_' || substr(id, 5) || '0', id, opened_at, 'opened', severity,
       json_build_object('failed_step', cause_step, 'class', cause_class, 'code', cause_code, 'message', cause_message)
FROM incidents;
INSERT INTO incident_entries (id, incident_id, at, kind)
SELECT 'ent_' || substr(id, 5) || '1', id, GREATEST(resolved_at, opened_at), 'resolved'
FROM incidents
WHERE resolved_at IS NOT NULL;

-- Notices.

ALTER TABLE notices
    DROP CONSTRAINT notices_incident_id_channel_id_kind_key, -- updates and reminders repeat, and so does the opening of what was over
    DROP CONSTRAINT notices_status_check,
    ADD CONSTRAINT notices_status_check CHECK (status IN ('waiting', 'sent', 'passed', 'failed')),
    ADD COLUMN entry_id text COLLATE "C",
    ADD COLUMN holder   text,
    ADD CHECK (holder IS NULL OR lease_id IS NOT NULL);
COMMENT ON COLUMN notices.status IS 'passed: nothing was sent, and nobody has to hear it any more.';
COMMENT ON COLUMN notices.entry_id IS 'The line of the timeline that it tells of, NULL for none. No foreign key: both go with their incident.';
COMMENT ON COLUMN notices.holder IS 'Who has leased it.';

CREATE INDEX notices_of_incident ON notices (incident_id, channel_id, seq);
COMMENT ON INDEX notices_of_incident IS 'For who has heard of an incident, what a channel must hear first, and what it answered.';

CREATE INDEX notices_leased ON notices (channel_id) WHERE lease_id IS NOT NULL;
COMMENT ON INDEX notices_leased IS 'For who has the notices of a channel in hand.';

ALTER TABLE notice_attempts
    DROP CONSTRAINT notice_attempts_outcome_check,
    ADD CONSTRAINT notice_attempts_outcome_check CHECK (outcome IN ('sent', 'passed', 'retry', 'failed')),
    ADD COLUMN took_ms double precision NOT NULL DEFAULT 0;
COMMENT ON COLUMN notice_attempts.took_ms IS 'How long the channel took to answer.';

CREATE INDEX notice_attempts_newest ON notice_attempts (at DESC, notice_id DESC, attempt DESC);
COMMENT ON INDEX notice_attempts_newest IS 'For the log of deliveries, newest first.';

-- Maintenance.

CREATE TABLE maintenances (
    id          text COLLATE "C" PRIMARY KEY,
    title       text NOT NULL,
    text        text NOT NULL,
    starts_at   timestamptz NOT NULL,
    ends_at     timestamptz,
    schedule    text NOT NULL,
    duration_ms double precision NOT NULL,
    everything  boolean NOT NULL,
    endpoints   text[] NOT NULL,
    tags        text[] NOT NULL,
    public      boolean NOT NULL,
    author      text NOT NULL,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);
COMMENT ON TABLE maintenances IS 'Stretches of time in which checks go on, nothing alerts and uptime does not count.';
COMMENT ON COLUMN maintenances.ends_at IS 'NULL for one that recurs for ever.';
COMMENT ON COLUMN maintenances.schedule IS 'When it begins, each time; empty for once.';
COMMENT ON COLUMN maintenances.everything IS 'It covers all endpoints, not only those named by id or tag.';
COMMENT ON COLUMN maintenances.endpoints IS 'Ids. No foreign key: what is gone is not maintained.';

ALTER TABLE uptime_hours ADD COLUMN maintenance integer NOT NULL DEFAULT 0;
ALTER TABLE uptime_days ADD COLUMN maintenance integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN uptime_hours.maintenance IS 'Checks under maintenance, whatever they found; they are in no other count.';
COMMENT ON COLUMN uptime_days.maintenance IS 'Checks under maintenance, whatever they found; they are in no other count.';

-- Subscriptions.

CREATE TABLE subscriptions (
    id           text COLLATE "C" PRIMARY KEY REFERENCES channels (id) ON DELETE CASCADE,
    user_id      text COLLATE "C" REFERENCES users (id) ON DELETE CASCADE,
    everything   boolean NOT NULL,
    endpoints    text[] NOT NULL,
    tags         text[] NOT NULL,
    severities   text[],
    quiet        json,
    confirmed_at timestamptz,
    confirm_hash bytea UNIQUE,
    manage_hash  bytea UNIQUE,
    address_hash bytea NOT NULL,
    created_at   timestamptz NOT NULL
);
COMMENT ON TABLE subscriptions IS 'Who wants to hear of outages, from the public or of the team. Its channel has the same id.';
COMMENT ON COLUMN subscriptions.user_id IS 'The member of the team, NULL for the public.';
COMMENT ON COLUMN subscriptions.everything IS 'It is about all endpoints, not only those named by id or tag.';
COMMENT ON COLUMN subscriptions.endpoints IS 'Ids. No foreign key: of what is gone nothing is heard.';
COMMENT ON COLUMN subscriptions.severities IS 'NULL for those that the endpoints tell.';
COMMENT ON COLUMN subscriptions.quiet IS 'Hours in which nothing is sent, NULL for none.';
COMMENT ON COLUMN subscriptions.confirmed_at IS 'When the address proved to want this, NULL as long as it has not.';
COMMENT ON COLUMN subscriptions.confirm_hash IS 'Of the token that confirms, once.';
COMMENT ON COLUMN subscriptions.manage_hash IS 'Of the token that shows, changes and ends it.';
COMMENT ON COLUMN subscriptions.address_hash IS 'Of the address or URL without case: it may be a secret.';

CREATE UNIQUE INDEX subscriptions_one_each ON subscriptions (address_hash, (COALESCE(user_id, '')));
COMMENT ON INDEX subscriptions_one_each IS 'An address is subscribed once by the public, and once by each member.';

CREATE INDEX subscriptions_newest ON subscriptions (created_at DESC, id DESC);
COMMENT ON INDEX subscriptions_newest IS 'For the list, newest first.';

CREATE INDEX subscriptions_of_user ON subscriptions (user_id, created_at DESC, id DESC) WHERE user_id IS NOT NULL;
COMMENT ON INDEX subscriptions_of_user IS 'For a member''s list, newest first, also when the member goes.';

CREATE INDEX subscriptions_unconfirmed ON subscriptions (created_at) WHERE confirmed_at IS NULL;
COMMENT ON INDEX subscriptions_unconfirmed IS 'For letting go of those never confirmed.';
