-- What else an endpoint is asked and told, and where the chains stand.

ALTER TABLE endpoints ADD COLUMN options BLOB; -- options and command as sealed JSON, NULL when there are none

-- Whether its channels hear of a change of the tool list.
ALTER TABLE endpoints ADD COLUMN contract_notices INTEGER NOT NULL DEFAULT 0 CHECK (contract_notices IN (0, 1));

-- The newest head of a chain node, apart from the evidence because other nodes are compared with it.
ALTER TABLE endpoint_states ADD COLUMN chain TEXT;      -- kind and id of the chain, NULL for what is no chain node
ALTER TABLE endpoint_states ADD COLUMN head TEXT CHECK (json_valid(head));
ALTER TABLE endpoint_states ADD COLUMN head_at INTEGER; -- when it was seen

-- For the heads of one chain, newest first.
CREATE INDEX endpoint_states_heads ON endpoint_states (chain, head_at DESC) WHERE chain IS NOT NULL;
