-- Stories: what the follower of the shelf has grouped, and where it stands. One row says how far the grouping is.
CREATE TABLE story_state (
    id bigint NOT NULL PRIMARY KEY CHECK (id = 1),
    step bigint NOT NULL,
    place bigint NOT NULL,
    version bigint NOT NULL,
    settled bigint NOT NULL,
    owner text NOT NULL,
    owner_until bigint NOT NULL
);

CREATE TABLE story_positions (
    pipeline text NOT NULL PRIMARY KEY,
    position text NOT NULL
);

-- An item that tells something. Its place is the order in which it was grouped; without a story it waits for its turn.
CREATE TABLE story_members (
    item bigint NOT NULL PRIMARY KEY,
    pipeline text NOT NULL,
    key text COLLATE "C" NOT NULL,
    source text NOT NULL,
    time_ms bigint NOT NULL,
    facts bytea NOT NULL,
    digest bytea NOT NULL,
    place bigint,
    seen_ms bigint,
    story bigint,
    terms bytea,
    gone_at bigint
);
CREATE INDEX story_members_waiting ON story_members (place, time_ms, item) WHERE story IS NULL;
CREATE UNIQUE INDEX story_members_by_place ON story_members (place);
CREATE INDEX story_members_by_story ON story_members (story, time_ms);
CREATE INDEX story_members_by_key ON story_members (pipeline, key);

CREATE TABLE stories (
    id bigint NOT NULL PRIMARY KEY,
    first_ms bigint NOT NULL,
    last_ms bigint NOT NULL,
    size bigint NOT NULL,
    sources bigint NOT NULL,
    version bigint NOT NULL,
    changed_at bigint NOT NULL
);
CREATE INDEX stories_by_time ON stories (last_ms, id) WHERE size > 1;
CREATE INDEX stories_by_version ON stories (version, id);

-- What a person has split or joined, at its place among what was grouped.
CREATE TABLE story_decisions (
    place bigint NOT NULL,
    item bigint NOT NULL,
    target bigint,
    actor text NOT NULL,
    decided_at bigint NOT NULL,
    applied_at bigint,
    PRIMARY KEY (place, item)
);
