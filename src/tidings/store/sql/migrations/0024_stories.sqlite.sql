-- Stories: what the follower of the shelf has grouped, and where it stands. One row says how far the grouping is.
CREATE TABLE story_state (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    step INTEGER NOT NULL,
    place INTEGER NOT NULL,
    version INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    owner TEXT NOT NULL,
    owner_until INTEGER NOT NULL
);

CREATE TABLE story_positions (
    pipeline TEXT NOT NULL PRIMARY KEY,
    position TEXT NOT NULL
) WITHOUT ROWID;

-- An item that tells something. Its place is the order in which it was grouped; without a story it waits for its turn.
CREATE TABLE story_members (
    item INTEGER NOT NULL PRIMARY KEY,
    pipeline TEXT NOT NULL,
    key TEXT NOT NULL,
    source TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    facts BLOB NOT NULL,
    digest BLOB NOT NULL,
    place INTEGER,
    seen_ms INTEGER,
    story INTEGER,
    terms BLOB,
    gone_at INTEGER
);
CREATE INDEX story_members_waiting ON story_members (place, time_ms, item) WHERE story IS NULL;
CREATE UNIQUE INDEX story_members_by_place ON story_members (place);
CREATE INDEX story_members_by_story ON story_members (story, time_ms);
CREATE INDEX story_members_by_key ON story_members (pipeline, key);

CREATE TABLE stories (
    id INTEGER NOT NULL PRIMARY KEY,
    first_ms INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    size INTEGER NOT NULL,
    sources INTEGER NOT NULL,
    version INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
);
CREATE INDEX stories_by_time ON stories (last_ms, id) WHERE size > 1;
CREATE INDEX stories_by_version ON stories (version, id);

-- What a person has split or joined, at its place among what was grouped.
CREATE TABLE story_decisions (
    place INTEGER NOT NULL,
    item INTEGER NOT NULL,
    target INTEGER,
    actor TEXT NOT NULL,
    decided_at INTEGER NOT NULL,
    applied_at INTEGER,
    PRIMARY KEY (place, item)
) WITHOUT ROWID;
