-- What PostgreSQL does differently in locks.sql, and why.

-- name: take_lock
-- Writers work side by side: what must not happen twice at once holds an advisory lock.
SELECT pg_advisory_xact_lock(hashtextextended(:name, 0)) AS name;

-- name: share_lock
-- Transactions that share the lock exclude only one that takes it alone.
SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 0)) AS name;
