-- What only PostgreSQL knows of a database as a whole.

-- name: standby_lag
-- Because a server may be a standby: how old the last transaction is that it has from its primary. While nothing is
-- written there it grows too, but processes tell every ten seconds that they live.
SELECT CASE WHEN pg_is_in_recovery() THEN
    COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000, 0)::BIGINT
END AS lag_ms;
