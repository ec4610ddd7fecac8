-- What is asked of SQLite files alone: backups are such files, whatever database they were taken from.

-- name: list_columns
-- All tables with their columns, the schema first; a virtual table counts, the tables that it keeps for itself do not.
SELECT listed.name AS table_name, listed.wr AS is_without_rowid, info.name, info.pk AS place_in_key
FROM pragma_table_list listed JOIN pragma_table_info(listed.name) info
WHERE listed.schema = 'main' AND listed.type IN ('table', 'virtual') AND listed.name <> 'digests'
ORDER BY listed.name <> 'sqlite_schema', listed.name, info.cid;

-- name: numbered_tables
-- The tables whose ids are drawn, and never drawn again.
SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%';

-- name: tree_name
-- Which table or index a tree of pages belongs to: a check of the file names only the page.
SELECT name FROM sqlite_schema WHERE rootpage = :page;

-- name: any_digests
SELECT 1 AS found FROM sqlite_schema WHERE name = 'digests';

-- name: create_digests
CREATE TABLE digests (name TEXT PRIMARY KEY, rows INTEGER NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID;

-- name: put_digests
-- rows: name text, rows bigint, digest text
INSERT INTO digests (name, rows, digest) SELECT name, rows, digest FROM given;

-- name: read_digests
SELECT name, rows, digest FROM digests ORDER BY name;
