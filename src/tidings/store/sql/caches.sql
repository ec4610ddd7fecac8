-- Values kept for a time.

-- name: cached_value
SELECT value FROM caches WHERE name = :name AND key = :key AND expires_at > tidings_now();

-- name: cached_values
SELECT value FROM caches WHERE name = :name AND expires_at > tidings_now() ORDER BY key;

-- name: cache_value
INSERT INTO caches (name, key, value, expires_at) VALUES (:name, :key, :value, tidings_now() + :ttl_ms)
ON CONFLICT (name, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at;

-- name: take_watch
-- One process watches over all: the one that has the watch keeps it, and another takes it once it has run out.
INSERT INTO caches (name, key, value, expires_at) VALUES ('watch', 'turn', :process, tidings_now() + :ttl_ms)
ON CONFLICT (name, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
WHERE caches.value = excluded.value OR caches.expires_at <= tidings_now();

-- name: drop_expired_caches
DELETE FROM caches WHERE expires_at <= tidings_now();
