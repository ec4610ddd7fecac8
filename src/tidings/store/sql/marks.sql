-- Read and star marks of readers.

-- name: marks_of
-- rows: item bigint
SELECT marks.item, marks.read_at, marks.starred_at FROM given CROSS JOIN marks
WHERE marks.reader = :reader AND marks.item = given.item;

-- name: put_read_marks
-- Only of items that are shown: what is gone needs no mark.
-- rows: item bigint
INSERT INTO marks (reader, item, read_at)
SELECT :reader, given.item, CASE WHEN :is_read = 1 THEN (SELECT tidings_now()) ELSE 0 END
FROM given CROSS JOIN shelf WHERE shelf.id = given.item
ON CONFLICT (reader, item) DO UPDATE SET read_at = excluded.read_at;

-- name: put_star_marks
-- rows: item bigint
INSERT INTO marks (reader, item, starred_at)
SELECT :reader, given.item, CASE WHEN :is_starred = 1 THEN (SELECT tidings_now()) END
FROM given CROSS JOIN shelf WHERE shelf.id = given.item
ON CONFLICT (reader, item) DO UPDATE SET starred_at = excluded.starred_at;

-- name: starred_items
SELECT item, starred_at FROM marks WHERE reader = :reader AND starred_at IS NOT NULL
ORDER BY starred_at DESC LIMIT :limit;

-- name: read_lines
SELECT pipeline, upto FROM read_lines WHERE reader = :reader;

-- name: put_read_line
INSERT INTO read_lines (reader, pipeline, upto) VALUES (:reader, :pipeline, :upto)
ON CONFLICT (reader, pipeline) DO UPDATE SET upto = excluded.upto WHERE read_lines.upto < excluded.upto;

-- name: end_kept_unread
-- What was kept unread is read with everything else of its pipeline.
DELETE FROM marks WHERE reader = :reader AND read_at = 0 AND starred_at IS NULL AND item <= :upto
    AND EXISTS (SELECT 1 FROM shelf WHERE shelf.id = marks.item AND shelf.pipeline = :pipeline);

-- name: end_kept_starred
UPDATE marks SET read_at = NULL WHERE reader = :reader AND read_at = 0 AND item <= :upto
    AND EXISTS (SELECT 1 FROM shelf WHERE shelf.id = marks.item AND shelf.pipeline = :pipeline);

-- name: newest_shown_item
-- The newest item that was shown at a time.
SELECT id FROM shelf WHERE id > 0 AND written_at <= :at ORDER BY id DESC LIMIT 1;

-- name: shelf_places
-- rows: item bigint
SELECT shelf.id AS item, shelf.pipeline, shelf.collection, shelf.key FROM given CROSS JOIN shelf
WHERE shelf.id = given.item;

-- name: drop_lost_marks
DELETE FROM marks WHERE NOT EXISTS (SELECT 1 FROM items WHERE items.id = marks.item);
