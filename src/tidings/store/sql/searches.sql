-- Searches that readers keep.

-- name: searches
SELECT name, title, query, pipeline, created_at FROM searches WHERE reader = :reader ORDER BY title, name;

-- name: put_search
INSERT INTO searches (reader, name, title, query, pipeline, created_at)
VALUES (:reader, :name, :title, :query, :pipeline, tidings_now())
ON CONFLICT (reader, name) DO UPDATE
SET title = excluded.title, query = excluded.query, pipeline = excluded.pipeline;

-- name: delete_search
DELETE FROM searches WHERE reader = :reader AND name = :name;
