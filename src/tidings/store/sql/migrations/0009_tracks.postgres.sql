-- How the numbers and ranks of a card went while it stood in lists: one row each, with few points.
CREATE TABLE tracks (
    pipeline text NOT NULL,
    key text COLLATE "C" NOT NULL,
    points text NOT NULL,
    changed_at bigint NOT NULL,
    PRIMARY KEY (pipeline, key)
);
CREATE INDEX tracks_by_age ON tracks (changed_at);
