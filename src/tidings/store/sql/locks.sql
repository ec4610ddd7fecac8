-- Named locks, held until the transaction ends.

-- name: take_lock
-- Nothing to do here: a writing transaction of SQLite already excludes every other.
SELECT :name AS name;

-- name: share_lock
SELECT :name AS name;
