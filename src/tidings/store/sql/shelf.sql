-- The shelf of cards.

-- part: new_cards
INSERT INTO shelf (id, pipeline, key, collection, sort, value, revision, version, written_at, expires_at)
SELECT id, pipeline, key, collection, sort, value, revision, version, (SELECT tidings_now()), NULL
FROM given WHERE true

-- name: insert_cards
-- Of new items, of which nothing was ever shown.
-- rows: id bigint, pipeline text, key text, collection text, sort bigint, value bytea, revision bigint, version bigint
/* new_cards */;

-- name: put_cards
-- A card is written only if it is not older than what is there, and is of a newer revision or changed. With a newer
-- revision the card may be the same and its document another: followers have to hear of it.
-- rows: id bigint, pipeline text, key text, collection text, sort bigint, value bytea, revision bigint, version bigint
/* new_cards */
ON CONFLICT (id) DO UPDATE
SET key = excluded.key, collection = excluded.collection, sort = excluded.sort, value = excluded.value,
    revision = excluded.revision, version = excluded.version, written_at = excluded.written_at, expires_at = excluded.expires_at
WHERE excluded.revision >= shelf.revision
    AND (shelf.revision <> excluded.revision OR shelf.value <> excluded.value OR shelf.sort <> excluded.sort
        OR shelf.key <> excluded.key);

-- name: renamed_cards
-- Cards that are about to get another key: a repository that moved.
-- rows: id bigint, key text, revision bigint
SELECT shelf.id, shelf.pipeline, shelf.key, shelf.collection FROM given CROSS JOIN shelf
WHERE shelf.id = given.id AND shelf.key <> given.key AND shelf.revision <= given.revision;

-- name: cards_of_others
-- Cards of other items under these keys.
-- rows: id bigint, pipeline text, key text
SELECT given.id, shelf.id AS holder,
    CASE WHEN EXISTS (SELECT 1 FROM items WHERE items.id = shelf.id) THEN 1 ELSE 0 END AS is_alive
FROM given CROSS JOIN shelf
WHERE shelf.pipeline = given.pipeline AND shelf.key = given.key AND shelf.id <> given.id;

-- name: put_entry
-- An entry that belongs to no item; an unchanged value is no write.
INSERT INTO shelf (id, pipeline, key, collection, sort, value, revision, version, written_at, expires_at)
VALUES ((SELECT least_id FROM (SELECT coalesce(min(id), 0) AS least_id FROM shelf WHERE id < 0) AS lowest) - 1,
    :pipeline, :key, :collection, :sort, :value, 1, :version, tidings_now(), :expires_at)
ON CONFLICT (pipeline, key) DO UPDATE
SET collection = excluded.collection, sort = excluded.sort, value = excluded.value, revision = shelf.revision + 1,
    version = excluded.version, written_at = excluded.written_at, expires_at = excluded.expires_at
WHERE shelf.value <> excluded.value OR shelf.sort <> excluded.sort
RETURNING id;

-- name: drop_cards
-- rows: id bigint
DELETE FROM shelf WHERE id IN (SELECT given.id FROM given) RETURNING id, pipeline, key, collection;

-- name: drop_entry
DELETE FROM shelf WHERE pipeline = :pipeline AND key = :key RETURNING id, pipeline, key, collection;

-- name: drop_expired_entries
DELETE FROM shelf WHERE expires_at IS NOT NULL AND expires_at <= tidings_now() RETURNING id, pipeline, key, collection;

-- name: drop_all_cards
DELETE FROM shelf WHERE pipeline = :pipeline AND id > 0;

-- name: shelf_entry
SELECT key, value, version, revision, sort, written_at, id FROM shelf
WHERE pipeline = :pipeline AND key = :key AND (expires_at IS NULL OR expires_at > tidings_now());

-- name: shelf_entries
-- rows: pipeline text, key text
SELECT shelf.key, value, version, revision, sort, written_at, shelf.id FROM given CROSS JOIN shelf
WHERE shelf.pipeline = given.pipeline AND shelf.key = given.key AND (expires_at IS NULL OR expires_at > tidings_now());

-- name: shelf_newest
SELECT key, value, version, revision, sort, written_at, id FROM shelf
WHERE pipeline = :pipeline AND collection = :collection AND (expires_at IS NULL OR expires_at > tidings_now())
ORDER BY sort DESC, key DESC LIMIT :limit;

-- name: shelf_newest_after
SELECT key, value, version, revision, sort, written_at, id FROM shelf
WHERE pipeline = :pipeline AND collection = :collection AND (sort, key) < (:sort, :key)
    AND (expires_at IS NULL OR expires_at > tidings_now())
ORDER BY sort DESC, key DESC LIMIT :limit;

-- name: shelf_prefix
SELECT key, value, version, revision, sort, written_at, id FROM shelf
WHERE pipeline = :pipeline AND key >= :prefix AND key < :prefix_end AND (expires_at IS NULL OR expires_at > tidings_now())
ORDER BY key LIMIT :limit;

-- name: shelf_keys
SELECT key FROM shelf WHERE pipeline = :pipeline AND collection = :collection;

-- name: shelf_count
SELECT count(*) AS cards FROM shelf WHERE pipeline = :pipeline AND collection = :collection;

-- name: shelf_version
SELECT version FROM shelf_versions WHERE pipeline = :pipeline;

-- name: draw_versions
-- The row stays locked until the transaction ends: the order of versions is the order of commits.
INSERT INTO shelf_versions (pipeline, version, changed_at) VALUES (:pipeline, :count, tidings_now())
ON CONFLICT (pipeline) DO UPDATE SET version = shelf_versions.version + excluded.version, changed_at = excluded.changed_at
RETURNING version;
