-- What PostgreSQL does differently, and why: batches travel as arrays in one statement; claims skip locked rows.

-- name: insert_finding
-- params: pipeline kind key fingerprint priority payload source
INSERT INTO intake (pipeline, kind, key, fingerprint, priority, payload, source, appended_at)
SELECT p, k, y, f, r, b, s, (SELECT tidings_now())
FROM unnest(:pipeline::text[], :kind::text[], :key::text[], :fingerprint::text[], :priority::bigint[], :payload::bytea[], :source::text[])
    WITH ORDINALITY AS v (p, k, y, f, r, b, s, n) ORDER BY n;

-- name: waiting_findings
-- params: number pipeline kind checkpoint key
SELECT v.n, i.fingerprint
FROM unnest(:number::bigint[], :pipeline::text[], :kind::text[], :checkpoint::bigint[], :key::text[]) AS v (n, p, k, c, y)
JOIN intake i ON i.pipeline = v.p AND i.kind = v.k AND i.key = v.y AND i.id > v.c
ORDER BY i.id;

-- name: known_fingerprints
-- params: number pipeline kind key
SELECT v.n, i.fingerprint FROM unnest(:number::bigint[], :pipeline::text[], :kind::text[], :key::text[]) AS v (n, p, k, y)
JOIN items i ON i.pipeline = v.p AND i.kind = v.k AND i.key = v.y;

-- name: look_up_item
-- params: number pipeline kind key
SELECT v.n, id, fingerprint, revision, accepted_revision, waiting_revision, lease_until, intake_id, state, standing
FROM unnest(:number::bigint[], :pipeline::text[], :kind::text[], :key::text[]) AS v (n, p, k, y)
JOIN items ON pipeline = v.p AND kind = v.k AND key = v.y
ORDER BY id FOR UPDATE OF items;

-- name: look_up_tombstone
-- params: number pipeline kind key
SELECT v.n, fingerprint, intake_id
FROM unnest(:number::bigint[], :pipeline::text[], :kind::text[], :key::text[]) AS v (n, p, k, y)
JOIN tombstones ON pipeline = v.p AND kind = v.k AND key = v.y;

-- name: insert_item
-- params: pipeline kind key fingerprint state standing lane priority intake_id
INSERT INTO items (pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, intake_id,
    created_at, changed_at, state_since)
SELECT p, k, y, f, s, g, l, r, CASE WHEN l IS NULL THEN NULL ELSE c.now END, i, c.now, c.now, c.now
FROM (SELECT tidings_now() AS now) c,
    unnest(:pipeline::text[], :kind::text[], :key::text[], :fingerprint::text[], :state::text[], :standing::text[],
        :lane::text[], :priority::bigint[], :intake_id::bigint[]) WITH ORDINALITY AS v (p, k, y, f, s, g, l, r, i, n)
ORDER BY n
ON CONFLICT (pipeline, kind, key) DO NOTHING
RETURNING id, kind, key;

-- name: draw_item_ids
SELECT nextval(pg_get_serial_sequence('items', 'id')) FROM generate_series(1, :count);

-- name: insert_run_item
-- params: id pipeline kind key fingerprint state standing lane priority due_at delay_ms attempts token accepted_revision intake_id error cause failing_since
INSERT INTO items (id, pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, attempts, lease_token,
    accepted_revision, intake_id, last_error, cause, failing_since, created_at, changed_at, state_since)
SELECT id, p, k, y, f, s, g, l, r, CASE WHEN u IS NOT NULL THEN u WHEN d IS NOT NULL THEN c.now + d END,
    a, t, v, i, e, w, z, c.now, c.now, c.now
FROM (SELECT tidings_now() AS now) c,
    unnest(:id::bigint[], :pipeline::text[], :kind::text[], :key::text[], :fingerprint::text[], :state::text[],
        :standing::text[], :lane::text[], :priority::bigint[], :due_at::bigint[], :delay_ms::bigint[], :attempts::bigint[],
        :token::bigint[], :accepted_revision::bigint[], :intake_id::bigint[], :error::text[], :cause::text[],
        :failing_since::bigint[]) AS n (id, p, k, y, f, s, g, l, r, u, d, a, t, v, i, e, w, z)
ON CONFLICT (pipeline, kind, key) DO NOTHING
RETURNING id;

-- name: restart_item
-- params: id fingerprint revision state standing lane priority intake_id
UPDATE items SET fingerprint = v.f, revision = v.v, waiting_revision = NULL, state = v.s,
    standing = v.g, lane = v.l, priority = v.r, due_at = CASE WHEN v.l IS NULL THEN NULL ELSE tidings_now() END,
    attempts = 0, lost_leases = 0, lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1,
    intake_id = v.i, last_error = NULL, cause = NULL, failing_since = NULL,
    changed_at = tidings_now(), state_since = tidings_now()
FROM unnest(:id::bigint[], :fingerprint::text[], :revision::bigint[], :state::text[], :standing::text[], :lane::text[],
    :priority::bigint[], :intake_id::bigint[]) AS v (id, f, v, s, g, l, r, i)
WHERE items.id = v.id;

-- name: set_waiting_revision
-- params: id fingerprint waiting_revision intake_id
UPDATE items SET fingerprint = v.f, waiting_revision = v.w, intake_id = v.i
FROM unnest(:id::bigint[], :fingerprint::text[], :waiting_revision::bigint[], :intake_id::bigint[]) AS v (id, f, w, i)
WHERE items.id = v.id;

-- name: touch_intake_id
-- params: id intake_id
UPDATE items SET intake_id = v.i FROM unnest(:id::bigint[], :intake_id::bigint[]) AS v (id, i) WHERE items.id = v.id;

-- name: put_body
-- params: item revision body
INSERT INTO bodies (item, revision, body)
SELECT * FROM unnest(:item::bigint[], :revision::bigint[], :body::bytea[])
ON CONFLICT (item, revision) DO UPDATE SET body = excluded.body;

-- name: drop_other_bodies
-- params: item
DELETE FROM bodies b USING items i WHERE b.item = ANY(:item::bigint[]) AND i.id = b.item
    AND b.revision < i.revision AND b.revision IS DISTINCT FROM i.accepted_revision;

-- name: next_waiting
-- params: item
SELECT i.id, min(b.revision) FROM items i JOIN bodies b ON b.item = i.id AND b.revision > i.revision
WHERE i.id = ANY(:item::bigint[]) GROUP BY i.id;

-- name: insert_journal
-- params: item kind token attempt from_state to_state ended error actor steps
INSERT INTO journal (item, at, kind, token, attempt, from_state, to_state, ended, error, actor, steps)
SELECT i, c.now, k, t, a, f, o, e, r, w, s
FROM (SELECT tidings_now() AS now) c,
    unnest(:item::bigint[], :kind::text[], :token::bigint[], :attempt::bigint[], :from_state::text[], :to_state::text[],
        :ended::text[], :error::text[], :actor::text[], :steps::bytea[]) AS v (i, k, t, a, f, o, e, r, w, s);

-- part: claim
WITH claimed AS (
    UPDATE items
    SET lease_owner = :owner, lease_token = lease_token + 1, lease_until = (SELECT tidings_now()) + :lease_ms, attempts = attempts + 1
    WHERE id = ANY(ARRAY(

-- part: lease
        FOR UPDATE SKIP LOCKED))
    RETURNING id, kind, key, state, lease_token, attempts, revision, priority, (SELECT tidings_now()) AS now, lease_until,
        failing_since, lost_leases, state_since, accepted_revision
)
SELECT claimed.*, b.body, a.body FROM claimed
LEFT JOIN bodies b ON b.item = claimed.id AND b.revision = claimed.revision
LEFT JOIN bodies a ON a.item = claimed.id AND a.revision = claimed.accepted_revision
    AND claimed.accepted_revision <> claimed.revision;

-- name: claim_items
-- One statement leases and reads; ANY(ARRAY(...)) is evaluated once, so it never leases more than asked.
/* claim */
        SELECT id FROM items
        WHERE pipeline = :pipeline AND lane = :lane AND priority = :priority
            AND due_at <= (SELECT tidings_now()) AND due_at IS NOT NULL AND lease_until IS NULL AND lost_leases <= :lost_max
        ORDER BY due_at DESC, id DESC
        LIMIT :limit
/* lease */;

-- name: claim_oldest_items
/* claim */
        SELECT id FROM items
        WHERE pipeline = :pipeline AND lane = :lane AND priority = :priority
            AND due_at <= (SELECT tidings_now()) AND due_at IS NOT NULL AND lease_until IS NULL AND lost_leases <= :lost_max
        ORDER BY due_at, id
        LIMIT :limit
/* lease */;

-- name: claim_in_order
/* claim */
        SELECT id FROM items
        WHERE pipeline = :pipeline AND lane = :lane
            AND due_at <= (SELECT tidings_now()) AND due_at IS NOT NULL AND lease_until IS NULL
        ORDER BY due_at, id
        LIMIT :limit
/* lease */;

-- name: claim_suspect
/* claim */
        SELECT id FROM items
        WHERE pipeline = :pipeline AND lane = :lane
            AND due_at <= (SELECT tidings_now()) AND due_at IS NOT NULL AND lease_until IS NULL AND lost_leases > 0
        ORDER BY due_at, id
        LIMIT :limit
/* lease */;

-- name: read_bodies
-- params: item revision
SELECT b.item, b.revision, b.body FROM unnest(:item::bigint[], :revision::bigint[]) AS v (i, r)
JOIN bodies b ON b.item = v.i AND b.revision = v.r;

-- name: heartbeat
-- params: id token lease_ms
UPDATE items SET lease_until = tidings_now() + v.m
FROM (SELECT * FROM unnest(:id::bigint[], :token::bigint[], :lease_ms::bigint[]) AS u (i, t, m) ORDER BY i) v
WHERE items.id = v.i AND lease_token = v.t AND lease_until > tidings_now()
RETURNING id;

-- name: regain
-- params: id token lease_ms
UPDATE items SET lease_until = tidings_now() + v.m
FROM (SELECT * FROM unnest(:id::bigint[], :token::bigint[], :lease_ms::bigint[]) AS u (i, t, m) ORDER BY i) v
WHERE items.id = v.i AND lease_token = v.t AND lease_until IS NOT NULL
RETURNING id;

-- name: excuse_loss
-- params: id token
UPDATE items SET lost_leases = lost_leases - 1
FROM (SELECT * FROM unnest(:id::bigint[], :token::bigint[]) AS u (i, t) ORDER BY i) v
WHERE items.id = v.i AND lease_token BETWEEN v.t + 1 AND v.t + 2 AND lost_leases > 0 AND standing = 'open'
    AND kind <> 'delivery';

-- name: release
-- params: id token
UPDATE items SET lease_owner = NULL, lease_until = NULL, attempts = attempts - 1
FROM unnest(:id::bigint[], :token::bigint[]) AS v (i, t)
WHERE items.id = v.i AND lease_token = v.t AND lease_until IS NOT NULL
RETURNING id, state, attempts, lease_token;

-- name: settle_item
-- params: id token state_before state standing lane attempts due_at delay_ms error cause failing_since accepts advanced
UPDATE items SET state = v.state, standing = v.standing, lane = v.lane, attempts = v.attempts,
    due_at = CASE WHEN v.due_at IS NOT NULL THEN v.due_at WHEN v.delay_ms IS NOT NULL THEN c.now + v.delay_ms END,
    lease_owner = NULL, lease_until = NULL,
    lost_leases = CASE WHEN v.advanced = 1 THEN 0 ELSE lost_leases END,
    last_error = v.error, cause = v.cause, failing_since = v.failing_since,
    accepted_revision = CASE WHEN v.accepts = 1 THEN revision ELSE accepted_revision END,
    changed_at = c.now,
    state_since = CASE WHEN v.state = v.state_before THEN state_since ELSE c.now END
FROM (SELECT tidings_now() AS now) c,
    unnest(:id::bigint[], :token::bigint[], :state_before::text[], :state::text[], :standing::text[], :lane::text[],
        :attempts::bigint[], :due_at::bigint[], :delay_ms::bigint[], :error::text[], :cause::text[],
        :failing_since::bigint[], :accepts::bigint[], :advanced::bigint[])
        AS v (id, token, state_before, state, standing, lane, attempts, due_at, delay_ms, error, cause, failing_since, accepts, advanced)
WHERE items.id = v.id AND lease_token = v.token AND lease_until > c.now AND items.state = v.state_before
RETURNING items.id, waiting_revision, fingerprint, priority, intake_id, revision, accepted_revision;

-- name: replace_body
-- params: item revision body
UPDATE bodies SET body = v.b FROM unnest(:item::bigint[], :revision::bigint[], :body::bytea[]) AS v (i, r, b)
WHERE item = v.i AND revision = v.r;

-- name: closed_tokens
-- params: item token
SELECT j.item FROM unnest(:item::bigint[], :token::bigint[]) AS v (i, t)
JOIN journal j ON j.item = v.i AND j.token = v.t AND j.kind = 'attempt';

-- name: sweep_lease
-- params: id token
UPDATE items SET lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1, lost_leases = lost_leases + 1
FROM unnest(:id::bigint[], :token::bigint[]) AS v (i, t)
WHERE items.id = v.i AND lease_token = v.t AND lease_until <= tidings_now()
RETURNING items.id, waiting_revision, fingerprint, priority, intake_id, revision, accepted_revision;

-- name: bury_item
-- params: id token state cause error
UPDATE items SET standing = 'dead', lane = NULL, due_at = NULL, cause = v.c, last_error = v.e,
    lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1, changed_at = tidings_now()
FROM unnest(:id::bigint[], :token::bigint[], :state::text[], :cause::text[], :error::text[]) AS v (i, t, s, c, e)
WHERE items.id = v.i AND lease_token = v.t AND state = v.s
RETURNING items.id;

-- name: item_for_update
SELECT id, pipeline, kind, key, fingerprint, state, standing, lane, priority, due_at, attempts, lost_leases, lease_owner,
    lease_token, lease_until, revision, accepted_revision, waiting_revision, last_error, cause, created_at, changed_at,
    state_since, failing_since
FROM items WHERE id = :id FOR UPDATE;

-- name: move_by_hand
-- params: id token state_before state standing lane due_at error cause accepts failing_since
UPDATE items SET state = v.state, standing = v.standing, lane = v.lane, due_at = v.due_at, attempts = 0, lost_leases = 0,
    lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1, last_error = v.error, cause = v.cause,
    accepted_revision = CASE WHEN v.accepts = 1 THEN revision ELSE accepted_revision END,
    failing_since = v.failing_since, changed_at = tidings_now(), state_since = tidings_now()
FROM unnest(:id::bigint[], :token::bigint[], :state_before::text[], :state::text[], :standing::text[], :lane::text[],
    :due_at::bigint[], :error::text[], :cause::text[], :accepts::bigint[], :failing_since::bigint[])
    AS v (id, token, state_before, state, standing, lane, due_at, error, cause, accepts, failing_since)
WHERE items.id = v.id AND lease_token = v.token AND items.state = v.state_before
RETURNING items.id, waiting_revision, fingerprint, priority, intake_id, revision, accepted_revision;

-- name: revive_item
-- params: id token lane
UPDATE items SET standing = 'open', lane = v.l, due_at = tidings_now(), attempts = 0, lost_leases = 0, last_error = NULL,
    cause = NULL, failing_since = NULL, lease_token = lease_token + 1, lease_owner = NULL, lease_until = NULL,
    changed_at = tidings_now(), state_since = tidings_now()
FROM unnest(:id::bigint[], :token::bigint[], :lane::text[]) AS v (i, t, l)
WHERE items.id = v.i AND lease_token = v.t AND standing IN ('dead', 'parked', 'rejected')
RETURNING id, state, lease_token;

-- name: delete_item
-- params: id token
DELETE FROM items USING unnest(:id::bigint[], :token::bigint[]) AS v (i, t)
WHERE id = v.i AND lease_token = v.t AND lease_until IS NULL RETURNING id, intake_id;

-- name: delete_bodies
-- params: id
DELETE FROM bodies WHERE item = ANY(:id::bigint[]);

-- name: delete_journal
-- params: id
DELETE FROM journal WHERE item = ANY(:id::bigint[]);

-- name: insert_tombstone
-- params: pipeline kind key fingerprint intake_id forget_ms
INSERT INTO tombstones (pipeline, kind, key, fingerprint, intake_id, buried_at, forget_at)
SELECT pipeline, kind, key, fingerprint, intake_id, tidings_now(), tidings_now() + forget_ms
FROM unnest(:pipeline::text[], :kind::text[], :key::text[], :fingerprint::text[], :intake_id::bigint[],
    :forget_ms::bigint[]) AS v (pipeline, kind, key, fingerprint, intake_id, forget_ms)
ON CONFLICT (pipeline, kind, key) DO UPDATE
SET fingerprint = excluded.fingerprint, intake_id = excluded.intake_id, buried_at = excluded.buried_at,
    forget_at = excluded.forget_at;

-- name: drop_tombstone
-- params: pipeline kind key
DELETE FROM tombstones t
USING unnest(:pipeline::text[], :kind::text[], :key::text[]) AS v (pipeline, kind, key)
WHERE t.pipeline = v.pipeline AND t.kind = v.kind AND t.key = v.key;

-- name: insert_link
-- params: pipeline relation child said_by parent position
INSERT INTO links (pipeline, relation, child, said_by, parent, position)
SELECT * FROM unnest(:pipeline::text[], :relation::text[], :child::text[], :said_by::bigint[], :parent::text[], :position::bigint[])
ON CONFLICT (pipeline, child, relation, said_by, parent) DO UPDATE SET position = excluded.position;

-- name: unsay_as_child
-- params: pipeline ref
DELETE FROM links USING unnest(:pipeline::text[], :ref::text[]) AS v (p, r)
WHERE pipeline = v.p AND child = v.r AND said_by <> 0;

-- name: awaiting
-- params: number pipeline key
SELECT v.n, l.child FROM unnest(:number::bigint[], :pipeline::text[], :key::text[]) AS v (n, p, r)
JOIN links l ON l.pipeline = v.p AND l.parent = v.r AND l.relation = 'awaits';

-- name: unsay_as_parent
-- params: pipeline ref
DELETE FROM links USING unnest(:pipeline::text[], :ref::text[]) AS v (p, r)
WHERE pipeline = v.p AND parent = v.r AND said_by = 0;

-- name: put_card
-- params: id pipeline key collection sort value revision expires_at
-- shared: version
INSERT INTO shelf (id, pipeline, key, collection, sort, value, revision, version, written_at, expires_at)
SELECT i, p, k, c, s, b, r, :version::bigint, (SELECT tidings_now()), e
FROM unnest(:id::bigint[], :pipeline::text[], :key::text[], :collection::text[], :sort::bigint[], :value::bytea[],
    :revision::bigint[], :expires_at::bigint[]) AS u (i, p, k, c, s, b, r, e)
ON CONFLICT (id) DO UPDATE
SET key = excluded.key, collection = excluded.collection, sort = excluded.sort, value = excluded.value,
    revision = excluded.revision, version = excluded.version, written_at = excluded.written_at, expires_at = excluded.expires_at
WHERE excluded.revision >= shelf.revision
    AND (shelf.value <> excluded.value OR shelf.sort <> excluded.sort OR shelf.key <> excluded.key)
RETURNING id;

-- name: put_entry
-- Many may put at once, and none sees the others' ids: they are drawn at random.
INSERT INTO shelf (id, pipeline, key, collection, sort, value, revision, version, written_at, expires_at)
VALUES (-1 - floor(random() * 9e15)::bigint,
    :pipeline, :key, :collection, :sort, :value, 1, :version, tidings_now(), :expires_at)
ON CONFLICT (pipeline, key) DO UPDATE
SET collection = excluded.collection, sort = excluded.sort, value = excluded.value, revision = shelf.revision + 1,
    version = excluded.version, written_at = excluded.written_at, expires_at = excluded.expires_at
WHERE shelf.value <> excluded.value OR shelf.sort <> excluded.sort
RETURNING id;

-- name: drop_card
-- params: id
DELETE FROM shelf WHERE id = ANY(:id::bigint[]) RETURNING id, pipeline;

-- name: shelf_entries
-- params: pipeline key
SELECT s.key, value, version, revision, sort, written_at, s.id
FROM unnest(:pipeline::text[], :key::text[]) AS v (p, k) JOIN shelf s ON s.pipeline = v.p AND s.key = v.k
WHERE expires_at IS NULL OR expires_at > tidings_now();

-- name: put_document
-- The words are a column here, weighed at writing; a word between them keeps phrases from reaching into the text.
-- params: id pipeline kind key author type score time url attributes title text title_words text_words
INSERT INTO documents (id, pipeline, kind, key, author, type, score, time, url, attributes, title, body, words)
SELECT i, p, k, y, a, t, s, m, u, b::jsonb, h, x,
    CASE WHEN hw = '' THEN to_tsvector('tidings', xw)
    ELSE setweight(to_tsvector('tidings', hw), 'A')
        || ts_delete(to_tsvector('tidings', 'tidingsbetween ' || xw), 'tidingsbetween') END
FROM unnest(:id::bigint[], :pipeline::text[], :kind::text[], :key::text[], :author::text[], :type::text[], :score::bigint[],
    :time::bigint[], :url::text[], :attributes::text[], :title::text[], :text::text[], :title_words::text[],
    :text_words::text[]) AS v (i, p, k, y, a, t, s, m, u, b, h, x, hw, xw)
ON CONFLICT (id) DO UPDATE
SET author = excluded.author, type = excluded.type, score = excluded.score, time = excluded.time, url = excluded.url,
    attributes = excluded.attributes, title = excluded.title, body = excluded.body, words = excluded.words;

-- name: drop_document
-- params: id
DELETE FROM documents WHERE id = ANY(:id::bigint[]) RETURNING id;

-- name: children
-- Before the first ANALYZE the planner joins each row with all links of the pipeline; OFFSET 0 keeps the look-up a look-up.
SELECT child, position FROM links l
WHERE pipeline = :pipeline AND relation = :relation AND parent = :parent
    AND NOT EXISTS (
        SELECT 1 FROM links b
        WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
            AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)) OFFSET 0)
ORDER BY position IS NULL, position, length(child), child
LIMIT :limit;

-- name: thread
-- As above; and each level looks up its own children instead of reading all links.
WITH RECURSIVE below (ref, parent, position, depth) AS (
    SELECT l.child, l.parent, l.position, 1 FROM links l
    WHERE l.pipeline = :pipeline AND l.relation = :relation AND l.parent = :root
        AND NOT EXISTS (SELECT 1 FROM links b
            WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
                AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)) OFFSET 0)
    UNION
    SELECT l.child, l.parent, l.position, below.depth + 1 FROM below
    CROSS JOIN LATERAL (
        SELECT child, parent, position FROM links l
        WHERE l.pipeline = :pipeline AND l.relation = :relation AND l.parent = below.ref
            AND NOT EXISTS (SELECT 1 FROM links b
                WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
                    AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)) OFFSET 0)
        OFFSET 0) l
    WHERE below.depth < 200
)
SELECT ref, parent, position, depth FROM below
ORDER BY depth, parent, position IS NULL, position, length(ref), ref LIMIT :limit;

-- name: claim_schedule
-- The flag must carry its type.
UPDATE schedules SET lease_owner = :owner, lease_token = lease_token + 1, lease_until = tidings_now() + :lease_ms
WHERE source = :source AND (next_at <= tidings_now() OR :force::int = 1)
    AND (lease_until IS NULL OR lease_until <= tidings_now())
    AND NOT EXISTS (SELECT 1 FROM pauses WHERE part = 'source:' || schedules.source OR part = 'pipeline:' || schedules.pipeline)
RETURNING lease_token, failures;

-- name: close_schedule
-- The error's type must be known where it is compared with NULL.
UPDATE schedules SET lease_owner = NULL, lease_until = NULL, next_at = tidings_now() + :delay_ms, failures = :failures,
    last_error = :error::text,
    last_success_at = CASE WHEN :error::text IS NULL THEN tidings_now() ELSE last_success_at END,
    last_new_at = CASE WHEN :has_new::int = 1 THEN tidings_now() ELSE last_new_at END
WHERE source = :source AND lease_token = :token RETURNING source;

-- name: put_sample
-- params: series at value
INSERT INTO samples (series, at, value) SELECT * FROM unnest(:series::text[], :at::bigint[], :value::double precision[])
ON CONFLICT (series, at) DO UPDATE SET value = excluded.value;

-- name: activity
-- What each of our connections does: an observer asks through another connection why one is silent.
SELECT pid, state, wait_event_type, wait_event FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND state IS NOT NULL;
