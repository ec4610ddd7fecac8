-- What operators see: counts, and lists of items.

-- name: count_items
SELECT pipeline, kind, state, standing, count(*) AS items, count(lease_until) AS leased,
    sum(CASE WHEN due_at <= tidings_now() AND lease_until IS NULL THEN 1 ELSE 0 END) AS due,
    max(changed_at) AS changed_at, min(state_since) AS since
FROM items GROUP BY pipeline, kind, state, standing;

-- name: oldest_due
SELECT tidings_now() - min(due_at) AS age_ms FROM items
WHERE pipeline = :pipeline AND due_at IS NOT NULL AND lease_until IS NULL AND due_at <= tidings_now();

-- name: dead_letters
-- Dead letters by cause, the largest group first, each with its oldest item.
SELECT pipeline, kind, state, groups.cause, groups.count, groups.first_at, groups.last_at, items.id AS sample_id,
    items.key AS sample_key
FROM (
    SELECT coalesce(cause, 'unknown') AS cause, count(*) AS count, min(changed_at) AS first_at,
        max(changed_at) AS last_at, min(id) AS sample
    FROM items WHERE standing = 'dead' GROUP BY pipeline, kind, state, coalesce(cause, 'unknown')
) AS groups JOIN items ON items.id = groups.sample
ORDER BY groups.count DESC, groups.last_at DESC;

-- part: listed
SELECT items.id, pipeline, kind, key, state, standing, attempts, due_at, lease_until, last_error, cause, items.revision,
    created_at, changed_at, body
FROM items LEFT JOIN bodies ON bodies.item = items.id AND bodies.revision = items.revision
WHERE items.id < :before AND (pipeline = :pipeline OR CAST(:pipeline AS TEXT) IS NULL)
    AND (kind = :kind OR CAST(:kind AS TEXT) IS NULL) AND (state = :state OR CAST(:state AS TEXT) IS NULL)

-- name: stored_copies
-- Accepted bodies of a pipeline's items found since a time, page by page.
SELECT items.id, items.kind, items.key, items.created_at AS found_at, bodies.body
FROM items JOIN bodies ON bodies.item = items.id AND bodies.revision = items.accepted_revision
WHERE items.pipeline = :pipeline AND items.kind <> 'delivery' AND items.created_at >= :since AND items.id > :after
ORDER BY items.id LIMIT :limit;

-- name: list_items
-- From the newest down until enough are found. Filters that may be absent keep both planners from gathering a whole
-- pipeline and sorting it.
/* listed */
    AND (standing = :standing OR CAST(:standing AS TEXT) IS NULL)
ORDER BY items.id DESC LIMIT :limit;

-- name: list_stuck_items
-- What waits for a person is rare: a small index holds nothing else.
/* listed */
    AND standing = :standing AND (standing = 'dead' OR standing = 'parked' OR standing = 'rejected')
ORDER BY items.id DESC LIMIT :limit;

-- name: count_channel_deliveries
-- What waits for a channel; a delivery's key begins with the name of its channel.
SELECT count(*) AS waiting FROM items
WHERE kind = 'delivery' AND standing IN ('open', 'parked') AND key >= :prefix AND key < :prefix_end;
