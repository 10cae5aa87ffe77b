-- Memories in a schema of PostgreSQL with pgvector, format 1. `body` is the entry as JSON without its vector, `used` and
-- `metadata`; `checksum` is the CRC-32 of collection, id, metadata as written and body with a zero byte between.
-- `columns_checksum` is the SHA-256 of the columns that filters look at: kind, trust, key, labels, timestamp, valid_from
-- and valid_to, as the text of a row.
CREATE TABLE entries (
    position   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    kind       text NOT NULL,
    trust      smallint NOT NULL,
    key        text COLLATE "C",
    timestamp  bigint NOT NULL,
    valid_from bigint,
    valid_to   bigint,
    used       bigint,
    embedder   text,
    metadata   text NOT NULL,
    labels     jsonb NOT NULL,
    body       text NOT NULL,
    checksum   bigint NOT NULL,
    columns_checksum bytea NOT NULL,
    words      tsvector NOT NULL,
    vector     vector,
    UNIQUE (collection, id)
);
CREATE INDEX entries_by_key ON entries (key, collection) WHERE key IS NOT NULL;
-- What is no text is no session, and may be too long for an index.
CREATE INDEX entries_by_session ON entries ((labels ->> 'session'), collection, position)
    WHERE jsonb_typeof(labels -> 'session') = 'string';
CREATE INDEX entries_by_words ON entries USING gin (words);
CREATE TABLE embedders (id text PRIMARY KEY, dimensions bigint NOT NULL);
