-- Credentials, one row for each account. The body is JSON; in a sealed database it is a nonce of 24 bytes and what
-- XChaCha20-Poly1305 makes of the JSON, with the JSON array of tenant, service and account as associated data.
-- Times are milliseconds since 1970.
CREATE TABLE credentials (
    tenant TEXT NOT NULL,
    service TEXT NOT NULL,
    account TEXT NOT NULL,
    body BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, service, account)
) STRICT, WITHOUT ROWID;

-- One row in a sealed database: a sealed text that is known, which tells whether a key is the right one.
CREATE TABLE seal (body BLOB NOT NULL) STRICT;
