-- What PostgreSQL does differently in links.sql, and why.

-- name: doubtful_places
-- Before the first ANALYZE the planner compares each row with all links of the pipeline; OFFSET 0 keeps the look-up a look-up.
-- rows: relation text, child text, parent text
SELECT given.relation, given.child, given.parent FROM given
CROSS JOIN LATERAL (
    SELECT parent, relation FROM links WHERE links.pipeline = :pipeline AND links.child = given.child OFFSET 0) l
WHERE l.parent <> given.parent AND l.parent <> '' AND l.relation IN (given.relation, 'placed', 'awaits');

-- name: children
-- As above.
SELECT child, position FROM links l
WHERE pipeline = :pipeline AND relation = :relation AND parent = :parent
    AND NOT EXISTS (
        SELECT 1 FROM links b
        WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
            AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)) OFFSET 0)
ORDER BY position IS NULL, position, length(child), child
LIMIT :limit;

-- name: thread
-- As above; and each level looks up its own children instead of reading all links.
WITH RECURSIVE below (ref, parent, position, depth) AS (
    SELECT l.child, l.parent, l.position, 1 FROM links l
    WHERE l.pipeline = :pipeline AND l.relation = :relation AND l.parent = :root
        AND NOT EXISTS (SELECT 1 FROM links b
            WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
                AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)) OFFSET 0)
    UNION
    SELECT l.child, l.parent, l.position, below.depth + 1 FROM below
    CROSS JOIN LATERAL (
        SELECT child, parent, position FROM links l
        WHERE l.pipeline = :pipeline AND l.relation = :relation AND l.parent = below.ref
            AND NOT EXISTS (SELECT 1 FROM links b
                WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
                    AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)) OFFSET 0)
        OFFSET 0) l
    WHERE l.child <> :root
)
SELECT ref, parent, position, depth FROM below
ORDER BY depth, parent, position IS NULL, position, length(ref), ref LIMIT :limit;
