-- Transcripts are found by their check, and let go of by the day of their check: with the time first, one index serves both.

ALTER TABLE transcripts
    DROP CONSTRAINT transcripts_pkey,
    ADD PRIMARY KEY (scheduled_at, place);
