-- Facts about the database as a whole: marks of running processes, and when a backup was taken.

-- name: marks
SELECT name, value AS process FROM meta WHERE name LIKE :pattern;

-- name: leave_mark
INSERT INTO meta (name, value) VALUES (:name, :process);

-- name: drop_mark
DELETE FROM meta WHERE name = :name;

-- name: drop_marks
DELETE FROM meta WHERE name LIKE :pattern;

-- name: meta_named
SELECT name FROM meta WHERE name = :name;

-- name: name_in_meta
INSERT INTO meta (name, value) VALUES (:name, '') ON CONFLICT (name) DO NOTHING;

-- name: backup_taken_at
-- Only backups have it.
SELECT value AS taken_at FROM meta WHERE name = 'backup_taken_at';

-- name: sign_backup
INSERT INTO meta (name, value) VALUES ('backup_taken_at', :taken_at)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: standby_lag
-- A SQLite file is nobody's copy.
SELECT NULL AS lag_ms;

-- name: reload_asked
SELECT value FROM meta WHERE name = 'reload_asked';

-- name: ask_reload
INSERT INTO meta (name, value) VALUES ('reload_asked', '1')
ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT);
