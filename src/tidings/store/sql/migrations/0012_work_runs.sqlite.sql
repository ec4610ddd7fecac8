-- What workers did, run by run; and how many findings the log held at the end of a look at a source.
ALTER TABLE runs ADD COLUMN in_log INTEGER;
CREATE TABLE work_runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pipeline TEXT NOT NULL,
    process TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    loaded INTEGER NOT NULL,
    processed INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    moved_to_end INTEGER NOT NULL,
    queue_length INTEGER NOT NULL
);
CREATE INDEX work_runs_by_pipeline ON work_runs (pipeline, id);
