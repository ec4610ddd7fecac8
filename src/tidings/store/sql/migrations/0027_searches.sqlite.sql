-- Searches that readers keep, and whose marks a token gives.
CREATE TABLE searches (
    reader TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    query TEXT NOT NULL,
    pipeline TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (reader, name)
) WITHOUT ROWID;
ALTER TABLE tokens ADD COLUMN reader TEXT;
