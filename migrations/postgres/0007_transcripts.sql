-- What was said in a check, word for word.

CREATE TABLE transcripts (
    check_id    text COLLATE "C" PRIMARY KEY REFERENCES checks (id) ON DELETE CASCADE,
    endpoint_id text COLLATE "C" NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    good        boolean NOT NULL,
    at          timestamptz NOT NULL,
    body        bytea NOT NULL
);
ALTER TABLE transcripts ALTER COLUMN body SET STORAGE EXTERNAL; -- it is compressed already
COMMENT ON TABLE transcripts IS 'What was said in checks that failed, and in the last good one of each endpoint.';
COMMENT ON COLUMN transcripts.at IS 'When the check started.';
COMMENT ON COLUMN transcripts.body IS 'Compressed JSON, without secrets.';

CREATE INDEX transcripts_of_endpoint ON transcripts (endpoint_id, good, at DESC);
COMMENT ON INDEX transcripts_of_endpoint IS 'For letting go of what is no longer the last good one, and of too many bad ones.';
