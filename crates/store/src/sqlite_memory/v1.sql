-- Memories in one SQLite database, format 1.

-- One entry per row. `body` is the entry as JSON without its vector, `used` and `metadata`; the columns beside it
-- repeat what queries look at. `checksum` is the CRC-32 of collection, id, metadata and body with a zero byte between.
-- `columns_checksum` is that of the columns that filters look at: kind, trust, key, session, timestamp, valid_from,
-- valid_to and metadata; it stands before the long texts, so that these need not be read for it. `length` is how many
-- words the content has.
CREATE TABLE entries (
    position   INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    trust      INTEGER NOT NULL,
    key        TEXT,
    session    TEXT,
    timestamp  INTEGER NOT NULL,
    valid_from INTEGER,
    valid_to   INTEGER,
    columns_checksum INTEGER NOT NULL,
    used       INTEGER,
    embedder   TEXT,
    metadata   TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    checksum   INTEGER NOT NULL,
    length     INTEGER NOT NULL,
    UNIQUE (collection, id)
) STRICT;
CREATE INDEX entries_by_key ON entries (key, collection) WHERE key IS NOT NULL;
CREATE INDEX entries_by_session ON entries (session, collection, position) WHERE session IS NOT NULL;

-- The collections that entries are in, and those around them.
CREATE TABLE collections (
    number INTEGER PRIMARY KEY,
    name   TEXT    NOT NULL UNIQUE
) STRICT;

-- The words of the contents; the texts themselves are in the entries only. `owners` has the numbers of the entry's
-- collection and of those around it, so that a question to one collection walks past nobody else's words.
CREATE VIRTUAL TABLE words USING fts5(
    content, owners, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

-- How long the vectors of each embedder are.
CREATE TABLE embedders (
    id         TEXT PRIMARY KEY,
    dimensions INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The exact vectors: 32-bit floats, little-endian, and their CRC-32.
CREATE TABLE vectors (
    position INTEGER PRIMARY KEY,
    vector   BLOB    NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

-- The copies that are scanned: a byte per dimension, in the order in which they were written.
CREATE TABLE scanned (
    stamp      INTEGER PRIMARY KEY AUTOINCREMENT,
    position   INTEGER NOT NULL UNIQUE,
    collection TEXT    NOT NULL,
    embedder   TEXT    NOT NULL,
    scale      REAL    NOT NULL,
    bytes      BLOB    NOT NULL
) STRICT;

-- What is scanned no more, so that whoever has a copy in memory can follow.
CREATE TABLE removed (
    stamp      INTEGER PRIMARY KEY AUTOINCREMENT,
    position   INTEGER NOT NULL,
    collection TEXT    NOT NULL,
    embedder   TEXT    NOT NULL
) STRICT;

-- One row. A copy of another epoch is to be read anew.
CREATE TABLE epochs (epoch INTEGER NOT NULL) STRICT;
INSERT INTO epochs VALUES (1);
