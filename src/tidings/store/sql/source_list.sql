-- Which sources there are: their names by address.

-- name: source_list
SELECT name, pipeline, address, origin, options, changed_at FROM sources ORDER BY name;

-- name: source_list_version
SELECT value FROM meta WHERE name = 'sources_version';

-- name: raise_source_list_version
INSERT INTO meta (name, value) VALUES ('sources_version', '1')
ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT);

-- name: put_sources
-- A source that has its name already may have another address now, or come from elsewhere.
-- rows: name text, pipeline text, address text, origin text, options text
INSERT INTO sources (name, pipeline, address, origin, options, added_at, changed_at)
SELECT name, pipeline, address, origin, options, (SELECT tidings_now()), (SELECT tidings_now()) FROM given WHERE true
ON CONFLICT (name) DO UPDATE SET address = excluded.address, origin = excluded.origin, options = excluded.options,
    changed_at = excluded.changed_at;

-- name: cursors_of
-- Where the sources of a pipeline stand; their names begin with its name and a dot.
SELECT source, cursor FROM cursors WHERE source >= :pipeline || '.' AND source < :pipeline || '/' AND cursor IS NOT NULL;

-- name: change_source
-- What was asked of a source, and where it comes from, for a name that there is.
UPDATE sources SET address = :address, origin = :origin, options = :options, changed_at = tidings_now() WHERE name = :name;

-- name: leave_source
-- The name stays the address's own: added again, it finds its items.
UPDATE sources SET origin = :origin, changed_at = tidings_now() WHERE name = :name;

-- name: drop_schedule
DELETE FROM schedules WHERE source = :source;

-- name: drop_cursor
DELETE FROM cursors WHERE source = :source;

-- name: drop_source
-- Unless it was added again meanwhile.
DELETE FROM sources WHERE name = :name AND origin = 'forgotten';

-- name: forgotten_sources
-- Those whose items are to be removed, and for how long that has been so.
SELECT name, pipeline, tidings_now() - changed_at AS since_ms FROM sources WHERE origin = 'forgotten' ORDER BY name;

-- name: items_of_source
-- Those of some keys that nobody works on.
SELECT /* leaving */ FROM items
WHERE items.pipeline = :pipeline AND items.kind = :kind AND items.key >= :first AND items.key < :beyond
    AND items.lease_until IS NULL AND /* no_open_delivery */
ORDER BY items.id LIMIT :limit;

-- name: count_items_of_source
SELECT count(*) AS n FROM items
WHERE items.pipeline = :pipeline AND items.kind = :kind AND items.key >= :first AND items.key < :beyond;
