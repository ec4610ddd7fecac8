-- The journal: what happened to each item, one row an attempt.

-- name: insert_journal
-- rows: item bigint, kind text, token bigint, attempt bigint, from_state text, to_state text, ended text, error text,
--      actor text, steps bytea
INSERT INTO journal (item, at, kind, token, attempt, from_state, to_state, ended, error, actor, steps)
SELECT item, (SELECT tidings_now()), kind, token, attempt, from_state, to_state, ended, error, actor, steps FROM given;

-- name: life
SELECT id, item, at, kind, token, attempt, from_state, to_state, ended, error, actor, steps
FROM journal WHERE item = :item ORDER BY id LIMIT :limit;

-- name: closed_tokens
-- Which of these leases were closed: read back after a COMMIT whose reply was lost.
-- rows: item bigint, token bigint
SELECT journal.item FROM given CROSS JOIN journal
WHERE journal.item = given.item AND journal.token = given.token AND journal.kind IN ('attempt', 'born');

-- name: last_restart
-- Why an item was begun the last time, and by what.
SELECT kind, actor FROM journal WHERE item = :item AND kind <> 'attempt' ORDER BY id DESC LIMIT 1;

-- name: events_after
SELECT j.id, j.at, i.pipeline, i.kind, i.key, j.ended AS what, j.from_state, j.to_state, j.item
FROM journal j JOIN items i ON i.id = j.item WHERE j.id > :after ORDER BY j.id LIMIT :limit;

-- name: last_event
SELECT j.id, j.at, i.pipeline, i.kind, i.key, j.ended AS what, j.from_state, j.to_state, j.item
FROM journal j JOIN items i ON i.id = j.item ORDER BY j.id DESC LIMIT 1;
