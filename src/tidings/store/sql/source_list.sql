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
