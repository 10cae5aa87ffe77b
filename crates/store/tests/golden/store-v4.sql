PRAGMA application_id = 1095910216;
CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT;
CREATE TABLE runs (
    id        INTEGER PRIMARY KEY,
    run       TEXT NOT NULL UNIQUE,
    -- The run that this one continues, as its first record says; it cannot be deleted before this one.
    continues TEXT,
    -- As the first record says; NULL where it cannot be read.
    session   TEXT,
    tenant    TEXT,
    -- The run that called this one.
    called_by TEXT,
    -- The time of the last write, Unix milliseconds: exact for a run that rests, a few seconds early for others.
    noted     INTEGER NOT NULL DEFAULT 0,
    -- The outcome of the run, or that it waits; NULL while it may be written to.
    rests     TEXT
) STRICT;
CREATE INDEX runs_that_continue ON runs (continues) WHERE continues IS NOT NULL;
CREATE INDEX runs_by_time ON runs (noted, run);
CREATE INDEX runs_of_people ON runs (noted, run) WHERE called_by IS NULL;
CREATE INDEX runs_of_sessions ON runs (session, noted, run);
CREATE INDEX runs_of_tenants ON runs (tenant, noted, run);
CREATE INDEX runs_that_rest ON runs (rests, noted, run);
CREATE TABLE records (
    -- runs.id * 2^32 + the record's place in its log.
    place INTEGER PRIMARY KEY,
    -- The record with its checksum, in the form that the file journal writes.
    line  TEXT NOT NULL
) STRICT;
CREATE TABLE blobs (
    run    INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (run, sha256)
) STRICT;
CREATE TABLE inbox (
    run     INTEGER NOT NULL,
    id      TEXT NOT NULL,
    -- The time of the post, Unix milliseconds.
    at      INTEGER NOT NULL,
    -- The message as JSON, as the file journal keeps it.
    message TEXT NOT NULL,
    PRIMARY KEY (run, id)
) STRICT;
INSERT INTO schema_version VALUES (4);
INSERT INTO runs VALUES (1, 'r1', NULL, 's1', 'local', NULL, 1767225605000, NULL);
INSERT INTO runs VALUES (2, 'other', 'r1', 's1', 'local', NULL, 1767225601000, NULL);
INSERT INTO records VALUES (4294967296, '{"crc":"a5909f22","seq":0,"at":1767225600000,"type":"run_started","format":2,"kind":"loop","run":"r1","session":"s1","agent":"a1","loop_id":"s1.0.0","tenant":"local","origin":{"kind":"prompt"},"first_trigger":"user","config":{"provider":"scripted","model":"m","tools":[],"options":{"tool_choice":"auto","thinking":"off"},"limits":{"max_turns":50,"max_total_tokens":1000000,"max_duration_ms":600000,"max_repeats":3,"max_parse_failures":3,"on_limit":"stop"},"retry":{"max_retries":3,"initial_delay_ms":1000,"backoff_multiplier":2.0,"max_delay_ms":30000},"tool_mode":"native"}}');
INSERT INTO records VALUES (4294967297, '{"crc":"9b6cc742","seq":1,"at":1767225601000,"type":"message_added","message":{"role":"user","content":[{"type":"text","text":"What is 15% of 200?\nTwo lines, \"quotes\", ünïcode  ."}],"timestamp":1767225600000},"source":"prompt"}');
INSERT INTO records VALUES (4294967298, '{"crc":"b6c4bdb9","seq":2,"at":1767225602000,"type":"model_call_started","command":0,"attempt":0,"turn":0,"request_hash":""}');
INSERT INTO records VALUES (4294967299, '{"crc":"31d8eac0","seq":3,"at":1767225603000,"type":"tool_call_started","call":{"command":0,"index":0},"attempt":0,"effect":"read_only"}');
INSERT INTO records VALUES (4294967300, '{"crc":"20d70d5e","seq":4,"at":1767225604000,"type":"tool_call_finished","call":{"command":0,"index":0},"result":{"content":[{"type":"text","text":"30"}],"status":"success"}}');
INSERT INTO records VALUES (4294967301, '{"crc":"6f6444e1","seq":5,"at":1767225605000,"type":"hint_added","text":"the end"}');
INSERT INTO records VALUES (8589934592, '{"crc":"d8e57054","seq":0,"at":1767225600000,"type":"run_started","format":2,"kind":"loop","run":"other","session":"s1","agent":"a1","loop_id":"s1.0.0","tenant":"local","origin":{"kind":"continues","run":"r1","records":6,"continuation":{"kind":"default"}},"first_trigger":"user","config":{"provider":"scripted","model":"m","tools":[],"options":{"tool_choice":"auto","thinking":"off"},"limits":{"max_turns":50,"max_total_tokens":1000000,"max_duration_ms":600000,"max_repeats":3,"max_parse_failures":3,"on_limit":"stop"},"retry":{"max_retries":3,"initial_delay_ms":1000,"backoff_multiplier":2.0,"max_delay_ms":30000},"tool_mode":"native"}}');
INSERT INTO records VALUES (8589934593, '{"crc":"3a71c9a9","seq":1,"at":1767225601000,"type":"message_added","message":{"role":"user","content":[{"type":"text","text":"the task"}],"timestamp":1767225600000},"source":"prompt"}');
