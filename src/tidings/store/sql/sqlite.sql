-- What SQLite does differently, and why.

-- name: put_document
-- The full text lives in a virtual table beside the attributes.
-- params: id pipeline kind key author type score time url attributes
INSERT INTO documents (id, pipeline, kind, key, author, type, score, time, url, attributes)
VALUES (:id, :pipeline, :kind, :key, :author, :type, :score, :time, :url, :attributes)
ON CONFLICT (id) DO UPDATE
SET author = excluded.author, type = excluded.type, score = excluded.score, time = excluded.time, url = excluded.url,
    attributes = excluded.attributes;

-- name: put_text
-- params: id title text
INSERT OR REPLACE INTO documents_text (rowid, title, text) VALUES (:id, :title, :text);

-- name: drop_text
-- params: id
DELETE FROM documents_text WHERE rowid = :id;
