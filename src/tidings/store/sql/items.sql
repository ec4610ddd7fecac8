-- Items and their bodies: born, claimed, settled, swept, moved by hand.
-- A statement that opens with "-- rows:" reads its batch from the table `given`, which has those columns. A large batch
-- arrives in several pieces, so such a statement treats each row by itself.
-- (SELECT tidings_now()) asks the clock once a statement; without SELECT, PostgreSQL asks it for every row.

-- name: now
-- The database's clock, UTC milliseconds.
SELECT tidings_now() AS now;

-- name: known_fingerprints
-- rows: number bigint, pipeline text, kind text, key text
SELECT given.number, items.fingerprint FROM given CROSS JOIN items
WHERE items.pipeline = given.pipeline AND items.kind = given.kind AND items.key = given.key;

-- name: look_up_items
-- What the merge must know of a key.
-- rows: number bigint, pipeline text, kind text, key text
SELECT given.number, items.id, items.fingerprint, items.revision, items.accepted_revision, items.waiting_revision,
    items.lease_until, items.intake_id, items.state, items.standing
FROM given CROSS JOIN items
WHERE items.pipeline = given.pipeline AND items.kind = given.kind AND items.key = given.key;

-- name: insert_items
-- Findings become items, due at once where their workflow begins by itself.
-- rows: number bigint, pipeline text, kind text, key text, fingerprint text, state text, standing text, lane text,
--      priority bigint, intake_id bigint
INSERT INTO items (pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, intake_id,
    created_at, changed_at, state_since)
SELECT pipeline, kind, key, fingerprint, state, standing, lane, priority,
    CASE WHEN lane IS NOT NULL THEN (SELECT tidings_now()) END, intake_id,
    (SELECT tidings_now()), (SELECT tidings_now()), (SELECT tidings_now())
FROM given WHERE true ORDER BY number
ON CONFLICT (pipeline, kind, key) DO NOTHING
RETURNING id, kind, key;

-- name: draw_item_ids
-- The last of :count ids, from where SQLite remembers it; the others are those before.
UPDATE sqlite_sequence SET seq = seq + :count WHERE name = 'items' RETURNING seq AS id;

-- name: settle_reserved
-- Items whose first attempt was made before they were born enter where it left them. One that exists by now, because an
-- earlier stretch of the log brought the same key, is left alone and not returned.
-- rows: id bigint, pipeline text, kind text, key text, fingerprint text, state text, standing text, lane text,
--      priority bigint, due_at bigint, delay_ms bigint, attempts bigint, token bigint, accepted_revision bigint,
--      intake_id bigint, error text, cause text, failing_since bigint
INSERT INTO items (id, pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, attempts, lease_token,
    accepted_revision, intake_id, last_error, cause, failing_since, created_at, changed_at, state_since)
SELECT id, pipeline, kind, key, fingerprint, state, standing, lane, priority,
    coalesce(due_at, (SELECT tidings_now()) + delay_ms), attempts, token, accepted_revision, intake_id, error, cause,
    failing_since, (SELECT tidings_now()), (SELECT tidings_now()), (SELECT tidings_now())
FROM given WHERE true
ON CONFLICT (pipeline, kind, key) DO NOTHING
RETURNING id;

-- name: settle_leased
-- Close attempts whose leases still hold; everything else is written only for the ids this returns.
-- rows: id bigint, token bigint, state_before text, state text, standing text, lane text, attempts bigint,
--      due_at bigint, delay_ms bigint, error text, cause text, failing_since bigint, accepts bigint, advanced bigint
UPDATE items SET state = given.state, standing = given.standing, lane = given.lane, attempts = given.attempts,
    due_at = coalesce(given.due_at, (SELECT tidings_now()) + given.delay_ms),
    lease_owner = NULL, lease_until = NULL,
    lost_leases = CASE WHEN given.advanced = 1 THEN 0 ELSE lost_leases END,
    last_error = given.error, cause = given.cause, failing_since = given.failing_since,
    accepted_revision = CASE WHEN given.accepts = 1 THEN revision ELSE accepted_revision END,
    changed_at = (SELECT tidings_now()),
    state_since = CASE WHEN given.state = given.state_before THEN state_since ELSE (SELECT tidings_now()) END
FROM given
WHERE items.id = given.id AND items.lease_token = given.token AND items.lease_until > (SELECT tidings_now())
    AND items.state = given.state_before
RETURNING items.id, waiting_revision, fingerprint, priority, intake_id, revision, accepted_revision;

-- name: settle_by_hand
-- Move items as operators saw them. The token goes up, so that a worker which has leased one writes nothing any more.
-- rows: id bigint, token bigint, state_before text, state text, standing text, lane text, attempts bigint,
--      due_at bigint, delay_ms bigint, error text, cause text, failing_since bigint, accepts bigint, advanced bigint
UPDATE items SET state = given.state, standing = given.standing, lane = given.lane, attempts = given.attempts,
    due_at = coalesce(given.due_at, (SELECT tidings_now()) + given.delay_ms),
    lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1, lost_leases = 0,
    last_error = given.error, cause = given.cause, failing_since = given.failing_since,
    accepted_revision = CASE WHEN given.accepts = 1 THEN revision ELSE accepted_revision END,
    changed_at = (SELECT tidings_now()), state_since = (SELECT tidings_now())
FROM given
WHERE items.id = given.id AND items.lease_token = given.token AND items.state = given.state_before
RETURNING items.id, waiting_revision, fingerprint, priority, intake_id, revision, accepted_revision;

-- name: restart_items
-- A changed finding, an awaited item or an operator begins items again. The token goes up: a lease that is out is lost.
-- rows: id bigint, fingerprint text, revision bigint, state text, standing text, lane text, priority bigint,
--      intake_id bigint
UPDATE items SET fingerprint = given.fingerprint, revision = given.revision, waiting_revision = NULL,
    state = given.state, standing = given.standing, lane = given.lane, priority = given.priority,
    due_at = CASE WHEN given.lane IS NOT NULL THEN (SELECT tidings_now()) END,
    attempts = 0, lost_leases = 0, lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1,
    intake_id = given.intake_id, last_error = NULL, cause = NULL, failing_since = NULL,
    changed_at = (SELECT tidings_now()), state_since = (SELECT tidings_now())
FROM given WHERE items.id = given.id;

-- name: set_waiting_revisions
-- The items are leased, or their copies take turns: the newer revision waits.
-- rows: id bigint, fingerprint text, waiting_revision bigint, intake_id bigint
UPDATE items SET fingerprint = given.fingerprint, waiting_revision = given.waiting_revision, intake_id = given.intake_id
FROM given WHERE items.id = given.id;

-- name: touch_intake_ids
-- rows: id bigint, intake_id bigint
UPDATE items SET intake_id = given.intake_id FROM given WHERE items.id = given.id;

-- part: new_bodies
INSERT INTO bodies (item, revision, body) SELECT item, revision, body FROM given WHERE true

-- name: insert_bodies
-- Of new items. Looking for rows that cannot be there costs PostgreSQL as much as writing them.
-- rows: item bigint, revision bigint, body bytea
/* new_bodies */;

-- name: put_bodies
-- rows: item bigint, revision bigint, body bytea
/* new_bodies */
ON CONFLICT (item, revision) DO UPDATE SET body = excluded.body;

-- name: drop_other_bodies
-- Keep what readers see, what is worked on and what waits.
-- rows: item bigint
DELETE FROM bodies WHERE item IN (SELECT item FROM given)
    AND revision < (SELECT items.revision FROM items WHERE items.id = bodies.item)
    AND revision IS DISTINCT FROM (SELECT accepted_revision FROM items WHERE items.id = bodies.item);

-- name: next_waiting
-- The oldest revision that waits, where copies take turns.
-- rows: item bigint
SELECT given.item, min(bodies.revision) AS revision
FROM given CROSS JOIN items JOIN bodies ON bodies.item = items.id AND bodies.revision > items.revision
WHERE items.id = given.item GROUP BY given.item;

-- name: read_bodies
-- rows: item bigint, revision bigint
SELECT bodies.item, bodies.revision, bodies.body FROM given CROSS JOIN bodies
WHERE bodies.item = given.item AND bodies.revision = given.revision;

-- part: claim
-- How a claim begins: choose what is due, once.
WITH due AS MATERIALIZED (

-- part: lease
-- How it ends: lease what was chosen, and read it.
)
UPDATE items SET lease_owner = :owner, lease_token = lease_token + 1, lease_until = tidings_now() + :lease_ms,
    attempts = attempts + 1
FROM due WHERE items.id = due.id
RETURNING items.id, pipeline, kind, key, state, lane, lease_token AS token, attempts, revision, priority,
    tidings_now() AS granted_at, lease_until, failing_since, lost_leases, state_since,
    coalesce((SELECT body FROM bodies WHERE item = items.id AND bodies.revision = items.revision),
        CAST('null' AS BLOB)) AS body,
    (SELECT body FROM bodies WHERE item = items.id AND bodies.revision = items.accepted_revision
        AND items.accepted_revision <> items.revision) AS accepted

-- name: claim_items
-- Lease up to :limit due items of a lane and priority, newest first.
/* claim */
    SELECT id FROM items
    WHERE pipeline = :pipeline AND lane = :lane AND priority = :priority
        AND due_at <= (SELECT tidings_now()) AND due_at IS NOT NULL AND lease_until IS NULL AND lost_leases <= :lost_max
    ORDER BY due_at DESC, id DESC
    LIMIT :limit
/* lease */;

-- name: claim_oldest_items
-- The oldest's share of a claim.
/* claim */
    SELECT id FROM items
    WHERE pipeline = :pipeline AND lane = :lane AND priority = :priority
        AND due_at <= (SELECT tidings_now()) AND due_at IS NOT NULL AND lease_until IS NULL AND lost_leases <= :lost_max
    ORDER BY due_at, id
    LIMIT :limit
/* lease */;

-- name: claim_in_order
-- Lease up to :limit due items of a lane by age alone.
/* claim */
    SELECT id FROM items
    WHERE pipeline = :pipeline AND lane = :lane
        AND due_at <= (SELECT tidings_now()) AND due_at IS NOT NULL AND lease_until IS NULL
    ORDER BY due_at, id
    LIMIT :limit
/* lease */;

-- name: claim_suspect
-- Lease items whose worker vanished, oldest first.
/* claim */
    SELECT id FROM items
    WHERE pipeline = :pipeline AND lane = :lane
        AND due_at <= (SELECT tidings_now()) AND due_at IS NOT NULL AND lease_until IS NULL AND lost_leases > 0
    ORDER BY due_at, id
    LIMIT :limit
/* lease */;

-- name: renew_leases
-- Prolong leases that still hold.
-- rows: id bigint, token bigint
UPDATE items SET lease_until = (SELECT tidings_now()) + :lease_ms FROM given
WHERE items.id = given.id AND items.lease_token = given.token AND items.lease_until > (SELECT tidings_now())
RETURNING items.id;

-- name: regain_leases
-- Prolong leases that may have run out. Each sweep and each claim bumps the token: one with the old token is still its
-- holder's.
-- rows: id bigint, token bigint
UPDATE items SET lease_until = (SELECT tidings_now()) + :lease_ms FROM given
WHERE items.id = given.id AND items.lease_token = given.token AND items.lease_until IS NOT NULL
RETURNING items.id;

-- name: excuse_losses
-- A sweep bumped the token and counted a loss that was none: the holder lived, but could not reach the store. Since then
-- the item was claimed once more at most. For a delivery the count tells that it may have been sent, which stays true.
-- rows: id bigint, token bigint
UPDATE items SET lost_leases = lost_leases - 1 FROM given
WHERE items.id = given.id AND items.lease_token BETWEEN given.token + 1 AND given.token + 2 AND lost_leases > 0
    AND standing = 'open' AND kind <> 'delivery';

-- name: release_leases
-- Give leases back unused, with their attempts.
-- rows: id bigint, token bigint
UPDATE items SET lease_owner = NULL, lease_until = NULL, attempts = attempts - 1 FROM given
WHERE items.id = given.id AND items.lease_token = given.token AND lease_until IS NOT NULL
RETURNING items.id, state, attempts, lease_token AS token;

-- name: expired_leases
SELECT id, pipeline, kind, key, state, lease_token AS token, lost_leases, attempts FROM items
WHERE lease_until IS NOT NULL AND lease_until <= tidings_now() ORDER BY lease_until LIMIT :limit;

-- name: sweep_leases
-- Return expired leases to the queue in their old place, by the token seen.
-- rows: id bigint, token bigint
UPDATE items SET lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1, lost_leases = lost_leases + 1
FROM given
WHERE items.id = given.id AND items.lease_token = given.token AND lease_until <= (SELECT tidings_now())
RETURNING items.id, waiting_revision, fingerprint, priority, intake_id, revision, accepted_revision;

-- name: bury_items
-- rows: id bigint, token bigint, state text, cause text, error text
UPDATE items SET standing = 'dead', lane = NULL, due_at = NULL, cause = given.cause, last_error = given.error,
    lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1, changed_at = (SELECT tidings_now())
FROM given WHERE items.id = given.id AND items.lease_token = given.token AND items.state = given.state
RETURNING items.id;

-- name: end_leases
-- All holders are dead: their leases end now, and are swept as usual.
UPDATE items SET lease_until = tidings_now() WHERE lease_until > tidings_now();

-- name: next_due
-- When the next item of a lane becomes due; each priority is one look into the index.
SELECT min(due_at) - tidings_now() AS wait_ms FROM (
    SELECT (SELECT min(due_at) FROM items WHERE pipeline = :pipeline AND lane = :lane AND priority = 0
        AND due_at IS NOT NULL AND lease_until IS NULL) AS due_at
    UNION ALL SELECT (SELECT min(due_at) FROM items WHERE pipeline = :pipeline AND lane = :lane AND priority = 1
        AND due_at IS NOT NULL AND lease_until IS NULL)
    UNION ALL SELECT (SELECT min(due_at) FROM items WHERE pipeline = :pipeline AND lane = :lane AND priority = 2
        AND due_at IS NOT NULL AND lease_until IS NULL)
) AS firsts;

-- part: item
-- The columns of `model.item.Item`.
SELECT id, pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, attempts, lost_leases, lease_owner,
    lease_token, lease_until, revision, accepted_revision, waiting_revision, intake_id, last_error, cause, created_at,
    changed_at, state_since, failing_since
FROM items

-- part: locked
-- Nothing: on SQLite a writing transaction already excludes every other.

-- name: item
/* item */ WHERE id = :id;

-- name: locked_item
-- The item as it is now, held until the transaction ends.
/* item */ WHERE id = :id /* locked */;

-- name: find_item
/* item */ WHERE pipeline = :pipeline AND kind = :kind AND key = :key;

-- name: items_after
-- Where a pipeline's items stand, in the order of their ids.
SELECT id, kind, key, state FROM items WHERE pipeline = :pipeline AND id > :after ORDER BY id LIMIT :limit;

-- name: dead_items
-- What an operator may bring back: dead letters; by their cause also parked items; by their id also rejected ones.
SELECT id, pipeline, kind, state, lease_token AS token FROM items
WHERE (standing = 'dead' OR (standing = 'parked' AND (CAST(:cause AS TEXT) IS NOT NULL OR CAST(:id AS BIGINT) IS NOT NULL))
        OR (standing = 'rejected' AND CAST(:id AS BIGINT) IS NOT NULL))
    AND (id = :id OR CAST(:id AS BIGINT) IS NULL) AND (pipeline = :pipeline OR CAST(:pipeline AS TEXT) IS NULL)
    AND (cause = :cause OR CAST(:cause AS TEXT) IS NULL);

-- name: revive_items
-- Due at once, from the state they stand in; their wait there starts over.
-- rows: id bigint, token bigint, lane text
UPDATE items SET standing = 'open', lane = given.lane, due_at = (SELECT tidings_now()), attempts = 0, lost_leases = 0,
    last_error = NULL, cause = NULL, failing_since = NULL, lease_token = lease_token + 1, lease_owner = NULL,
    lease_until = NULL, changed_at = (SELECT tidings_now()), state_since = (SELECT tidings_now())
FROM given
WHERE items.id = given.id AND items.lease_token = given.token AND standing IN ('dead', 'parked', 'rejected')
RETURNING items.id, state, lease_token AS token;

-- name: deliveries_before
-- Deliveries of one channel leave in the order they were born; the two small indexes hold only what is under way.
SELECT
    (SELECT count(*) FROM items
     WHERE pipeline = :pipeline AND lane = 'notify' AND due_at IS NOT NULL AND lease_until IS NULL AND standing = 'open'
         AND kind = 'delivery' AND key >= :prefix AND key < :prefix_end AND id < :id)
    + (SELECT count(*) FROM items
       WHERE lease_until IS NOT NULL AND pipeline = :pipeline AND lane = 'notify' AND standing = 'open'
           AND kind = 'delivery' AND key >= :prefix AND key < :prefix_end AND id < :id) AS waiting;

-- name: open_digest
-- The oldest digest of a route that is not sealed yet: its members are not fixed.
SELECT key FROM items
WHERE pipeline = :pipeline AND kind = 'delivery' AND key >= :prefix AND key < :prefix_end
    AND state IN ('queued', 'resting') AND standing IN ('open', 'parked')
ORDER BY key LIMIT 1;

-- name: gathered_deliveries
-- The deliveries that joined a digest and still wait for it, oldest first.
SELECT items.key, bodies.body FROM links CROSS JOIN items
JOIN bodies ON bodies.item = items.id AND bodies.revision = items.revision
WHERE links.pipeline = :pipeline AND links.child = :digest AND links.relation = 'announces'
    AND items.pipeline = links.pipeline AND items.kind = 'delivery'
    AND items.key = substr(links.parent, length('delivery:') + 1) AND items.state = 'gathered' AND items.standing = 'open'
ORDER BY items.id LIMIT :limit;

-- name: wake_deliveries
-- What waited for a channel goes on when the channel does.
UPDATE items SET due_at = tidings_now()
WHERE kind = 'delivery' AND lane = 'notify' AND standing = 'open' AND lease_until IS NULL AND due_at > tidings_now()
    AND key >= :prefix AND key < :prefix_end;
