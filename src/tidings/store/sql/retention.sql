-- What retention removes, and how everything of an item is deleted.

-- part: no_open_delivery
-- OFFSET keeps both look-ups look-ups: PostgreSQL would join all links with all deliveries.
NOT EXISTS (
    SELECT 1 FROM links
    WHERE links.pipeline = items.pipeline AND links.relation = 'announces' AND links.parent = items.kind || ':' || items.key
        AND EXISTS (
            SELECT 1 FROM items delivery
            WHERE delivery.pipeline = links.pipeline AND delivery.kind = 'delivery'
                AND delivery.key = substr(links.child, length('delivery:') + 1)
                AND delivery.standing IN ('open', 'parked', 'dead') LIMIT 1 OFFSET 0)
    LIMIT 1 OFFSET 0)

-- part: leaving
items.id, items.pipeline, items.kind, items.key, items.fingerprint, items.lease_token AS token, items.state,
items.standing, items.last_error AS error

-- part: at_rest
-- Nothing will move the item by itself any more, and no delivery of it is open.
items.lease_until IS NULL AND items.standing IN ('done', 'rejected', 'waits') AND /* no_open_delivery */

-- part: removable_dead
-- A dead letter no delivery of which is open.
items.standing = 'dead' AND items.lease_until IS NULL AND /* no_open_delivery */

-- part: hides_nothing
-- Of a dead letter: readers see no earlier, accepted copy that they would lose with it.
(items.accepted_revision IS NULL OR items.accepted_revision = items.revision)

-- name: items_past_age
SELECT /* leaving */ FROM items
WHERE items.pipeline = :pipeline AND items.kind = :kind AND /* at_rest */ AND items.changed_at < tidings_now() - :age_ms
ORDER BY items.id LIMIT :limit;

-- name: items_beyond_newest
-- All but the newest :newest of a kind.
SELECT /* leaving */ FROM items
WHERE items.pipeline = :pipeline AND items.kind = :kind AND /* at_rest */ AND items.id < (
    SELECT min(id) FROM (
        SELECT id FROM items WHERE pipeline = :pipeline AND kind = :kind ORDER BY id DESC LIMIT :newest) AS kept)
ORDER BY items.id LIMIT :limit;

-- part: unless_locked
-- Nothing: on SQLite a writing transaction already excludes every other.

-- name: leaving_among
-- Those of some items that nobody works on, whatever their standing. Kinds are told apart by the caller: asked for one,
-- both databases read all items of the kind instead of these.
-- rows: item bigint
SELECT /* leaving */ FROM given CROSS JOIN items
WHERE items.id = given.item AND items.lease_until IS NULL AND /* no_open_delivery */
ORDER BY items.id /* unless_locked */;

-- name: cardless_items
-- Items of which nothing was ever shown, or everything was withdrawn.
SELECT /* leaving */ FROM items
WHERE items.pipeline = :pipeline AND items.kind = :kind AND items.lease_until IS NULL
    AND items.changed_at < tidings_now() - :age_ms
    AND NOT EXISTS (SELECT 1 FROM shelf WHERE shelf.id = items.id) AND /* no_open_delivery */
ORDER BY items.id LIMIT :limit;

-- name: shown_in_collection
SELECT id, key, sort FROM shelf WHERE pipeline = :pipeline AND collection = :collection;

-- name: old_dead_letters
SELECT /* leaving */ FROM items
WHERE /* removable_dead */ AND /* hides_nothing */ AND items.changed_at < tidings_now() - :age_ms
ORDER BY items.id LIMIT :limit;

-- name: chosen_dead_letters
-- One by its number, or those of a pipeline or cause, or all. One that hides an accepted copy goes only by its number.
SELECT /* leaving */ FROM items
WHERE /* removable_dead */
    AND (items.id = :id OR (CAST(:id AS BIGINT) IS NULL AND /* hides_nothing */))
    AND (CAST(:pipeline AS TEXT) IS NULL OR items.pipeline = :pipeline)
    AND (CAST(:cause AS TEXT) IS NULL OR items.cause = :cause);

-- name: delete_items
-- Guarded by the token that was seen: whatever gives an item a new life raises it.
-- rows: item bigint, token bigint
DELETE FROM items WHERE (id, lease_token) IN (SELECT item, token FROM given) AND lease_until IS NULL
RETURNING id, intake_id;

-- name: delete_bodies
-- rows: item bigint
DELETE FROM bodies WHERE item IN (SELECT item FROM given);

-- name: delete_journal
-- rows: item bigint
DELETE FROM journal WHERE item IN (SELECT item FROM given);

-- name: trim_journal
-- The last row of an item is never trimmed: it tells its state.
DELETE FROM journal WHERE id IN (
    SELECT id FROM journal old
    WHERE at < tidings_now() - :keep_ms
        AND EXISTS (SELECT 1 FROM journal later WHERE later.item = old.item AND later.id > old.id)
    ORDER BY id LIMIT :limit);
