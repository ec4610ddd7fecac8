-- Rebuilding the shelf from the items.

-- name: bodies_to_show
-- The accepted bodies of a pipeline, or the first ones of items that were not accepted yet (revision 0).
SELECT items.id, items.kind, items.key, coalesce(items.accepted_revision, 0) AS revision, bodies.body, items.state
FROM items JOIN bodies ON bodies.item = items.id AND bodies.revision = coalesce(items.accepted_revision, items.revision)
WHERE items.pipeline = :pipeline AND items.id > :after ORDER BY items.id LIMIT :limit;
