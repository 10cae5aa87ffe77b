-- Version 1 of the store. A migration never changes once it is released; a new version is a new file.

-- A run has a row once it has a record. Its number is only used within this database.
CREATE TABLE runs (
    id        INTEGER PRIMARY KEY,
    run       TEXT NOT NULL UNIQUE,
    -- The run that this one goes on from, as its first record says: who must stay while this one does.
    continues TEXT
) STRICT;

CREATE INDEX runs_that_continue ON runs (continues) WHERE continues IS NOT NULL;

-- One tree, in the order of the logs: an append touches one page, and a log is read from end to end.
CREATE TABLE records (
    -- runs.id * 2^32 + the record's place in its log.
    place INTEGER PRIMARY KEY,
    -- The record with its checksum, in the very form that the file journal writes.
    line  TEXT NOT NULL
) STRICT;

-- The bodies of large records, by their hash.
CREATE TABLE blobs (
    run    INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (run, sha256)
) STRICT;
