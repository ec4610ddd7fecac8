-- Every change of the shelf has a version of its own, and followers read them in order. What was written before gets
-- versions in the order it had.
UPDATE shelf SET version = numbered.version FROM (
    SELECT id, row_number() OVER (PARTITION BY pipeline ORDER BY version, id) AS version FROM shelf) AS numbered
WHERE numbered.id = shelf.id;
ALTER TABLE shelf_versions ADD COLUMN horizon INTEGER NOT NULL DEFAULT 0;
UPDATE shelf_versions SET version = max(version, (SELECT count(*) FROM shelf WHERE shelf.pipeline = shelf_versions.pipeline));
CREATE INDEX shelf_by_version ON shelf (pipeline, version);

-- What was taken off the shelf, for as long as the log is kept.
CREATE TABLE withdrawals (
    pipeline TEXT NOT NULL,
    version INTEGER NOT NULL,
    item INTEGER NOT NULL,
    key TEXT NOT NULL,
    collection TEXT NOT NULL,
    withdrawn_at INTEGER NOT NULL,
    PRIMARY KEY (pipeline, version)
) WITHOUT ROWID;
CREATE INDEX withdrawals_by_age ON withdrawals (withdrawn_at);

-- Positions in the stream of one database mean nothing in another, nor in a restored one.
INSERT INTO meta (name, value) VALUES ('stream', lower(hex(randomblob(6))));

-- The search has an index of its own now, which follows the stream.
DROP TABLE documents_text;
DROP TABLE documents;
