-- Tombstones of removed items.

-- name: any_tombstone
-- Most pipelines have none, and then no key has to be looked up.
SELECT 1 AS found FROM tombstones WHERE pipeline = :pipeline LIMIT 1;

-- name: look_up_tombstones
-- rows: number bigint, pipeline text, kind text, key text
SELECT given.number, stone.fingerprint, stone.intake_id
FROM given CROSS JOIN tombstones stone
WHERE stone.pipeline = given.pipeline AND stone.kind = given.kind AND stone.key = given.key;

-- name: insert_tombstones
-- rows: pipeline text, kind text, key text, fingerprint text, intake_id bigint, forget_ms bigint,
--      item bigint
INSERT INTO tombstones (pipeline, kind, key, fingerprint, intake_id, buried_at, forget_at, item)
SELECT pipeline, kind, key, fingerprint, intake_id, clock.now, clock.now + forget_ms, item
FROM given CROSS JOIN (SELECT tidings_now() AS now) AS clock WHERE true
ON CONFLICT (pipeline, kind, key) DO UPDATE
SET fingerprint = excluded.fingerprint, intake_id = excluded.intake_id, buried_at = excluded.buried_at,
    forget_at = excluded.forget_at, item = excluded.item;

-- name: drop_tombstones
-- Their items are born again.
-- rows: pipeline text, kind text, key text
DELETE FROM tombstones WHERE (pipeline, kind, key) IN (SELECT pipeline, kind, key FROM given)
RETURNING item;

-- name: tombstones
-- The youngest first; only those of a pipeline or key where one is named.
SELECT pipeline, kind, key, fingerprint, buried_at, forget_at, item,
    (SELECT error FROM journal WHERE journal.item = tombstones.item AND journal.kind = 'retired' LIMIT 1) AS reason
FROM tombstones
WHERE (pipeline = :pipeline OR CAST(:pipeline AS TEXT) IS NULL) AND (key = :key OR CAST(:key AS TEXT) IS NULL)
ORDER BY buried_at DESC, pipeline, kind, key LIMIT :limit;

-- name: lift_tombstones
DELETE FROM tombstones
WHERE pipeline = :pipeline AND (kind = :kind OR CAST(:kind AS TEXT) IS NULL)
    AND (key = :key OR CAST(:key AS TEXT) IS NULL)
RETURNING item;

-- name: forget_tombstones
DELETE FROM tombstones WHERE forget_at <= tidings_now() RETURNING item;
