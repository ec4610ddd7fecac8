-- Rebuilding the shelf from the items, and items from the log.

-- name: items_are_lost
-- Whether a pipeline has no item although its log still holds findings that were merged, and that nobody removed.
SELECT 1 AS found FROM checkpoints WHERE pipeline = :pipeline
    AND EXISTS (
        SELECT 1 FROM intake WHERE intake.pipeline = checkpoints.pipeline AND intake.id <= checkpoints.checkpoint
            AND NOT EXISTS (
                SELECT 1 FROM tombstones t
                WHERE t.pipeline = intake.pipeline AND t.kind = intake.kind AND t.key = intake.key))
    AND NOT EXISTS (SELECT 1 FROM items WHERE items.pipeline = checkpoints.pipeline);

-- name: lost_cards
-- Cards whose items are gone.
SELECT id FROM shelf WHERE pipeline = :pipeline AND id > 0 AND NOT EXISTS (SELECT 1 FROM items WHERE items.id = shelf.id);

-- name: drop_lost_bodies
DELETE FROM bodies WHERE NOT EXISTS (SELECT 1 FROM items WHERE items.id = bodies.item);

-- name: drop_lost_journal
-- The last line of an item that has a tombstone stays with it.
DELETE FROM journal WHERE kind <> 'retired' AND NOT EXISTS (SELECT 1 FROM items WHERE items.id = journal.item);

-- name: bodies_to_show
-- The accepted bodies of a pipeline, or the first ones of items that were not accepted yet (revision 0).
SELECT items.id, items.kind, items.key, coalesce(items.accepted_revision, 0) AS revision, bodies.body, items.state
FROM items JOIN bodies ON bodies.item = items.id AND bodies.revision = coalesce(items.accepted_revision, items.revision)
WHERE items.pipeline = :pipeline AND items.id > :after ORDER BY items.id LIMIT :limit;
