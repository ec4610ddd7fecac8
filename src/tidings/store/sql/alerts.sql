-- Alerts, and the low-resolution history behind the charts.

-- name: open_episodes
-- What fires, for the process that tells people.
SELECT id, name, subject, message, help, value, threshold, fired_at, notified_at FROM alerts
WHERE cleared_at IS NULL ORDER BY fired_at;

-- name: firing_alerts
SELECT name, subject, message, help, value, threshold, fired_at, cleared_at FROM alerts
WHERE cleared_at IS NULL ORDER BY fired_at;

-- name: recent_alerts
SELECT name, subject, message, help, value, threshold, fired_at, cleared_at FROM alerts ORDER BY id DESC LIMIT 200;

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
UPDATE alerts SET notified_at = tidings_now() WHERE id = :id AND notified_at IS NULL;

-- name: give_telling_back
UPDATE alerts SET notified_at = NULL WHERE id = :id;

-- name: put_samples
-- rows: series text, at bigint, value double
INSERT INTO samples (series, at, value) SELECT series, at, value FROM given WHERE true
ON CONFLICT (series, at) DO UPDATE SET value = excluded.value;

-- name: samples
SELECT at, value FROM samples WHERE series = :series AND at >= :since ORDER BY at;

-- name: drop_old_samples
DELETE FROM samples WHERE at < tidings_now() - :keep_ms;

-- name: counted_since
-- What workers counted under a prefix since a time, by minute.
SELECT at, sum(value) AS value FROM samples WHERE series >= :prefix AND series < :prefix_end AND at >= :since
GROUP BY at ORDER BY at;
