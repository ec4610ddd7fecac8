-- The schema itself: which tables there are, which migrations were applied, which ids were drawn.

-- name: tables
SELECT name FROM sqlite_schema WHERE type = 'table';

-- name: create_migrations
CREATE TABLE IF NOT EXISTS migrations (
    number BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL);

-- name: applied_migrations
SELECT number, checksum FROM migrations;

-- name: record_migration
INSERT INTO migrations (number, name, checksum, applied_at) VALUES (:number, :name, :checksum, tidings_now());

-- name: last_drawn
-- The highest id that was ever drawn for a table.
SELECT seq AS last FROM sqlite_sequence WHERE name = :table;

-- name: draw_beyond
-- The next id of a table is higher than :last. A table into which nothing was ever inserted has no row here yet.
INSERT OR REPLACE INTO sqlite_sequence (rowid, name, seq)
VALUES ((SELECT rowid FROM sqlite_sequence WHERE name = :table), :table, :last)
RETURNING seq AS last;
