-- When each source is asked, by which process, and what its runs brought.

-- name: end_turns
-- All holders are dead.
UPDATE schedules SET lease_owner = NULL, lease_until = NULL WHERE lease_until IS NOT NULL;

-- name: declare_schedules
-- A new source is due at once.
-- rows: source text, pipeline text
INSERT INTO schedules (source, pipeline, next_at)
SELECT source, pipeline, (SELECT tidings_now()) FROM given WHERE true
ON CONFLICT (source) DO NOTHING;

-- name: due_sources
-- What `claim_schedule` would grant, the longest waiting first.
SELECT source FROM schedules
WHERE next_at <= tidings_now() AND (lease_until IS NULL OR lease_until <= tidings_now())
    AND NOT EXISTS (SELECT 1 FROM pauses WHERE part = 'source:' || schedules.source OR part = 'pipeline:' || schedules.pipeline)
ORDER BY next_at, source;

-- name: claim_schedule
-- One owner asks a source, across machines.
UPDATE schedules SET lease_owner = :owner, lease_token = lease_token + 1, lease_until = tidings_now() + :lease_ms
WHERE source = :source AND (next_at <= tidings_now() OR CAST(:force AS BIGINT) = 1)
    AND (lease_until IS NULL OR lease_until <= tidings_now())
    AND NOT EXISTS (SELECT 1 FROM pauses WHERE part = 'source:' || schedules.source OR part = 'pipeline:' || schedules.pipeline)
RETURNING lease_token AS token, failures;

-- name: beat_schedule
-- Taking a turn raises its token: one that ran out but was not taken still has its holder's.
UPDATE schedules SET lease_until = tidings_now() + :lease_ms
WHERE source = :source AND lease_token = :token AND lease_until IS NOT NULL;

-- name: schedule_holding
-- Since when a source is being asked, until when its turn lasts, and what time it is.
SELECT (SELECT max(started_at) FROM runs WHERE source = schedules.source AND ended_at IS NULL) AS since,
    lease_until AS until, tidings_now() AS now
FROM schedules WHERE source = :source AND lease_until > tidings_now();

-- name: close_schedule
UPDATE schedules SET lease_owner = NULL, lease_until = NULL, next_at = tidings_now() + :delay_ms, failures = :failures,
    last_error = CAST(:error AS TEXT),
    last_success_at = CASE WHEN CAST(:succeeded AS BIGINT) = 1 THEN tidings_now() ELSE last_success_at END,
    last_new_at = CASE WHEN CAST(:has_new AS BIGINT) = 1 THEN tidings_now() ELSE last_new_at END
WHERE source = :source AND lease_token = :token;

-- name: give_back_schedule
-- A stopped run leaves its source due, and no better or worse than before.
UPDATE schedules SET lease_owner = NULL, lease_until = NULL, next_at = tidings_now()
WHERE source = :source AND lease_token = :token;

-- name: end_turn
-- A turn between two runs leaves the schedule as it is.
UPDATE schedules SET lease_owner = NULL, lease_until = NULL,
    last_new_at = CASE WHEN CAST(:has_new AS BIGINT) = 1 THEN tidings_now() ELSE last_new_at END
WHERE source = :source AND lease_token = :token;

-- name: add_to_last_run
-- What was found between two runs counts as found by the one before.
UPDATE runs SET found = found + :found, new = new + :new, changed = changed + :changed, unchanged = unchanged + :unchanged,
    rejected = rejected + :rejected, pages = pages + :pages
WHERE id = (SELECT max(id) FROM runs WHERE source = :source);

-- name: check_now
UPDATE schedules SET next_at = tidings_now() WHERE source = :source;

-- name: schedules
SELECT source, pipeline, next_at, lease_until, failures, last_success_at, last_new_at, last_error FROM schedules ORDER BY source;

-- name: next_schedule
SELECT min(next_at) - tidings_now() AS wait_ms FROM schedules;

-- name: open_run
INSERT INTO runs (source, started_at) VALUES (:source, tidings_now()) RETURNING id;

-- name: close_run
UPDATE runs SET ended_at = tidings_now(), found = :found, new = :new, changed = :changed, unchanged = :unchanged,
    rejected = :rejected, trimmed = :trimmed, pages = :pages, credits = :credits, error = :error, note = :note,
    ended = :ended, in_log = :in_log
WHERE id = :id;

-- name: close_lost_runs
-- The process that had the turn at a source before is dead, or too late.
UPDATE runs SET ended_at = tidings_now(), ended = 'lost', note = 'its process ended without closing it'
WHERE source = :source AND ended_at IS NULL;

-- name: close_all_lost_runs
-- All holders are dead.
UPDATE runs SET ended_at = tidings_now(), ended = 'lost', note = 'its process ended without closing it'
WHERE ended_at IS NULL;

-- name: last_runs
SELECT source, started_at, ended_at, found, new, changed, unchanged, rejected, trimmed, pages, credits, error, note,
    ended, in_log
FROM runs WHERE source = :source ORDER BY id DESC LIMIT :limit;

-- name: found_since
-- What a source brought, run by run.
SELECT started_at AS at, new AS value FROM runs WHERE source = :source AND started_at >= :since ORDER BY id;

-- name: drop_old_runs
DELETE FROM runs WHERE started_at < tidings_now() - :keep_ms;
