-- What the server's connections do; only PostgreSQL has a server.

-- name: activity
-- A connection of its own asks why another one of ours is silent.
SELECT pid, state, wait_event_type, wait_event FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND state IS NOT NULL;
