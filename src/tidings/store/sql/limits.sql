-- Daily budgets, and limiters that hold across machines.

-- name: end_places
-- All processes that were inside are dead: their places end now, the rates stay.
UPDATE limiters SET held_until = tidings_now() WHERE held_until > tidings_now();

-- name: count_budget
-- Count without a limit.
INSERT INTO budgets (name, day, spent) VALUES (:name, :day, :amount)
ON CONFLICT (name, day) DO UPDATE SET spent = budgets.spent + excluded.spent;

-- name: read_budget
SELECT day, spent, reserved, limited_to FROM budgets WHERE name = :name AND day = :day;

-- name: reserved_budget
-- The last day of a name on which so much is set aside.
SELECT day, spent, reserved, limited_to FROM budgets WHERE name = :name AND reserved >= :reserved ORDER BY day DESC LIMIT 1;

-- name: write_budget
INSERT INTO budgets (name, day, spent, reserved, limited_to) VALUES (:name, :day, :spent, :reserved, :limited_to)
ON CONFLICT (name, day) DO UPDATE
SET spent = excluded.spent, reserved = excluded.reserved, limited_to = excluded.limited_to;

-- name: budgets_of_day
SELECT name, day, spent, reserved, limited_to AS "limit" FROM budgets WHERE day = :day ORDER BY name;

-- name: drop_old_budgets
DELETE FROM budgets WHERE day < :day;

-- name: read_limiter
SELECT entries, token, held_until, not_before FROM limiters WHERE name = :name;

-- name: write_limiter
INSERT INTO limiters (name, entries, token, held_until, not_before) VALUES (:name, :entries, :token, :held_until, :not_before)
ON CONFLICT (name) DO UPDATE
SET entries = excluded.entries, token = excluded.token, held_until = excluded.held_until, not_before = excluded.not_before;
