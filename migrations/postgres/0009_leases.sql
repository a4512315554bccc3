-- Which instance probes what: the endpoints of a location are divided into shards, and each is leased by one instance.

CREATE TABLE instances (
    location     text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    expires_at   timestamptz NOT NULL,
    steady_since timestamptz NOT NULL,
    PRIMARY KEY (location, id)
);
COMMENT ON TABLE instances IS 'Services that probe, as long as they say that they are alive.';
COMMENT ON COLUMN instances.expires_at IS 'When the instance counts as dead, unless it is heard of again. By the clock of the database.';
COMMENT ON COLUMN instances.steady_since IS
    'Since when the instance was heard without a long pause: only then can it tell that others are silent.';

CREATE TABLE leases (
    location   text COLLATE "C" NOT NULL,
    shard      smallint NOT NULL CHECK (shard BETWEEN 0 AND 127),
    owner      text COLLATE "C" NOT NULL,
    epoch      bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (location, shard)
-- Every row is rewritten every few seconds: room on its page lets that happen without touching the index.
) WITH (fillfactor = 50);
COMMENT ON TABLE leases IS 'Which instance may probe the endpoints of a shard.';
COMMENT ON COLUMN leases.owner IS 'The instance that holds the shard, or held it last; empty when nobody ever did.';
COMMENT ON COLUMN leases.epoch IS 'Grows by one each time that another instance takes the shard than the one that had it last.';
COMMENT ON COLUMN leases.expires_at IS 'Until when the lease holds, by the clock of the database; -infinity when it was handed over.';
