-- Cards that readers asked for: the server writes a wish, the poller lets a source fetch it.
CREATE TABLE wishes (
    pipeline text NOT NULL,
    collection text NOT NULL,
    id text COLLATE "C" NOT NULL,
    wished_at bigint NOT NULL,
    answered_at bigint,
    answer text,
    PRIMARY KEY (pipeline, collection, id)
);
CREATE INDEX wishes_waiting ON wishes (pipeline, collection, wished_at) WHERE answer IS NULL;
