-- What SQLite does differently, and why.

-- name: draw_item_ids
-- The last of the ids drawn, from where SQLite remembers it; the others are those before.
UPDATE sqlite_sequence SET seq = seq + :count WHERE name = 'items' RETURNING seq;

-- name: put_document
-- The full text lives in a virtual table beside the attributes.
-- params: id pipeline kind key author type score time url attributes
INSERT INTO documents (id, pipeline, kind, key, author, type, score, time, url, attributes)
VALUES (:id, :pipeline, :kind, :key, :author, :type, :score, :time, :url, :attributes)
ON CONFLICT (id) DO UPDATE
SET author = excluded.author, type = excluded.type, score = excluded.score, time = excluded.time, url = excluded.url,
    attributes = excluded.attributes;

-- name: put_text
-- Whenever a statement for many rows begins, the full text writes what it has gathered: one such statement is enough.
-- together
-- params: id title text
INSERT OR REPLACE INTO documents_text (rowid, title, text) VALUES (:id, :title, :text);

-- name: drop_text
-- params: id
DELETE FROM documents_text WHERE rowid = :id;

-- name: thread
-- SQLite's planner would look every child up by its own name; from the parent down is a thousand times faster.
WITH RECURSIVE below (ref, parent, position, depth) AS (
    SELECT l.child, l.parent, l.position, 1 FROM links l INDEXED BY links_by_parent
    WHERE l.pipeline = :pipeline AND l.relation = :relation AND l.parent = :root
        AND NOT EXISTS (SELECT 1 FROM links b
            WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
                AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))
    UNION
    SELECT l.child, l.parent, l.position, below.depth + 1
    FROM below CROSS JOIN links l INDEXED BY links_by_parent
    WHERE l.pipeline = :pipeline AND l.relation = :relation AND l.parent = below.ref AND below.depth < 200
        AND NOT EXISTS (SELECT 1 FROM links b
            WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
                AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))
)
SELECT ref, parent, position, depth FROM below
ORDER BY depth, parent, position IS NULL, position, length(ref), ref LIMIT :limit;

-- name: create_digests
-- In backups alone, which are SQLite files whatever the database.
CREATE TABLE digests (name TEXT PRIMARY KEY, rows INTEGER NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID;

-- name: put_digest
-- params: name rows digest
INSERT INTO digests (name, rows, digest) VALUES (:name, :rows, :digest);

-- name: read_digests
SELECT name, rows, digest FROM digests ORDER BY name;

-- name: list_columns
-- All tables of a backup with their columns, the schema first; a virtual table counts, what it keeps for itself does not.
SELECT l.name, l.wr, i.name, i.pk FROM pragma_table_list l JOIN pragma_table_info(l.name) i
WHERE l.schema = 'main' AND l.type IN ('table', 'virtual') AND l.name <> 'digests'
ORDER BY l.name <> 'sqlite_schema', l.name, i.cid;
