-- Version 2 of the store: messages to runs. A migration never changes once it is released; a new version is a
-- new file.

-- What waits for a run's writer, who moves it into the log and removes it here.
CREATE TABLE inbox (
    run     INTEGER NOT NULL,
    id      TEXT NOT NULL,
    -- When it was posted, Unix milliseconds.
    at      INTEGER NOT NULL,
    -- The message as JSON, as the file journal keeps it.
    message TEXT NOT NULL,
    PRIMARY KEY (run, id)
) STRICT;
