-- What PostgreSQL does differently in shelf.sql, and why.

-- name: put_entry
-- Many may put at once, and none sees the others' ids: they are drawn at random.
INSERT INTO shelf (id, pipeline, key, collection, sort, value, revision, version, written_at, expires_at)
VALUES (-1 - floor(random() * 9e15)::bigint,
    :pipeline, :key, :collection, :sort, :value, 1, :version, tidings_now(), :expires_at)
ON CONFLICT (pipeline, key) DO UPDATE
SET collection = excluded.collection, sort = excluded.sort, value = excluded.value, revision = shelf.revision + 1,
    version = excluded.version, written_at = excluded.written_at, expires_at = excluded.expires_at
WHERE shelf.value <> excluded.value OR shelf.sort <> excluded.sort
RETURNING id;
