-- Statements both databases share. A dialect's file overrides one by name and says why.

-- name: now
-- The database's clock, UTC milliseconds.
SELECT tidings_now();

-- name: insert_finding
-- Append one finding.
-- params: pipeline kind key fingerprint priority payload source
INSERT INTO intake (pipeline, kind, key, fingerprint, priority, payload, source, appended_at)
VALUES (:pipeline, :kind, :key, :fingerprint, :priority, :payload, :source, tidings_now());

-- name: waiting_findings
-- What waits of a key behind the checkpoint, oldest first. Asking for the newest alone takes SQLite seven times as long.
-- params: number pipeline kind checkpoint key
SELECT :number, fingerprint FROM intake
WHERE pipeline = :pipeline AND kind = :kind AND key = :key AND id > :checkpoint;

-- name: known_fingerprints
-- params: number pipeline kind key
SELECT :number, fingerprint FROM items WHERE pipeline = :pipeline AND kind = :kind AND key = :key;

-- name: checkpoint
-- The last merged finding, unless it is missing from a log that still holds older ones.
SELECT checkpoint FROM checkpoints c WHERE pipeline = :pipeline AND (
    EXISTS (SELECT 1 FROM intake WHERE pipeline = c.pipeline AND id = c.checkpoint)
    OR NOT EXISTS (SELECT 1 FROM intake WHERE pipeline = c.pipeline AND id < c.checkpoint));

-- name: move_checkpoint
INSERT INTO checkpoints (pipeline, checkpoint, moved_at) VALUES (:pipeline, :checkpoint, tidings_now())
ON CONFLICT (pipeline) DO UPDATE SET checkpoint = excluded.checkpoint, moved_at = excluded.moved_at;

-- name: aheads
-- Who runs ahead of the checkpoint: up to where, and for how long yet.
SELECT id, through, until - tidings_now() FROM aheads WHERE pipeline = :pipeline ORDER BY through;

-- name: insert_ahead
INSERT INTO aheads (pipeline, through, until) VALUES (:pipeline, :through, tidings_now() + :lease_ms)
RETURNING id, tidings_now();

-- name: drop_ahead
DELETE FROM aheads WHERE id = :id;

-- name: drop_aheads
-- Whoever runs ahead loses the right to.
DELETE FROM aheads WHERE pipeline = :pipeline;

-- name: urgent_finding
-- Whether anything more urgent than bulk waits in the log.
SELECT 1 FROM intake WHERE pipeline = :pipeline AND id > :after AND priority < 2 LIMIT 1;

-- name: save_cursor
-- A page's cursor, in the transaction that appends the page.
INSERT INTO cursors (source, cursor, moved_at) VALUES (:source, :cursor, tidings_now())
ON CONFLICT (source) DO UPDATE SET cursor = excluded.cursor, moved_at = excluded.moved_at;

-- name: complete_run
-- The mark moves with the last page of a completed run.
INSERT INTO cursors (source, mark, completed_runs, moved_at) VALUES (:source, :mark, 1, tidings_now())
ON CONFLICT (source) DO UPDATE
SET mark = coalesce(excluded.mark, cursors.mark), completed_runs = cursors.completed_runs + 1, moved_at = excluded.moved_at;

-- name: read_cursor
SELECT cursor, mark, completed_runs FROM cursors WHERE source = :source;

-- name: unmerged_findings
-- The next findings behind the checkpoint, in log order.
SELECT id, kind, key, fingerprint, priority, payload FROM intake
WHERE pipeline = :pipeline AND id > :checkpoint ORDER BY id LIMIT :limit;

-- name: size_of_findings
-- What the next findings would take in memory.
SELECT coalesce(sum(length(payload)), 0) FROM (
    SELECT payload FROM intake WHERE pipeline = :pipeline AND id > :checkpoint ORDER BY id LIMIT :limit) AS next_ones;

-- name: count_unmerged
SELECT count(*) FROM intake WHERE pipeline = :pipeline AND id > :checkpoint;

-- name: count_log
SELECT count(*) FROM intake WHERE pipeline = :pipeline;

-- name: trim_log
-- Never passes the checkpoint, and takes a finding only together with all before it, although the clock may have jumped.
DELETE FROM intake WHERE pipeline = :pipeline AND id <= :checkpoint AND id < coalesce(
    (SELECT id FROM intake WHERE pipeline = :pipeline AND appended_at >= tidings_now() - :keep_ms ORDER BY id LIMIT 1),
    :checkpoint + 1);

-- name: look_up_item
-- What the merge must know of a key.
-- params: number pipeline kind key
SELECT :number, id, fingerprint, revision, accepted_revision, waiting_revision, lease_until, intake_id, state, standing
FROM items WHERE pipeline = :pipeline AND kind = :kind AND key = :key;

-- name: any_tombstone
-- Most pipelines have none, and need not look for any by name.
SELECT 1 FROM tombstones WHERE pipeline = :pipeline LIMIT 1;

-- name: look_up_tombstone
-- params: number pipeline kind key
SELECT :number, fingerprint, intake_id FROM tombstones WHERE pipeline = :pipeline AND kind = :kind AND key = :key;

-- name: insert_item
-- A finding becomes an item, due at once where its workflow begins by itself.
-- params: pipeline kind key fingerprint state standing lane priority intake_id
INSERT INTO items (pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, intake_id,
    created_at, changed_at, state_since)
VALUES (:pipeline, :kind, :key, :fingerprint, :state, :standing, :lane, :priority,
    CASE WHEN :lane IS NULL THEN NULL ELSE tidings_now() END, :intake_id, tidings_now(), tidings_now(), tidings_now())
ON CONFLICT (pipeline, kind, key) DO NOTHING
RETURNING id, kind, key;

-- name: insert_run_item
-- An item that was run before it was born: it enters where that left it.
-- params: id pipeline kind key fingerprint state standing lane priority due_at delay_ms attempts token accepted_revision intake_id error cause failing_since
INSERT INTO items (id, pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, attempts, lease_token,
    accepted_revision, intake_id, last_error, cause, failing_since, created_at, changed_at, state_since)
VALUES (:id, :pipeline, :kind, :key, :fingerprint, :state, :standing, :lane, :priority,
    coalesce(:due_at, tidings_now() + :delay_ms), :attempts, :token, :accepted_revision, :intake_id, :error, :cause,
    :failing_since,
    tidings_now(), tidings_now(), tidings_now())
ON CONFLICT (pipeline, kind, key) DO NOTHING
RETURNING id;

-- name: restart_item
-- A changed finding, or an operator, begins an item again: nobody's lease survives it.
-- params: id fingerprint revision state standing lane priority intake_id
UPDATE items SET fingerprint = :fingerprint, revision = :revision, waiting_revision = NULL, state = :state,
    standing = :standing, lane = :lane, priority = :priority,
    due_at = CASE WHEN :lane IS NULL THEN NULL ELSE tidings_now() END,
    attempts = 0, lost_leases = 0, lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1,
    intake_id = :intake_id, last_error = NULL, cause = NULL, failing_since = NULL,
    changed_at = tidings_now(), state_since = tidings_now()
WHERE id = :id;

-- name: set_waiting_revision
-- The item is leased: the newer revision waits for the settle.
-- params: id fingerprint waiting_revision intake_id
UPDATE items SET fingerprint = :fingerprint, waiting_revision = :waiting_revision, intake_id = :intake_id
WHERE id = :id;

-- name: touch_intake_id
-- params: id intake_id
UPDATE items SET intake_id = :intake_id WHERE id = :id;

-- name: put_body
-- params: item revision body
INSERT INTO bodies (item, revision, body) VALUES (:item, :revision, :body)
ON CONFLICT (item, revision) DO UPDATE SET body = excluded.body;

-- name: drop_other_bodies
-- Keep what readers see, what is worked on and what waits.
-- params: item
DELETE FROM bodies WHERE item = :item AND revision < (SELECT revision FROM items WHERE id = :item)
    AND revision IS NOT (SELECT accepted_revision FROM items WHERE id = :item);

-- name: next_waiting
-- The first of the revisions that wait.
-- params: item
SELECT i.id, min(b.revision) FROM items i JOIN bodies b ON b.item = i.id AND b.revision > i.revision
WHERE i.id = :item GROUP BY i.id;

-- name: insert_journal
-- params: item kind token attempt from_state to_state ended error actor steps
INSERT INTO journal (item, at, kind, token, attempt, from_state, to_state, ended, error, actor, steps)
VALUES (:item, tidings_now(), :kind, :token, :attempt, :from_state, :to_state, :ended, :error, :actor, :steps);

-- name: life
SELECT id, item, at, kind, token, attempt, from_state, to_state, ended, error, actor, steps
FROM journal WHERE item = :item ORDER BY id LIMIT :limit;

-- part: lease
-- How a claim ends: lease what is due, and read it.
UPDATE items
SET lease_owner = :owner, lease_token = lease_token + 1, lease_until = tidings_now() + :lease_ms, attempts = attempts + 1
FROM due
WHERE items.id = due.id
RETURNING items.id, kind, key, state, lease_token, attempts, revision, priority, tidings_now(), lease_until,
    failing_since, lost_leases, state_since, accepted_revision,
    (SELECT body FROM bodies WHERE item = items.id AND bodies.revision = items.revision),
    (SELECT body FROM bodies WHERE item = items.id AND bodies.revision = items.accepted_revision
        AND items.accepted_revision <> items.revision);

-- name: claim_items
-- Lease up to :limit due items of a lane and priority, newest first.
WITH due AS MATERIALIZED (
    SELECT id FROM items
    WHERE pipeline = :pipeline AND lane = :lane AND priority = :priority
        AND due_at <= tidings_now() AND due_at IS NOT NULL AND lease_until IS NULL AND lost_leases <= :lost_max
    ORDER BY due_at DESC, id DESC
    LIMIT :limit
)
/* lease */;

-- name: claim_oldest_items
-- The oldest's share of a claim.
WITH due AS MATERIALIZED (
    SELECT id FROM items
    WHERE pipeline = :pipeline AND lane = :lane AND priority = :priority
        AND due_at <= tidings_now() AND due_at IS NOT NULL AND lease_until IS NULL AND lost_leases <= :lost_max
    ORDER BY due_at, id
    LIMIT :limit
)
/* lease */;

-- name: claim_in_order
-- Lease up to :limit due items of a lane by age alone.
WITH due AS MATERIALIZED (
    SELECT id FROM items
    WHERE pipeline = :pipeline AND lane = :lane
        AND due_at <= tidings_now() AND due_at IS NOT NULL AND lease_until IS NULL
    ORDER BY due_at, id
    LIMIT :limit
)
/* lease */;

-- name: claim_suspect
-- Lease what a worker vanished with, a few at a time.
WITH due AS MATERIALIZED (
    SELECT id FROM items
    WHERE pipeline = :pipeline AND lane = :lane
        AND due_at <= tidings_now() AND due_at IS NOT NULL AND lease_until IS NULL AND lost_leases > 0
    ORDER BY due_at, id
    LIMIT :limit
)
/* lease */;

-- name: read_bodies
-- params: item revision
SELECT item, revision, body FROM bodies WHERE item = :item AND revision = :revision;

-- name: heartbeat
-- params: id token lease_ms
UPDATE items SET lease_until = tidings_now() + :lease_ms
WHERE id = :id AND lease_token = :token AND lease_until > tidings_now()
RETURNING id;

-- name: regain
-- Each sweep and claim of an item bumps the token: a lease with the old one is still its holder's.
-- params: id token lease_ms
UPDATE items SET lease_until = tidings_now() + :lease_ms
WHERE id = :id AND lease_token = :token AND lease_until IS NOT NULL
RETURNING id;

-- name: excuse_loss
-- A sweep bumped the token and counted the loss; since then the item was claimed once more at most, and not settled well.
-- For a delivery the count tells that it may have been sent, which stays true.
-- params: id token
UPDATE items SET lost_leases = lost_leases - 1
WHERE id = :id AND lease_token BETWEEN :token + 1 AND :token + 2 AND lost_leases > 0 AND standing = 'open'
    AND kind <> 'delivery';

-- name: release
-- Give a lease back unused, with its attempt.
-- params: id token
UPDATE items SET lease_owner = NULL, lease_until = NULL, attempts = attempts - 1
WHERE id = :id AND lease_token = :token AND lease_until IS NOT NULL
RETURNING id, state, attempts, lease_token;

-- name: settle_item
-- Close one attempt if its lease still holds; everything else is written only for the ids this returns.
-- params: id token state_before state standing lane attempts due_at delay_ms error cause failing_since accepts advanced
UPDATE items SET state = :state, standing = :standing, lane = :lane, attempts = :attempts,
    due_at = CASE WHEN :due_at IS NOT NULL THEN :due_at WHEN :delay_ms IS NOT NULL THEN tidings_now() + :delay_ms END,
    lease_owner = NULL, lease_until = NULL,
    lost_leases = CASE WHEN :advanced = 1 THEN 0 ELSE lost_leases END,
    last_error = :error, cause = :cause, failing_since = :failing_since,
    accepted_revision = CASE WHEN :accepts = 1 THEN revision ELSE accepted_revision END,
    changed_at = tidings_now(),
    state_since = CASE WHEN :state = :state_before THEN state_since ELSE tidings_now() END
WHERE id = :id AND lease_token = :token AND lease_until > tidings_now() AND state = :state_before
RETURNING id, waiting_revision, fingerprint, priority, intake_id, revision, accepted_revision;

-- name: waiting_revisions
-- Few wait at any time: those whose item was leased when they came.
SELECT id, waiting_revision, fingerprint, priority, intake_id, revision, accepted_revision FROM items
WHERE waiting_revision IS NOT NULL AND id BETWEEN :first AND :last;

-- name: replace_body
-- params: item revision body
UPDATE bodies SET body = :body WHERE item = :item AND revision = :revision;

-- name: closed_tokens
-- Which of these leases were closed: read back after a COMMIT whose reply was lost.
-- params: item token
SELECT item FROM journal WHERE item = :item AND token = :token AND kind = 'attempt';

-- name: expired_leases
SELECT id, pipeline, kind, key, state, lease_token, lost_leases, attempts FROM items
WHERE lease_until IS NOT NULL AND lease_until <= tidings_now() ORDER BY lease_until LIMIT :limit;

-- name: sweep_lease
-- Return an expired lease to the queue in its old place, by the token seen.
-- params: id token
UPDATE items SET lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1, lost_leases = lost_leases + 1
WHERE id = :id AND lease_token = :token AND lease_until <= tidings_now()
RETURNING id, waiting_revision, fingerprint, priority, intake_id, revision, accepted_revision;

-- name: end_leases
-- All holders are dead: their leases end now, and are swept as usual.
UPDATE items SET lease_until = tidings_now() WHERE lease_until > tidings_now();

-- name: end_turns
UPDATE schedules SET lease_owner = NULL, lease_until = NULL WHERE lease_until IS NOT NULL;

-- name: end_places
-- The place inside a channel; its rate stays.
UPDATE limiters SET held_until = tidings_now() WHERE held_until > tidings_now();

-- name: end_aheads
UPDATE aheads SET until = tidings_now() WHERE until > tidings_now();

-- name: bury_item
-- params: id token state cause error
UPDATE items SET standing = 'dead', lane = NULL, due_at = NULL, cause = :cause, last_error = :error,
    lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1, changed_at = tidings_now()
WHERE id = :id AND lease_token = :token AND state = :state
RETURNING id;

-- name: next_due
-- When the next item of a lane becomes due; each priority is one look into the index.
SELECT min(due_at) - tidings_now() FROM (
    SELECT (SELECT min(due_at) FROM items WHERE pipeline = :pipeline AND lane = :lane AND priority = 0
        AND due_at IS NOT NULL AND lease_until IS NULL) AS due_at
    UNION ALL SELECT (SELECT min(due_at) FROM items WHERE pipeline = :pipeline AND lane = :lane AND priority = 1
        AND due_at IS NOT NULL AND lease_until IS NULL)
    UNION ALL SELECT (SELECT min(due_at) FROM items WHERE pipeline = :pipeline AND lane = :lane AND priority = 2
        AND due_at IS NOT NULL AND lease_until IS NULL)
) AS firsts;

-- name: item
SELECT id, pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, attempts, lost_leases, lease_owner,
    lease_token, lease_until, revision, accepted_revision, waiting_revision, last_error, cause, created_at, changed_at,
    state_since, failing_since
FROM items WHERE id = :id;

-- name: item_for_update
-- The item as it is now, held until the transaction ends.
SELECT id, pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, attempts, lost_leases, lease_owner,
    lease_token, lease_until, revision, accepted_revision, waiting_revision, last_error, cause, created_at, changed_at,
    state_since, failing_since
FROM items WHERE id = :id;

-- name: find_item
SELECT id, pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, attempts, lost_leases, lease_owner,
    lease_token, lease_until, revision, accepted_revision, waiting_revision, last_error, cause, created_at, changed_at,
    state_since, failing_since
FROM items WHERE pipeline = :pipeline AND kind = :kind AND key = :key;

-- name: items_after
-- Where a pipeline's items stand, in the order of their ids.
SELECT id, kind, key, state FROM items WHERE pipeline = :pipeline AND id > :after ORDER BY id LIMIT :limit;

-- name: move_by_hand
-- A manual transition, guarded by what was seen; it ends every lease.
-- params: id token state_before state standing lane due_at error cause accepts failing_since
UPDATE items SET state = :state, standing = :standing, lane = :lane, due_at = :due_at, attempts = 0, lost_leases = 0,
    lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1, last_error = :error, cause = :cause,
    accepted_revision = CASE WHEN :accepts = 1 THEN revision ELSE accepted_revision END,
    failing_since = :failing_since, changed_at = tidings_now(), state_since = tidings_now()
WHERE id = :id AND lease_token = :token AND state = :state_before
RETURNING id, waiting_revision, fingerprint, priority, intake_id, revision, accepted_revision;

-- name: revive_item
-- Due at once, from the state it stands in; its wait there begins anew.
-- params: id token lane
UPDATE items SET standing = 'open', lane = :lane, due_at = tidings_now(), attempts = 0, lost_leases = 0, last_error = NULL,
    cause = NULL, failing_since = NULL, lease_token = lease_token + 1, lease_owner = NULL, lease_until = NULL,
    changed_at = tidings_now(), state_since = tidings_now()
WHERE id = :id AND lease_token = :token AND standing IN ('dead', 'parked', 'rejected')
RETURNING id, state, lease_token;

-- name: delete_item
-- Guarded by the token seen: whatever gives an item a new life bumps it.
-- params: id token
DELETE FROM items WHERE id = :id AND lease_token = :token AND lease_until IS NULL RETURNING id, intake_id;

-- name: delete_bodies
-- params: id
DELETE FROM bodies WHERE item = :id;

-- name: delete_journal
-- params: id
DELETE FROM journal WHERE item = :id;

-- name: insert_tombstone
-- params: pipeline kind key fingerprint intake_id forget_ms
INSERT INTO tombstones (pipeline, kind, key, fingerprint, intake_id, buried_at, forget_at)
VALUES (:pipeline, :kind, :key, :fingerprint, :intake_id, tidings_now(), tidings_now() + :forget_ms)
ON CONFLICT (pipeline, kind, key) DO UPDATE
SET fingerprint = excluded.fingerprint, intake_id = excluded.intake_id, buried_at = excluded.buried_at,
    forget_at = excluded.forget_at;

-- name: drop_tombstone
-- Its item is born again.
-- params: pipeline kind key
DELETE FROM tombstones WHERE pipeline = :pipeline AND kind = :kind AND key = :key;

-- name: tombstones
-- The youngest first; of one pipeline or key where that is asked.
SELECT pipeline, kind, key, fingerprint, buried_at, forget_at FROM tombstones
WHERE (pipeline = :pipeline OR CAST(:pipeline AS TEXT) IS NULL) AND (key = :key OR CAST(:key AS TEXT) IS NULL)
ORDER BY buried_at DESC, pipeline, kind, key LIMIT :limit;

-- name: lift_tombstones
DELETE FROM tombstones
WHERE pipeline = :pipeline AND (kind = :kind OR CAST(:kind AS TEXT) IS NULL)
    AND (key = :key OR CAST(:key AS TEXT) IS NULL);

-- name: forget_tombstones
DELETE FROM tombstones WHERE forget_at <= tidings_now();

-- name: insert_link
-- params: pipeline relation child said_by parent position
INSERT INTO links (pipeline, relation, child, said_by, parent, position)
VALUES (:pipeline, :relation, :child, :said_by, :parent, :position)
ON CONFLICT (pipeline, child, relation, said_by, parent) DO UPDATE SET position = excluded.position;

-- name: unsay_as_child
-- params: pipeline ref
DELETE FROM links WHERE pipeline = :pipeline AND child = :ref AND said_by <> 0;

-- name: unsay_as_parent
-- params: pipeline ref
DELETE FROM links WHERE pipeline = :pipeline AND parent = :ref AND said_by = 0;

-- name: any_awaiting
-- Hardly anything awaits anything, and nobody needs to look for it by name.
SELECT 1 FROM links WHERE pipeline = :pipeline AND relation = 'awaits' LIMIT 1;

-- name: awaiting
-- params: number pipeline key
SELECT :number, child FROM links WHERE pipeline = :pipeline AND parent = :key AND relation = 'awaits';

-- name: all_awaiting
SELECT pipeline, parent, child FROM links
WHERE relation = 'awaits' AND (pipeline, parent, child) > (:pipeline, :parent, :child)
ORDER BY pipeline, parent, child LIMIT :limit;

-- name: last_cause
-- Why an item's last attempt was made.
SELECT kind, actor FROM journal WHERE item = :item AND kind <> 'attempt' ORDER BY id DESC LIMIT 1;

-- name: children
-- Effective children: stated by the parent, or by the child where no parent claims it.
SELECT child, position FROM links l
WHERE pipeline = :pipeline AND relation = :relation AND parent = :parent
    AND NOT EXISTS (
        SELECT 1 FROM links b
        WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
            AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))
ORDER BY position IS NULL, position, length(child), child
LIMIT :limit;

-- name: parents
SELECT parent FROM links WHERE pipeline = :pipeline AND relation = :relation AND child = :child
ORDER BY said_by, parent;

-- name: relatives
-- Every relation an item takes part in.
SELECT relation, child, parent FROM links WHERE pipeline = :pipeline AND child = :ref AND said_by >= 0
UNION SELECT relation, child, parent FROM links WHERE pipeline = :pipeline AND parent = :ref
LIMIT 500;

-- name: thread
-- Everything below a root, breadth first, each place once.
WITH RECURSIVE below (ref, parent, position, depth) AS (
    SELECT l.child, l.parent, l.position, 1 FROM links l
    WHERE l.pipeline = :pipeline AND l.relation = :relation AND l.parent = :root
        AND NOT EXISTS (SELECT 1 FROM links b
            WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
                AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))
    UNION
    SELECT l.child, l.parent, l.position, below.depth + 1 FROM below
    JOIN links l ON l.pipeline = :pipeline AND l.relation = :relation AND l.parent = below.ref
    WHERE below.depth < 200
        AND NOT EXISTS (SELECT 1 FROM links b
            WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
                AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))
)
SELECT ref, parent, position, depth FROM below
ORDER BY depth, parent, position IS NULL, position, length(ref), ref LIMIT :limit;

-- name: put_card
-- A card is written only if it changed and is not older than what is there.
-- params: id pipeline key collection sort value revision expires_at
-- shared: version
INSERT INTO shelf (id, pipeline, key, collection, sort, value, revision, version, written_at, expires_at)
VALUES (:id, :pipeline, :key, :collection, :sort, :value, :revision, :version, tidings_now(), :expires_at)
ON CONFLICT (id) DO UPDATE
SET key = excluded.key, collection = excluded.collection, sort = excluded.sort, value = excluded.value,
    revision = excluded.revision, version = excluded.version, written_at = excluded.written_at, expires_at = excluded.expires_at
WHERE excluded.revision >= shelf.revision
    AND (shelf.value <> excluded.value OR shelf.sort <> excluded.sort OR shelf.key <> excluded.key)
RETURNING id;

-- name: put_entry
-- An entry that belongs to no item; an unchanged value is no write.
-- params: pipeline key collection sort value version expires_at
INSERT INTO shelf (id, pipeline, key, collection, sort, value, revision, version, written_at, expires_at)
VALUES ((SELECT least_id FROM (SELECT coalesce(min(id), 0) AS least_id FROM shelf WHERE id < 0) AS lowest) - 1,
    :pipeline, :key, :collection, :sort, :value, 1, :version, tidings_now(), :expires_at)
ON CONFLICT (pipeline, key) DO UPDATE
SET collection = excluded.collection, sort = excluded.sort, value = excluded.value, revision = shelf.revision + 1,
    version = excluded.version, written_at = excluded.written_at, expires_at = excluded.expires_at
WHERE shelf.value <> excluded.value OR shelf.sort <> excluded.sort
RETURNING id;

-- name: drop_card
-- params: id
DELETE FROM shelf WHERE id = :id RETURNING id, pipeline;

-- name: drop_entry
DELETE FROM shelf WHERE pipeline = :pipeline AND key = :key;

-- name: drop_expired_entries
DELETE FROM shelf WHERE expires_at IS NOT NULL AND expires_at <= tidings_now() RETURNING id, pipeline;

-- name: shelf_entry
SELECT key, value, version, revision, sort, written_at, id FROM shelf
WHERE pipeline = :pipeline AND key = :key AND (expires_at IS NULL OR expires_at > tidings_now());

-- name: shelf_entries
-- params: pipeline key
SELECT key, value, version, revision, sort, written_at, id FROM shelf
WHERE pipeline = :pipeline AND key = :key AND (expires_at IS NULL OR expires_at > tidings_now());

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

-- name: shelf_count
SELECT count(*) FROM shelf WHERE pipeline = :pipeline AND collection = :collection;

-- name: shelf_version
SELECT version FROM shelf_versions WHERE pipeline = :pipeline;

-- name: bump_shelf_version
INSERT INTO shelf_versions (pipeline, version, changed_at) VALUES (:pipeline, 1, tidings_now())
ON CONFLICT (pipeline) DO UPDATE SET version = shelf_versions.version + 1, changed_at = excluded.changed_at
RETURNING version;

-- name: drop_document
-- params: id
DELETE FROM documents WHERE id = :id RETURNING id;

-- name: count_budget
-- Count without a limit.
INSERT INTO budgets (name, day, spent) VALUES (:name, :day, :amount)
ON CONFLICT (name, day) DO UPDATE SET spent = budgets.spent + excluded.spent;

-- name: read_budget
SELECT spent, reserved, limited_to FROM budgets WHERE name = :name AND day = :day;

-- name: reserved_budget
-- The last day of a name on which so much is set aside.
SELECT day, spent, reserved, limited_to FROM budgets WHERE name = :name AND reserved >= :reserved ORDER BY day DESC LIMIT 1;

-- name: write_budget
INSERT INTO budgets (name, day, spent, reserved, limited_to) VALUES (:name, :day, :spent, :reserved, :limited_to)
ON CONFLICT (name, day) DO UPDATE
SET spent = excluded.spent, reserved = excluded.reserved, limited_to = excluded.limited_to;

-- name: budgets_of_day
SELECT name, day, spent, reserved, limited_to FROM budgets WHERE day = :day ORDER BY name;

-- name: drop_old_budgets
DELETE FROM budgets WHERE day < :day;

-- name: read_limiter
SELECT entries, token, held_until, not_before FROM limiters WHERE name = :name;

-- name: write_limiter
INSERT INTO limiters (name, entries, token, held_until, not_before) VALUES (:name, :entries, :token, :held_until, :not_before)
ON CONFLICT (name) DO UPDATE
SET entries = excluded.entries, token = excluded.token, held_until = excluded.held_until, not_before = excluded.not_before;

-- name: cache_get
SELECT value FROM caches WHERE name = :name AND key = :key AND expires_at > tidings_now();

-- name: cache_put
INSERT INTO caches (name, key, value, expires_at) VALUES (:name, :key, :value, tidings_now() + :ttl_ms)
ON CONFLICT (name, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at;

-- name: drop_expired_caches
DELETE FROM caches WHERE expires_at <= tidings_now();

-- name: declare_schedule
INSERT INTO schedules (source, pipeline, next_at) VALUES (:source, :pipeline, tidings_now())
ON CONFLICT (source) DO NOTHING;

-- name: claim_schedule
-- One owner asks a source, across machines.
UPDATE schedules SET lease_owner = :owner, lease_token = lease_token + 1, lease_until = tidings_now() + :lease_ms
WHERE source = :source AND (next_at <= tidings_now() OR :force = 1)
    AND (lease_until IS NULL OR lease_until <= tidings_now())
    AND NOT EXISTS (SELECT 1 FROM pauses WHERE part = 'source:' || schedules.source OR part = 'pipeline:' || schedules.pipeline)
RETURNING lease_token, failures;

-- name: beat_schedule
-- Taking a turn bumps its token: one that ran out and was not taken is still its holder's.
UPDATE schedules SET lease_until = tidings_now() + :lease_ms
WHERE source = :source AND lease_token = :token AND lease_until IS NOT NULL RETURNING source;

-- name: schedule_holding
-- Since when a source is being asked, until when its turn lasts, and what time it is.
SELECT (SELECT max(started_at) FROM runs WHERE source = schedules.source AND ended_at IS NULL), lease_until, tidings_now()
FROM schedules WHERE source = :source AND lease_until > tidings_now();

-- name: close_schedule
UPDATE schedules SET lease_owner = NULL, lease_until = NULL, next_at = tidings_now() + :delay_ms, failures = :failures,
    last_error = :error,
    last_success_at = CASE WHEN :error IS NULL THEN tidings_now() ELSE last_success_at END,
    last_new_at = CASE WHEN :has_new = 1 THEN tidings_now() ELSE last_new_at END
WHERE source = :source AND lease_token = :token RETURNING source;

-- name: give_back_schedule
-- A stopped run leaves its source due, and no better or worse than before.
UPDATE schedules SET lease_owner = NULL, lease_until = NULL, next_at = tidings_now()
WHERE source = :source AND lease_token = :token;

-- name: check_now
UPDATE schedules SET next_at = tidings_now() WHERE source = :source RETURNING source;

-- name: schedules
SELECT source, pipeline, next_at, lease_until, failures, last_success_at, last_new_at, last_error FROM schedules ORDER BY source;

-- name: next_schedule
SELECT min(next_at) - tidings_now() FROM schedules;

-- name: open_run
INSERT INTO runs (source, started_at) VALUES (:source, tidings_now()) RETURNING id;

-- name: close_run
UPDATE runs SET ended_at = tidings_now(), found = :found, new = :new, changed = :changed, unchanged = :unchanged,
    rejected = :rejected, trimmed = :trimmed, pages = :pages, credits = :credits, error = :error, note = :note
WHERE id = :id;

-- name: last_runs
SELECT source, started_at, ended_at, found, new, changed, unchanged, rejected, trimmed, pages, credits, error, note
FROM runs WHERE source = :source ORDER BY id DESC LIMIT :limit;

-- name: found_since
-- What a source brought, run by run.
SELECT started_at, new FROM runs WHERE source = :source AND started_at >= :since ORDER BY id;

-- name: drop_old_runs
DELETE FROM runs WHERE started_at < tidings_now() - :keep_ms;

-- name: pause
INSERT INTO pauses (part, reason, since) VALUES (:part, :reason, tidings_now())
ON CONFLICT (part) DO UPDATE SET reason = excluded.reason;

-- name: resume
DELETE FROM pauses WHERE part = :part;

-- name: wake_deliveries
-- What waited for a channel goes on when the channel does.
UPDATE items SET due_at = tidings_now()
WHERE kind = 'delivery' AND lane = 'notify' AND standing = 'open' AND lease_until IS NULL AND due_at > tidings_now()
    AND key >= :prefix AND key < :prefix_end;

-- name: pauses
SELECT part, reason, since FROM pauses ORDER BY part;

-- name: insert_token
INSERT INTO tokens (hash, name, scope, created_at) VALUES (:hash, :name, :scope, tidings_now());

-- name: token
SELECT scope FROM tokens WHERE hash = :hash AND revoked_at IS NULL;

-- name: tokens
SELECT name, scope, created_at, last_used_at, revoked_at FROM tokens ORDER BY created_at;

-- name: revoke_token
UPDATE tokens SET revoked_at = tidings_now() WHERE name = :name AND revoked_at IS NULL RETURNING name;

-- name: use_token
-- Note that a token was used, unless that was noted a moment ago: several servers share it.
UPDATE tokens SET last_used_at = tidings_now()
WHERE hash = :hash AND (last_used_at IS NULL OR last_used_at <= tidings_now() - :every_ms);

-- name: firing_alerts
SELECT name, subject, message, help, value, threshold, fired_at, cleared_at, id, notified_at FROM alerts
WHERE cleared_at IS NULL ORDER BY fired_at;

-- name: recent_alerts
SELECT name, subject, message, help, value, threshold, fired_at, cleared_at, id, notified_at FROM alerts ORDER BY id DESC LIMIT 200;

-- name: fire_alert
-- Once per episode.
INSERT INTO alerts (name, subject, message, help, value, threshold, fired_at)
VALUES (:name, :subject, :message, :help, :value, :threshold, tidings_now())
ON CONFLICT (name, subject) WHERE cleared_at IS NULL DO UPDATE SET message = excluded.message, value = excluded.value
RETURNING id;

-- name: clear_alert
UPDATE alerts SET cleared_at = tidings_now() WHERE id = :id;

-- name: take_telling
-- One process tells people of an episode.
UPDATE alerts SET notified_at = tidings_now() WHERE id = :id AND notified_at IS NULL RETURNING id;

-- name: give_telling_back
UPDATE alerts SET notified_at = NULL WHERE id = :id;

-- name: put_sample
-- params: series at value
INSERT INTO samples (series, at, value) VALUES (:series, :at, :value)
ON CONFLICT (series, at) DO UPDATE SET value = excluded.value;

-- name: samples
SELECT at, value FROM samples WHERE series = :series AND at >= :since ORDER BY at;

-- name: drop_old_samples
DELETE FROM samples WHERE at < tidings_now() - :keep_ms;

-- name: count_items
SELECT pipeline, kind, state, standing, count(*), count(lease_until),
    sum(CASE WHEN due_at <= tidings_now() AND lease_until IS NULL THEN 1 ELSE 0 END),
    max(changed_at)
FROM items GROUP BY pipeline, kind, state, standing;

-- name: oldest_due
SELECT tidings_now() - min(due_at) FROM items
WHERE pipeline = :pipeline AND due_at IS NOT NULL AND lease_until IS NULL AND due_at <= tidings_now();

-- name: dead_letters
SELECT pipeline, kind, state, coalesce(cause, 'unknown'), count(*), min(changed_at), max(changed_at), min(id) FROM items
WHERE standing = 'dead' GROUP BY pipeline, kind, state, coalesce(cause, 'unknown') ORDER BY max(changed_at) DESC;

-- name: trim_journal
-- The last row of an item is never trimmed: it tells its state.
DELETE FROM journal WHERE id IN (
    SELECT j.id FROM journal j WHERE j.at < tidings_now() - :keep_ms
        AND EXISTS (SELECT 1 FROM journal n WHERE n.item = j.item AND n.id > j.id) ORDER BY j.id LIMIT :limit);

-- name: events_after
SELECT j.id, j.at, i.pipeline, i.kind, i.key, j.ended, j.from_state, j.to_state, j.item
FROM journal j JOIN items i ON i.id = j.item WHERE j.id > :after ORDER BY j.id LIMIT :limit;

-- name: last_event
SELECT j.id, j.at, i.pipeline, i.kind, i.key, j.ended, j.from_state, j.to_state, j.item
FROM journal j JOIN items i ON i.id = j.item ORDER BY j.id DESC LIMIT 1;

-- name: counted_since
-- What workers counted under a prefix since a time, by minute.
SELECT at, sum(value) FROM samples WHERE series >= :prefix AND series < :prefix_end AND at >= :since
GROUP BY at ORDER BY at;

-- name: deliveries_ahead
-- Deliveries of one channel leave in the order they were born; the two small indexes hold only what is under way.
SELECT
    (SELECT count(*) FROM items
     WHERE pipeline = :pipeline AND lane = 'notify' AND due_at IS NOT NULL AND lease_until IS NULL AND standing = 'open'
         AND kind = 'delivery' AND key >= :prefix AND key < :prefix_end AND id < :id)
    + (SELECT count(*) FROM items
       WHERE lease_until IS NOT NULL AND pipeline = :pipeline AND lane = 'notify' AND standing = 'open'
           AND kind = 'delivery' AND key >= :prefix AND key < :prefix_end AND id < :id);
