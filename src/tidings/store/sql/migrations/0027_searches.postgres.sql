-- Searches that readers keep, and whose marks a token gives.
CREATE TABLE searches (
    reader text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    query text COLLATE "C" NOT NULL,
    pipeline text,
    created_at bigint NOT NULL,
    PRIMARY KEY (reader, name)
);
ALTER TABLE tokens ADD COLUMN reader text;
