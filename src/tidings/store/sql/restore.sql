-- Making a restored database safe: no lease of the past holds, and nothing is sent by itself.

-- part: unsent
-- Deliveries that were not sent when the backup was taken, and may have been since.
kind = 'delivery' AND standing IN ('open', 'parked')

-- name: count_unfinished
-- Items that are not at rest, and leases that hold.
SELECT count(*) FILTER (WHERE standing = 'open' AND kind <> 'delivery') AS items, count(lease_until) AS leases FROM items;

-- name: leap_items
-- No worker that outlived the restore can hold a token that is given again.
UPDATE items SET lease_owner = NULL, lease_until = NULL, lease_token = lease_token + :leap;

-- name: leap_schedules
UPDATE schedules SET lease_owner = NULL, lease_until = NULL, lease_token = lease_token + :leap;

-- name: leap_limiters
UPDATE limiters SET held_until = 0, token = token + :leap;

-- name: spend_reserved
-- What was set aside has probably been spent.
UPDATE budgets SET spent = spent + reserved, reserved = 0;

-- name: journal_unsent
INSERT INTO journal (item, at, kind, token, attempt, from_state, to_state, ended, error, actor)
SELECT id, tidings_now(), 'manual', lease_token, 0, state, state, 'parked', :reason, 'restore' FROM items WHERE /* unsent */;

-- name: park_unsent
UPDATE items SET standing = 'parked', due_at = NULL, last_error = :reason, cause = :reason, changed_at = tidings_now()
WHERE /* unsent */;
