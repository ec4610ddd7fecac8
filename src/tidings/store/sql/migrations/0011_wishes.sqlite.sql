-- Cards that readers asked for: the server writes a wish, the poller lets a source fetch it.
CREATE TABLE wishes (
    pipeline TEXT NOT NULL,
    collection TEXT NOT NULL,
    id TEXT NOT NULL,
    wished_at INTEGER NOT NULL,
    answered_at INTEGER,
    answer TEXT,
    PRIMARY KEY (pipeline, collection, id)
) WITHOUT ROWID;
CREATE INDEX wishes_waiting ON wishes (pipeline, collection, wished_at) WHERE answer IS NULL;
