-- What was announced of endpoints stays so when they go: it does not come to be for everybody.
ALTER TABLE incidents ADD COLUMN names_endpoints INTEGER NOT NULL DEFAULT 0 CHECK (names_endpoints IN (0, 1)); -- of manual ones
UPDATE incidents
SET names_endpoints = 1
WHERE kind = 'manual' AND EXISTS (SELECT 1 FROM incident_endpoints m WHERE m.incident_id = incidents.id);
