-- Access tokens; only their hashes are stored.

-- name: insert_token
INSERT INTO tokens (hash, name, scope, reader, created_at) VALUES (:hash, :name, :scope, :reader, tidings_now());

-- name: token_scope
SELECT scope FROM tokens WHERE hash = :hash AND revoked_at IS NULL;

-- name: any_token
SELECT 1 AS found FROM tokens WHERE revoked_at IS NULL LIMIT 1;

-- name: tokens
SELECT name, scope, created_at, last_used_at, revoked_at FROM tokens ORDER BY created_at;

-- name: revoke_tokens
UPDATE tokens SET revoked_at = tidings_now() WHERE name = :name AND revoked_at IS NULL;

-- name: note_token_use
-- Several servers share a token: each notes its use only where none did so a moment ago.
UPDATE tokens SET last_used_at = tidings_now()
WHERE hash = :hash AND (last_used_at IS NULL OR last_used_at <= tidings_now() - :every_ms);

-- name: token_reader
SELECT reader FROM tokens WHERE hash = :hash AND revoked_at IS NULL;
