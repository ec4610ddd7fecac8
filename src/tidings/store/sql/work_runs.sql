-- What workers did, run by run.

-- name: put_work_run
-- A run ends when it is written; how long it took is measured by its process.
INSERT INTO work_runs (pipeline, process, started_at, ended_at, loaded, processed, removed, moved_to_end, queue_length)
VALUES (:pipeline, :process, tidings_now() - :took_ms, tidings_now(), :loaded, :processed, :removed, :moved_to_end,
    :queue_length);

-- name: count_waiting
-- What has a way to go: due now or later, whether parked or not.
SELECT count(*) AS items FROM items
WHERE pipeline = :pipeline AND due_at IS NOT NULL AND lease_until IS NULL AND (standing = 'open' OR standing = 'parked');

-- name: count_leased
SELECT count(*) AS items FROM items WHERE lease_until IS NOT NULL AND pipeline = :pipeline;

-- name: last_work_runs
SELECT pipeline, process, started_at, ended_at, loaded, processed, removed, moved_to_end, queue_length
FROM work_runs WHERE pipeline = :pipeline ORDER BY id DESC LIMIT :limit;

-- name: drop_old_work_runs
DELETE FROM work_runs WHERE ended_at < tidings_now() - :keep_ms;
