-- The intake log: findings, the checkpoint, reservations of what lies behind it, the sources' cursors.

-- name: insert_findings
-- rows: number bigint, pipeline text, kind text, key text, fingerprint text, priority bigint, payload bytea, source text
INSERT INTO intake (pipeline, kind, key, fingerprint, priority, payload, source, appended_at)
SELECT pipeline, kind, key, fingerprint, priority, payload, source, (SELECT tidings_now()) FROM given ORDER BY number;

-- name: waiting_findings
-- What waits of each key behind the checkpoint, oldest first.
-- rows: number bigint, pipeline text, kind text, key text
SELECT given.number, intake.fingerprint FROM given CROSS JOIN intake
WHERE intake.pipeline = given.pipeline AND intake.kind = given.kind AND intake.key = given.key AND intake.id > :checkpoint
ORDER BY intake.id;

-- name: checkpoint
-- The last merged finding, unless it is missing from a log that still holds older ones.
SELECT checkpoint FROM checkpoints WHERE pipeline = :pipeline AND (
    EXISTS (SELECT 1 FROM intake WHERE intake.pipeline = checkpoints.pipeline AND intake.id = checkpoints.checkpoint)
    OR NOT EXISTS (
        SELECT 1 FROM intake WHERE intake.pipeline = checkpoints.pipeline AND intake.id < checkpoints.checkpoint));

-- name: move_checkpoint
INSERT INTO checkpoints (pipeline, checkpoint, moved_at) VALUES (:pipeline, :checkpoint, tidings_now())
ON CONFLICT (pipeline) DO UPDATE SET checkpoint = excluded.checkpoint, moved_at = excluded.moved_at;

-- name: reservations
-- Which stretches of the log are being run, in order: up to which finding, and for how long yet.
SELECT id, through, until - tidings_now() AS left_ms FROM reservations WHERE pipeline = :pipeline ORDER BY through;

-- name: insert_reservation
INSERT INTO reservations (pipeline, through, until) VALUES (:pipeline, :through, tidings_now() + :lease_ms)
RETURNING id, tidings_now() AS granted_at;

-- name: drop_reservation
DELETE FROM reservations WHERE id = :id;

-- name: end_reservation
UPDATE reservations SET until = tidings_now() WHERE id = :id;

-- name: drop_reservations
DELETE FROM reservations WHERE pipeline = :pipeline;

-- name: end_reservations
-- All holders are dead: what they reserved is merged as usual.
UPDATE reservations SET until = tidings_now() WHERE until > tidings_now();

-- name: any_urgent_finding
-- Whether anything more urgent than bulk waits in the log.
SELECT 1 AS found FROM intake WHERE pipeline = :pipeline AND id > :after AND priority < 2 LIMIT 1;

-- name: next_findings
-- The next findings in log order.
SELECT id, kind, key, fingerprint, priority, payload FROM intake
WHERE pipeline = :pipeline AND id > :after ORDER BY id LIMIT :limit;

-- name: findings_between
-- A stretch of the log.
SELECT id, kind, key, fingerprint, priority, payload FROM intake
WHERE pipeline = :pipeline AND id > :after AND id <= :through ORDER BY id LIMIT :limit;

-- name: count_between
SELECT count(*) AS findings FROM intake WHERE pipeline = :pipeline AND id > :after AND id <= :through;

-- name: size_of_findings
-- What the next findings would take in memory.
SELECT coalesce(sum(length(payload)), 0) AS size_bytes FROM (
    SELECT payload FROM intake WHERE pipeline = :pipeline AND id > :after ORDER BY id LIMIT :limit) AS next_ones;

-- name: count_unmerged
SELECT count(*) AS unmerged FROM intake WHERE pipeline = :pipeline AND id > :checkpoint;

-- name: oldest_unmerged
-- How long the first finding behind the checkpoint has waited.
SELECT tidings_now() - appended_at AS age_ms FROM intake WHERE pipeline = :pipeline AND id > :checkpoint ORDER BY id LIMIT 1;

-- name: count_log
SELECT count(*) AS findings FROM intake WHERE pipeline = :pipeline;

-- name: trim_log
-- Never passes the checkpoint, and takes a finding only together with all before it, although the clock may have jumped.
DELETE FROM intake WHERE pipeline = :pipeline AND id <= :checkpoint AND id < coalesce(
    (SELECT id FROM intake WHERE pipeline = :pipeline AND appended_at >= tidings_now() - :keep_ms ORDER BY id LIMIT 1),
    :checkpoint + 1);

-- name: save_cursor
-- A page's cursor, in the transaction that appends the page.
INSERT INTO cursors (source, cursor, moved_at) VALUES (:source, :cursor, tidings_now())
ON CONFLICT (source) DO UPDATE SET cursor = excluded.cursor, moved_at = excluded.moved_at;

-- name: complete_run
-- The mark moves with the last page of a completed run.
INSERT INTO cursors (source, mark, completed_runs, moved_at) VALUES (:source, :mark, 1, tidings_now())
ON CONFLICT (source) DO UPDATE
SET mark = coalesce(excluded.mark, cursors.mark), completed_runs = cursors.completed_runs + 1, moved_at = excluded.moved_at;

-- name: read_cursor
SELECT cursor, mark, completed_runs FROM cursors WHERE source = :source;
