-- The stream of changes: what stands on the shelf and what was withdrawn, by version.

-- name: stream
SELECT value AS stream FROM meta WHERE name = 'stream';

-- name: stream_end
-- The newest version of a pipeline, and up to which one withdrawals are forgotten.
SELECT version, horizon FROM shelf_versions WHERE pipeline = :pipeline;

-- name: newest_versions
SELECT pipeline, version FROM shelf_versions;

-- name: changes
SELECT version, pipeline, key, collection, sort, value, revision, item, written_at FROM (
    SELECT * FROM (
        SELECT version, pipeline, key, collection, sort, value, revision, id AS item, written_at FROM shelf
        WHERE pipeline = :pipeline AND version > :after ORDER BY version LIMIT :limit) AS standing
    UNION ALL
    SELECT * FROM (
        SELECT version, pipeline, key, collection, 0 AS sort, CAST(NULL AS bytea) AS value, 0 AS revision, item,
            withdrawn_at AS written_at
        FROM withdrawals
        WHERE pipeline = :pipeline AND version > :after ORDER BY version LIMIT :limit) AS withdrawn) AS changed
ORDER BY version LIMIT :limit;

-- name: put_withdrawals
-- rows: pipeline text, version bigint, item bigint, key text, collection text
INSERT INTO withdrawals (pipeline, version, item, key, collection, withdrawn_at)
SELECT pipeline, version, item, key, collection, (SELECT tidings_now()) FROM given;

-- name: forget_withdrawals
DELETE FROM withdrawals WHERE withdrawn_at < tidings_now() - :keep_ms RETURNING pipeline, version;

-- name: raise_horizon
-- rows: pipeline text, version bigint
UPDATE shelf_versions SET horizon = given.version FROM given
WHERE shelf_versions.pipeline = given.pipeline AND shelf_versions.horizon < given.version;

-- name: accepted_copies
-- rows: item bigint
SELECT items.id, items.kind, items.key, items.accepted_revision AS revision, bodies.body
FROM given CROSS JOIN items CROSS JOIN bodies
WHERE items.id = given.item AND bodies.item = items.id AND bodies.revision = items.accepted_revision;

-- name: parents_of
-- rows: ref text
SELECT links.child, links.parent FROM given CROSS JOIN links
WHERE links.pipeline = :pipeline AND links.child = given.ref AND links.relation = :relation;
