-- Cards that readers asked for and a source is to fetch.

-- name: wish
SELECT answer, tidings_now() - answered_at AS age_ms FROM wishes
WHERE pipeline = :pipeline AND collection = :collection AND id = :id;

-- name: count_wishes
SELECT count(*) AS wishes FROM wishes WHERE pipeline = :pipeline AND answer IS NULL;

-- name: put_wish
INSERT INTO wishes (pipeline, collection, id, wished_at) VALUES (:pipeline, :collection, :id, tidings_now())
ON CONFLICT (pipeline, collection, id) DO UPDATE SET wished_at = excluded.wished_at, answer = NULL, answered_at = NULL
WHERE wishes.answer IS NOT NULL;

-- name: waiting_wishes
SELECT id FROM wishes WHERE pipeline = :pipeline AND collection = :collection AND answer IS NULL
ORDER BY wished_at, id LIMIT :limit;

-- name: answer_wishes
-- rows: pipeline text, collection text, id text, answer text
UPDATE wishes SET answer = given.answer, answered_at = (SELECT tidings_now()) FROM given
WHERE wishes.pipeline = given.pipeline AND wishes.collection = given.collection AND wishes.id = given.id;

-- name: renew_wishes
-- Only of cards that are shown, and not of those that were fetched a moment ago.
-- rows: pipeline text, collection text, id text, key text
INSERT INTO wishes (pipeline, collection, id, wished_at)
SELECT given.pipeline, given.collection, given.id, (SELECT tidings_now()) FROM given CROSS JOIN shelf
WHERE shelf.pipeline = given.pipeline AND shelf.key = given.key
ON CONFLICT (pipeline, collection, id) DO UPDATE SET wished_at = excluded.wished_at, answer = NULL, answered_at = NULL
WHERE wishes.answer IS NOT NULL AND wishes.answered_at < excluded.wished_at - 600000;

-- name: drop_old_wishes
DELETE FROM wishes WHERE coalesce(answered_at, wished_at) < tidings_now() - :keep_ms;
