-- What readers have read and starred. `read_at` is NULL where only the line below tells, 0 where kept unread.
CREATE TABLE marks (
    reader text COLLATE "C" NOT NULL,
    item bigint NOT NULL,
    read_at bigint,
    starred_at bigint,
    PRIMARY KEY (reader, item)
);
CREATE INDEX marks_starred ON marks (reader, starred_at) WHERE starred_at IS NOT NULL;
CREATE INDEX marks_by_item ON marks (item);

-- Everything of a pipeline up to this item counts as read; one row instead of one for each item.
CREATE TABLE read_lines (
    reader text COLLATE "C" NOT NULL,
    pipeline text COLLATE "C" NOT NULL,
    upto bigint NOT NULL,
    PRIMARY KEY (reader, pipeline)
);
