-- Paused parts.

-- name: pause
INSERT INTO pauses (part, reason, since) VALUES (:part, :reason, tidings_now())
ON CONFLICT (part) DO UPDATE SET reason = excluded.reason;

-- name: resume
DELETE FROM pauses WHERE part = :part;

-- name: pauses
SELECT part, reason FROM pauses ORDER BY part;
