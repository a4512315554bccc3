-- What else an endpoint is asked and told, and where the chains stand.

ALTER TABLE endpoints
    ADD COLUMN options          bytea,
    ADD COLUMN contract_notices boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN endpoints.options IS 'Options and command as sealed JSON, NULL when there are none.';
COMMENT ON COLUMN endpoints.contract_notices IS 'Whether its channels hear of a change of the tool list.';

ALTER TABLE endpoint_states
    ADD COLUMN chain   text COLLATE "C",
    ADD COLUMN head    jsonb,
    ADD COLUMN head_at timestamptz;
COMMENT ON COLUMN endpoint_states.chain IS 'Kind and id of the chain, NULL for what is no chain node.';
COMMENT ON COLUMN endpoint_states.head IS
    'The newest head of a chain node, apart from the evidence because other nodes are compared with it.';
COMMENT ON COLUMN endpoint_states.head_at IS 'When the head was seen.';

CREATE INDEX endpoint_states_heads ON endpoint_states (chain, head_at DESC) WHERE chain IS NOT NULL;
COMMENT ON INDEX endpoint_states_heads IS 'For the heads of one chain, newest first.';
