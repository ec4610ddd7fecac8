-- What PostgreSQL does differently in items.sql, and why.

-- part: claim
-- ANY(ARRAY(...)) is evaluated once, so a claim never leases more than it asked for; a join may.
UPDATE items SET lease_owner = :owner, lease_token = lease_token + 1,
    lease_until = (SELECT tidings_now()) + :lease_ms, attempts = attempts + 1
WHERE id = ANY(ARRAY(

-- part: lease
-- Several workers claim at once, and each skips the rows that another is about to lease.
    FOR UPDATE SKIP LOCKED))
RETURNING id, pipeline, kind, key, state, lane, lease_token AS token, attempts, revision, priority,
    (SELECT tidings_now()) AS granted_at, lease_until, failing_since, lost_leases, state_since,
    coalesce((SELECT body FROM bodies WHERE item = items.id AND bodies.revision = items.revision),
        'null'::bytea) AS body,
    (SELECT body FROM bodies WHERE item = items.id AND bodies.revision = items.accepted_revision
        AND items.accepted_revision <> items.revision) AS accepted

-- part: locked
-- Other transactions may write at the same time: the row is locked until this one ends.
FOR UPDATE

-- name: look_up_items
-- Workers settle while the merge runs: the rows are locked, in the order of their ids as everywhere.
-- rows: number bigint, pipeline text, kind text, key text
SELECT given.number, items.id, items.fingerprint, items.revision, items.accepted_revision, items.waiting_revision,
    items.lease_until, items.intake_id, items.state, items.standing
FROM given CROSS JOIN items
WHERE items.pipeline = given.pipeline AND items.kind = given.kind AND items.key = given.key
ORDER BY items.id FOR UPDATE OF items;

-- name: draw_item_ids
-- Ids come from a sequence here, and other processes draw at the same time: each id is drawn by itself.
SELECT nextval(pg_get_serial_sequence('items', 'id')) AS id FROM generate_series(1, :count);
