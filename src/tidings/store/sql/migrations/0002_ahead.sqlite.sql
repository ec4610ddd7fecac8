-- Workers may run the next findings before their items are born: each a batch of the log, by the right of its id.
CREATE TABLE aheads (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pipeline TEXT NOT NULL,
    through INTEGER NOT NULL,
    until INTEGER NOT NULL
);
CREATE INDEX aheads_in_order ON aheads (pipeline, through);

-- What a worker vanished with is tried alone: the index holds nothing else.
CREATE INDEX items_suspect ON items (pipeline, lane, due_at, id)
    WHERE lost_leases > 0 AND due_at IS NOT NULL AND lease_until IS NULL;

-- Bulk gives way to what is more urgent.
CREATE INDEX intake_urgent ON intake (pipeline, id) WHERE priority < 2;

-- Ids of items that are not born yet are drawn here.
INSERT INTO sqlite_sequence (name, seq) SELECT 'items', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'items');
