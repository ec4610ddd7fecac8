-- Sources that have an address: each is named once, and keeps its name wherever it stands in a list.
CREATE TABLE sources (
    name TEXT NOT NULL PRIMARY KEY,
    pipeline TEXT NOT NULL,
    address TEXT NOT NULL,
    origin TEXT NOT NULL,
    options TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    UNIQUE (pipeline, address)
) WITHOUT ROWID;
