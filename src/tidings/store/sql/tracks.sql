-- How the numbers and ranks of cards went.

-- name: tracks
-- rows: pipeline text, key text
SELECT tracks.key, points FROM given CROSS JOIN tracks
WHERE tracks.pipeline = given.pipeline AND tracks.key = given.key;

-- name: put_tracks
-- rows: pipeline text, key text, points text
INSERT INTO tracks (pipeline, key, points, changed_at)
SELECT pipeline, key, points, (SELECT tidings_now()) FROM given WHERE true
ON CONFLICT (pipeline, key) DO UPDATE SET points = excluded.points, changed_at = excluded.changed_at;

-- name: drop_old_tracks
-- Those that have not changed for long, and the ones beyond the newest so many.
DELETE FROM tracks WHERE changed_at < tidings_now() - :keep_ms
    OR changed_at < (SELECT changed_at FROM tracks ORDER BY changed_at DESC LIMIT 1 OFFSET :newest);
