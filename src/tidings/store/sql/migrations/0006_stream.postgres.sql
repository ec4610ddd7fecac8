-- Every change of the shelf has a version of its own, and followers read them in order. What was written before gets
-- versions in the order it had.
UPDATE shelf SET version = numbered.version FROM (
    SELECT id, row_number() OVER (PARTITION BY pipeline ORDER BY version, id) AS version FROM shelf) AS numbered
WHERE numbered.id = shelf.id;
ALTER TABLE shelf_versions ADD COLUMN horizon bigint NOT NULL DEFAULT 0;
UPDATE shelf_versions SET version = greatest(version, (SELECT count(*) FROM shelf WHERE shelf.pipeline = shelf_versions.pipeline));
CREATE INDEX shelf_by_version ON shelf (pipeline, version);

-- What was taken off the shelf, for as long as the log is kept.
CREATE TABLE withdrawals (
    pipeline text NOT NULL,
    version bigint NOT NULL,
    item bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    collection text NOT NULL,
    withdrawn_at bigint NOT NULL,
    PRIMARY KEY (pipeline, version)
);
CREATE INDEX withdrawals_by_age ON withdrawals (withdrawn_at);

-- Positions in the stream of one database mean nothing in another, nor in a restored one.
INSERT INTO meta (name, value) VALUES ('stream', substr(md5(random()::text || clock_timestamp()::text), 1, 12));

-- The search has an index of its own now, which follows the stream.
DROP TABLE documents;
DROP TEXT SEARCH CONFIGURATION tidings;
DROP TEXT SEARCH DICTIONARY tidings_stem;
