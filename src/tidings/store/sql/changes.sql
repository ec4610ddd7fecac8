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
-- The parent of each, as in threads: the word that counts most.
-- rows: ref text
SELECT given.ref AS child, (
    SELECT l.parent FROM links l WHERE l.pipeline = :pipeline AND l.child = given.ref AND l.relation = :relation
    ORDER BY l.said_by, l.parent LIMIT 1) AS parent
FROM given;

-- name: children_of
-- What was stated to stand below these, by whichever side.
-- rows: ref text
SELECT links.child, links.parent FROM given CROSS JOIN links
WHERE links.pipeline = :pipeline AND links.parent = given.ref AND links.relation = :relation;

-- name: accepted_items
-- rows: kind text, key text
SELECT items.id, items.kind, items.key FROM given CROSS JOIN items
WHERE items.pipeline = :pipeline AND items.kind = given.kind AND items.key = given.key
    AND items.accepted_revision IS NOT NULL;

-- name: reply_counts
-- How many stand right below each, as in threads.
-- rows: ref text
SELECT given.ref, COUNT(*) AS replies FROM given CROSS JOIN links l
WHERE l.pipeline = :pipeline AND l.parent = given.ref AND l.relation = :relation
    AND NOT EXISTS (
        SELECT 1 FROM links b
        WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
            AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))
GROUP BY given.ref;

-- name: unnamed_children
-- Those of some items that name a parent which does not name them.
-- rows: ref text
SELECT l.child, l.parent FROM given CROSS JOIN links l
WHERE l.pipeline = :pipeline AND l.child = given.ref AND l.relation = :relation AND l.parent <> '' AND l.said_by <> 0
    AND NOT EXISTS (
        SELECT 1 FROM links b
        WHERE b.pipeline = l.pipeline AND b.child = l.child AND b.relation = l.relation AND b.said_by = 0);
