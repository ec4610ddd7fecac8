-- Stories: the members as they were grouped, and what is told of each group.

-- name: story_state
-- A database in which nothing was grouped yet has no row.
SELECT COALESCE(s.step, 0) AS step, COALESCE(s.place, 0) AS place, COALESCE(s.version, 0) AS version,
    COALESCE(s.settled, 0) AS settled,
    (SELECT COUNT(*) FROM story_members WHERE story IS NULL) AS waiting,
    (SELECT MIN(place) FROM story_decisions WHERE applied_at IS NULL) AS decision,
    CASE WHEN EXISTS (SELECT 1 FROM story_members WHERE story IS NULL AND place IS NOT NULL) THEN 1 ELSE 0 END AS is_again
FROM (SELECT 1 AS one) AS always LEFT JOIN story_state s ON s.id = always.one;

-- name: begin_story_state
INSERT INTO story_state (id, step, place, version, settled, owner, owner_until) VALUES (1, 0, 0, 0, 0, '', 0)
ON CONFLICT (id) DO NOTHING;

-- name: take_story_turn
-- One process groups; another may when that one has said nothing for a while.
UPDATE story_state SET owner = :owner, owner_until = tidings_now() + :turn_ms
WHERE owner = :owner OR owner_until <= tidings_now();

-- name: leave_story_turn
UPDATE story_state SET owner_until = 0 WHERE owner = :owner;

-- name: story_position
SELECT position FROM story_positions WHERE pipeline = :pipeline;

-- name: put_story_position
INSERT INTO story_positions (pipeline, position) VALUES (:pipeline, :position)
ON CONFLICT (pipeline) DO UPDATE SET position = excluded.position;

-- name: drop_story_position
DELETE FROM story_positions WHERE pipeline = :pipeline;

-- name: standing_stories
-- The stories of items whose membership is about to change.
-- rows: item bigint
SELECT story_members.item, story_members.story, story_members.gone_at, story_members.source, story_members.key
FROM given CROSS JOIN story_members
WHERE story_members.item = given.item AND story_members.story IS NOT NULL;

-- name: put_tellings
-- An item that is there keeps what it was grouped by: only a new one waits for its turn.
-- rows: item bigint, pipeline text, key text, source text, time_ms bigint, facts bytea, digest bytea
INSERT INTO story_members (item, pipeline, key, source, time_ms, facts, digest)
SELECT item, pipeline, key, source, time_ms, facts, digest FROM given WHERE true
ON CONFLICT (item) DO UPDATE SET gone_at = NULL, key = excluded.key, source = excluded.source;

-- name: drop_waiting_tellings
-- What goes before its turn leaves no trace.
-- rows: item bigint
DELETE FROM story_members WHERE item IN (SELECT item FROM given) AND place IS NULL;

-- name: mark_tellings_gone
-- rows: item bigint
UPDATE story_members SET gone_at = tidings_now() WHERE item IN (SELECT item FROM given) AND gone_at IS NULL;

-- name: mark_pipeline_gone
-- Until its cards come along again.
UPDATE story_members SET gone_at = tidings_now() WHERE pipeline = :pipeline AND gone_at IS NULL;

-- name: stories_of_pipeline
SELECT DISTINCT story AS id FROM story_members WHERE pipeline = :pipeline AND story IS NOT NULL;

-- name: draw_story_version
UPDATE story_state SET version = version + 1 RETURNING version;

-- name: take_story_step
-- x.
UPDATE story_state SET step = step + 1, place = :place WHERE step = :step;

-- name: waiting_tellings
-- In the order in which they are grouped: what has its place keeps it, the rest comes by time.
SELECT item, time_ms, facts, digest, place, seen_ms FROM story_members
WHERE story IS NULL AND (CAST(:before AS bigint) IS NULL OR place < :before)
ORDER BY CASE WHEN place IS NULL THEN 1 ELSE 0 END, place, time_ms, item LIMIT :limit;

-- name: newest_seen
SELECT MAX(seen_ms) AS seen_ms FROM story_members WHERE story IS NOT NULL;

-- name: placed_tellings
-- What the grouping knows of: the newest in the window, in the order in which they came.
SELECT item, place, story, time_ms, seen_ms, facts, digest, terms FROM (
    SELECT item, place, story, time_ms, seen_ms, facts, digest, terms FROM story_members
    WHERE story IS NOT NULL AND seen_ms >= :since ORDER BY place DESC LIMIT :limit) AS newest
ORDER BY place;

-- name: story_spans
-- All that was ever grouped counts, also what is gone: it did when the others came.
-- rows: story bigint
SELECT story_members.story, MIN(time_ms) AS first_ms, MAX(time_ms) AS last_ms
FROM given CROSS JOIN story_members
WHERE story_members.story = given.story GROUP BY story_members.story;

-- name: place_tellings
-- rows: item bigint, place bigint, seen_ms bigint, story bigint, terms bytea
UPDATE story_members SET place = given.place, seen_ms = given.seen_ms, story = given.story, terms = given.terms
FROM given WHERE story_members.item = given.item;

-- name: put_stories
-- Tell again what each of these stories is; one that nobody tells any more keeps an empty row for those who follow.
-- rows: story bigint
INSERT INTO stories (id, first_ms, last_ms, size, sources, version, changed_at)
SELECT given.story, COALESCE(MIN(m.time_ms), 0), COALESCE(MAX(m.time_ms), 0), COUNT(m.item), COUNT(DISTINCT m.source),
    :version, (SELECT tidings_now())
FROM given LEFT JOIN story_members m ON m.story = given.story AND m.gone_at IS NULL
WHERE true GROUP BY given.story
ON CONFLICT (id) DO UPDATE SET first_ms = excluded.first_ms, last_ms = excluded.last_ms, size = excluded.size,
    sources = excluded.sources, version = excluded.version, changed_at = excluded.changed_at;

-- name: ungroup_stories
-- Let everything be grouped again, in the order in which it came; what is settled stays.
UPDATE story_members SET story = NULL, terms = NULL WHERE story IS NOT NULL AND place > :settled;

-- name: undo_decisions
UPDATE story_decisions SET applied_at = NULL WHERE place > :settled;

-- name: empty_stories
-- Those whose members are to be grouped again are told when they are.
UPDATE stories SET size = 0, sources = 0, version = :version, changed_at = tidings_now()
WHERE NOT EXISTS (SELECT 1 FROM story_members m WHERE m.story = stories.id) AND size > 0;

-- name: decisions_at
SELECT item, target FROM story_decisions WHERE place = :place ORDER BY item;

-- name: put_decisions
-- rows: item bigint, target bigint
INSERT INTO story_decisions (place, item, target, actor, decided_at)
SELECT :place, item, target, :actor, (SELECT tidings_now()) FROM given;

-- name: apply_decisions
UPDATE story_decisions SET applied_at = tidings_now() WHERE place = :place;

-- name: move_members
-- rows: item bigint, story bigint
UPDATE story_members SET story = given.story FROM given WHERE story_members.item = given.item;

-- name: story
SELECT id, first_ms, last_ms, size, sources, version, changed_at FROM stories WHERE id = :id AND size > 0;

-- name: newest_stories
-- Those with the newest news first.
SELECT id, first_ms, last_ms, size, sources, version, changed_at FROM stories
WHERE size > 1 AND sources >= :sources AND (last_ms < :last OR (last_ms = :last AND id < :id))
ORDER BY last_ms DESC, id DESC LIMIT :limit;

-- name: changed_stories
SELECT id, first_ms, last_ms, size, sources, version, changed_at FROM stories
WHERE version > :after ORDER BY version, id LIMIT :limit;

-- name: stories_of_version
SELECT id, first_ms, last_ms, size, sources, version, changed_at FROM stories WHERE version = :version ORDER BY id;

-- name: story_members
-- rows: story bigint
SELECT story_members.story, item, pipeline, key, source, time_ms FROM given CROSS JOIN story_members
WHERE story_members.story = given.story AND gone_at IS NULL ORDER BY story_members.story, time_ms, item;

-- name: story_places
-- In which story each of some cards is told, and how many tell it.
-- rows: pipeline text, key text
SELECT m.pipeline, m.key, m.story, stories.size, stories.sources
FROM given CROSS JOIN story_members m CROSS JOIN stories
WHERE m.pipeline = given.pipeline AND m.key = given.key AND m.gone_at IS NULL AND stories.id = m.story
    AND stories.size > 1;

-- name: drop_old_tellings
DELETE FROM story_members WHERE gone_at < tidings_now() - :keep_ms AND seen_ms < :before;

-- name: settle_stories
UPDATE story_state SET settled = COALESCE((SELECT MAX(place) FROM story_members WHERE seen_ms < :before), settled);

-- name: drop_empty_stories
DELETE FROM stories WHERE size = 0 AND changed_at < tidings_now() - :keep_ms;
