-- What was announced of endpoints stays so when they go: it does not come to be for everybody.
ALTER TABLE incidents ADD COLUMN names_endpoints boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN incidents.names_endpoints IS 'Of a manual one: it was announced of endpoints, which may all be gone.';
UPDATE incidents i
SET names_endpoints = true
WHERE i.kind = 'manual' AND EXISTS (SELECT 1 FROM incident_endpoints m WHERE m.incident_id = i.id);
