-- What readers have read and starred. `read_at` is NULL where only the line below tells, 0 where kept unread.
CREATE TABLE marks (
    reader TEXT NOT NULL,
    item INTEGER NOT NULL,
    read_at INTEGER,
    starred_at INTEGER,
    PRIMARY KEY (reader, item)
) WITHOUT ROWID;
CREATE INDEX marks_starred ON marks (reader, starred_at) WHERE starred_at IS NOT NULL;
CREATE INDEX marks_by_item ON marks (item);

-- Everything of a pipeline up to this item counts as read; one row instead of one for each item.
CREATE TABLE read_lines (
    reader TEXT NOT NULL,
    pipeline TEXT NOT NULL,
    upto INTEGER NOT NULL,
    PRIMARY KEY (reader, pipeline)
) WITHOUT ROWID;
