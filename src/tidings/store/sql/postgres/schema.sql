-- What PostgreSQL does differently in schema.sql, and why.

-- name: tables
-- Each database lists its tables in a catalog of its own.
SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema();

-- name: last_drawn
-- Ids come from sequences, which have a catalog too.
SELECT coalesce(last_value, 0) AS last FROM pg_sequences
WHERE schemaname = current_schema() AND sequencename = CAST(:table AS TEXT) || '_id_seq';

-- name: draw_beyond
-- Ids come from sequences, which are no tables to be written.
SELECT setval(CAST(CAST(:table AS TEXT) || '_id_seq' AS regclass), :last) AS last;
