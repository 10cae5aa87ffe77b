-- Version 4 of the store, the first one that is read. A migration never changes once it is released; a new
-- version is a new file.

-- A run has a row once it has a record. Its number is only used within this database.
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

-- One tree, in the order of the logs: an append touches one page, and a log is read from end to end.
CREATE TABLE records (
    -- runs.id * 2^32 + the record's place in its log.
    place INTEGER PRIMARY KEY,
    -- The record with its checksum, in the form that the file journal writes.
    line  TEXT NOT NULL
) STRICT;

-- The bodies of large records and the data of media, by their hash.
CREATE TABLE blobs (
    run    INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (run, sha256)
) STRICT;

-- Messages to runs. The writer of a run moves them into the log and removes them here.
CREATE TABLE inbox (
    run     INTEGER NOT NULL,
    id      TEXT NOT NULL,
    -- The time of the post, Unix milliseconds.
    at      INTEGER NOT NULL,
    -- The message as JSON, as the file journal keeps it.
    message TEXT NOT NULL,
    PRIMARY KEY (run, id)
) STRICT;
