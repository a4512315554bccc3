-- What was said in a check, word for word: of checks that failed, and of the last good one of each endpoint.

CREATE TABLE transcripts (
    check_id    TEXT PRIMARY KEY NOT NULL REFERENCES checks (id) ON DELETE CASCADE,
    endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
    good        INTEGER NOT NULL CHECK (good IN (0, 1)),
    at          INTEGER NOT NULL, -- when the check started
    body        BLOB NOT NULL     -- compressed JSON, without secrets
) STRICT;

-- For letting go of what is no longer the last good one, and of too many bad ones.
CREATE INDEX transcripts_of_endpoint ON transcripts (endpoint_id, good, at DESC);
