-- Version 3 of the store: what lists of runs are found by. A migration never changes once it is released; a new
-- version is a new file.

-- As the first record says; NULL where it cannot be read.
ALTER TABLE runs ADD COLUMN session TEXT;
ALTER TABLE runs ADD COLUMN tenant TEXT;
-- The run that called this one.
ALTER TABLE runs ADD COLUMN called_by TEXT;
-- When the run was last written to, Unix milliseconds: of a run that rests exactly, of any other a few seconds before.
ALTER TABLE runs ADD COLUMN noted INTEGER NOT NULL DEFAULT 0;
-- How the run ended, or that it waits; NULL while it may be written to.
ALTER TABLE runs ADD COLUMN rests TEXT;

CREATE INDEX runs_by_time ON runs (noted, run);
CREATE INDEX runs_of_people ON runs (noted, run) WHERE called_by IS NULL;
CREATE INDEX runs_of_sessions ON runs (session, noted, run);
CREATE INDEX runs_of_tenants ON runs (tenant, noted, run);
CREATE INDEX runs_that_rest ON runs (rests, noted, run);

-- A line is JSON unless it is damaged.
UPDATE runs SET (session, tenant, called_by) = (
    SELECT json_extract(line, '$.session'), json_extract(line, '$.tenant'), json_extract(line, '$.origin.run')
    FROM records WHERE place = runs.id << 32 AND json_valid(line)
);
UPDATE runs SET called_by = NULL WHERE (
    SELECT json_extract(line, '$.origin.kind') FROM records WHERE place = runs.id << 32 AND json_valid(line)
) IS NOT 'called_by';
UPDATE runs SET (noted, rests) = (
    SELECT coalesce(json_extract(line, '$.at'), 0), CASE json_extract(line, '$.type') WHEN 'suspended' THEN 'suspended' END
    FROM records WHERE place >= runs.id << 32 AND place < (runs.id + 1) << 32 AND json_valid(line)
    ORDER BY place DESC LIMIT 1
) WHERE EXISTS (
    SELECT 1 FROM records WHERE place >= runs.id << 32 AND place < (runs.id + 1) << 32 AND json_valid(line)
);
