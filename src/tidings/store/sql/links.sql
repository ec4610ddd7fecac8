-- Links between items, and the threads they form.

-- part: new_links
INSERT INTO links (pipeline, relation, child, said_by, parent, position)
SELECT pipeline, relation, child, said_by, parent, position FROM given WHERE true

-- name: insert_links
-- What new items state: none of it can be there yet.
-- rows: pipeline text, relation text, child text, said_by bigint, parent text, position bigint
/* new_links */;

-- name: put_links
-- rows: pipeline text, relation text, child text, said_by bigint, parent text, position bigint
/* new_links */
ON CONFLICT (pipeline, child, relation, said_by, parent) DO UPDATE SET position = excluded.position;

-- name: drop_links_of_child
-- What items stated of themselves.
-- rows: pipeline text, ref text
DELETE FROM links WHERE (pipeline, child) IN (SELECT given.pipeline, given.ref FROM given) AND said_by <> 0;

-- name: drop_links_of_parent
-- What items stated of those below them. Found by parent, deleted by key: SQLite would walk through all links of the
-- pipeline for (pipeline, parent) IN (...).
-- rows: pipeline text, ref text
DELETE FROM links WHERE (pipeline, child, relation, said_by, parent) IN (
    SELECT l.pipeline, l.child, l.relation, l.said_by, l.parent FROM given CROSS JOIN links l
    WHERE l.pipeline = given.pipeline AND l.parent = given.ref AND l.said_by = 0)
RETURNING relation, child, parent;

-- name: doubtful_places
-- Children for which something else is stated too.
-- rows: relation text, child text, parent text
SELECT given.relation, given.child, given.parent FROM given CROSS JOIN links
WHERE links.pipeline = :pipeline AND links.child = given.child AND links.parent <> given.parent AND links.parent <> ''
    AND links.relation IN (given.relation, 'placed', 'awaits');

-- name: standpoints
-- Where children stand by all that is stated, where their cards show them, and where they say themselves they stand.
-- Ordered by an expression: for ORDER BY parent alone, SQLite walks the index by parent through the whole pipeline.
-- PostgreSQL does so before the first ANALYZE where several relations are named, unless they are an expression too.
-- rows: relation text, child text
SELECT given.child,
    (SELECT l.parent FROM links l WHERE l.pipeline = :pipeline AND l.child = given.child
        AND l.relation = given.relation ORDER BY l.said_by, l.parent LIMIT 1) AS parent,
    (SELECT l.parent FROM links l WHERE l.pipeline = :pipeline AND l.child = given.child
        AND l.relation = 'placed' ORDER BY l.parent || '' LIMIT 1) AS placed,
    (SELECT l.parent FROM links l WHERE l.pipeline = :pipeline AND l.child = given.child
        AND l.relation || '' IN (given.relation, 'awaits') AND l.said_by = 1 ORDER BY l.parent || '' LIMIT 1) AS own
FROM given;

-- name: missing_parents
-- Children whose parent was never accepted.
-- rows: child text, kind text, key text
SELECT given.child, given.kind, given.key FROM given
WHERE NOT EXISTS (
    SELECT 1 FROM items WHERE items.pipeline = :pipeline AND items.kind = given.kind AND items.key = given.key
        AND items.accepted_revision IS NOT NULL);

-- name: misplaced
-- The items that are to begin again because their card names a wrong parent.
SELECT child, parent FROM links WHERE pipeline = :pipeline AND relation = 'misplaced' ORDER BY child LIMIT :limit;

-- name: drop_misplaced
-- rows: child text
DELETE FROM links WHERE pipeline = :pipeline AND relation = 'misplaced' AND child IN (SELECT given.child FROM given);

-- name: any_awaiting
-- Hardly any item awaits another, and then none has to be looked up by name.
SELECT 1 AS found FROM links WHERE pipeline = :pipeline AND relation = 'awaits' LIMIT 1;

-- name: awaiting
-- The items that await one of these.
-- rows: ref text
SELECT links.child, links.parent FROM given CROSS JOIN links
WHERE links.pipeline = :pipeline AND links.parent = given.ref AND links.relation = 'awaits';

-- name: children
-- Effective children: stated by the parent, or by the child where no parent claims it.
SELECT child, position FROM links l
WHERE pipeline = :pipeline AND relation = :relation AND parent = :parent
    AND NOT EXISTS (
        SELECT 1 FROM links b
        WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
            AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))
ORDER BY position IS NULL, position, length(child), child
LIMIT :limit;

-- name: children_of_each
-- Effective children of several. Neither in order nor with their positions, which are not in the index by parent: SQLite
-- would rather walk through all links of a pipeline.
-- rows: ref text
SELECT l.parent, l.child FROM given CROSS JOIN links l
WHERE l.pipeline = :pipeline AND l.parent = given.ref AND l.relation = :relation
    AND NOT EXISTS (
        SELECT 1 FROM links b
        WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
            AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))
LIMIT :limit;

-- name: parents
SELECT parent FROM links WHERE pipeline = :pipeline AND relation = :relation AND child = :child
ORDER BY said_by, parent;

-- name: named_parents
-- What an item stands below, in whatever relation; the word that counts comes first.
SELECT parent FROM links WHERE pipeline = :pipeline AND child = :child AND parent <> ''
    AND relation <> 'placed' AND relation <> 'misplaced'
ORDER BY said_by, parent;

-- part: is_heard
-- Of all that is stated on an item's place in one relation, this is the word that counts.
l.relation <> 'misplaced' AND l.relation <> 'placed' AND NOT EXISTS (
    SELECT 1 FROM links b
    WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
        AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))

-- name: relatives
-- Every relation an item takes part in, as its thread shows it: what others claim in vain is left out.
SELECT l.relation, l.child, l.parent FROM links l
WHERE l.pipeline = :pipeline AND l.child = :ref AND l.parent <> '' AND /* is_heard */
UNION SELECT l.relation, l.child, l.parent FROM links l
WHERE l.pipeline = :pipeline AND l.parent = :ref AND /* is_heard */
LIMIT 500;

-- name: thread
-- SQLite's planner would look every child up by its own name; from the parent down is a thousand times faster.
-- An item has one effective parent, so a circle can only close at the root.
WITH RECURSIVE below (ref, parent, position, depth) AS (
    SELECT l.child, l.parent, l.position, 1 FROM links l INDEXED BY links_by_parent
    WHERE l.pipeline = :pipeline AND l.relation = :relation AND l.parent = :root
        AND NOT EXISTS (SELECT 1 FROM links b
            WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
                AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))
    UNION
    SELECT l.child, l.parent, l.position, below.depth + 1
    FROM below CROSS JOIN links l INDEXED BY links_by_parent
    WHERE l.pipeline = :pipeline AND l.relation = :relation AND l.parent = below.ref AND l.child <> :root
        AND NOT EXISTS (SELECT 1 FROM links b
            WHERE b.pipeline = l.pipeline AND b.relation = l.relation AND b.child = l.child
                AND (b.said_by < l.said_by OR (b.said_by = l.said_by AND b.parent < l.parent)))
)
SELECT ref, parent, position, depth FROM below
ORDER BY depth, parent, position IS NULL, position, length(ref), ref LIMIT :limit;
