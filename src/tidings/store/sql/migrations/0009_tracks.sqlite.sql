-- How the numbers and ranks of a card went while it stood in lists: one row each, with few points.
CREATE TABLE tracks (
    pipeline TEXT NOT NULL,
    key TEXT NOT NULL,
    points TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (pipeline, key)
) WITHOUT ROWID;
CREATE INDEX tracks_by_age ON tracks (changed_at);
