-- Sources that have an address: each is named once, and keeps its name wherever it stands in a list.
CREATE TABLE sources (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    pipeline text NOT NULL,
    address text COLLATE "C" NOT NULL,
    origin text NOT NULL,
    options text NOT NULL,
    added_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    UNIQUE (pipeline, address)
);
