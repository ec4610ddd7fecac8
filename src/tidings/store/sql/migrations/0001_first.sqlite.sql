CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE intake (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pipeline TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL CHECK (key <> ''),
    fingerprint TEXT NOT NULL,
    priority INTEGER NOT NULL,
    payload BLOB NOT NULL,
    source TEXT,
    appended_at INTEGER NOT NULL
);
CREATE INDEX intake_in_order ON intake (pipeline, id);
CREATE INDEX intake_by_key ON intake (pipeline, kind, key, id);

CREATE TABLE checkpoints (pipeline TEXT PRIMARY KEY, checkpoint INTEGER NOT NULL, moved_at INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE cursors (
    source TEXT PRIMARY KEY, cursor TEXT, mark TEXT, completed_runs INTEGER NOT NULL DEFAULT 0, moved_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE schedules (
    source TEXT PRIMARY KEY,
    pipeline TEXT NOT NULL,
    next_at INTEGER NOT NULL,
    lease_owner TEXT,
    lease_token INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    failures INTEGER NOT NULL DEFAULT 0,
    last_success_at INTEGER,
    last_new_at INTEGER,
    last_error TEXT
) WITHOUT ROWID;

CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    found INTEGER NOT NULL DEFAULT 0,
    new INTEGER NOT NULL DEFAULT 0,
    changed INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0,
    trimmed INTEGER NOT NULL DEFAULT 0,
    pages INTEGER NOT NULL DEFAULT 0,
    credits INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    note TEXT
);
CREATE INDEX runs_by_source ON runs (source, id);

CREATE TABLE items (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pipeline TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL CHECK (key <> ''),
    fingerprint TEXT NOT NULL,
    state TEXT NOT NULL,
    standing TEXT NOT NULL,
    lane TEXT,
    priority INTEGER NOT NULL,
    due_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    lost_leases INTEGER NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_token INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    revision INTEGER NOT NULL DEFAULT 1,
    accepted_revision INTEGER,
    waiting_revision INTEGER,
    intake_id INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    cause TEXT,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    state_since INTEGER NOT NULL,
    failing_since INTEGER,
    UNIQUE (pipeline, kind, key)
);
CREATE INDEX items_due ON items (pipeline, lane, priority, due_at, id) WHERE due_at IS NOT NULL AND lease_until IS NULL;
CREATE INDEX items_leased ON items (lease_until) WHERE lease_until IS NOT NULL;
-- Spelled out: SQLite would build the list of an IN anew for every row that is written.
CREATE INDEX items_stuck ON items (standing, pipeline, cause)
    WHERE standing = 'dead' OR standing = 'parked' OR standing = 'rejected';
CREATE INDEX items_waiting ON items (id) WHERE waiting_revision IS NOT NULL;

CREATE TABLE bodies (item INTEGER NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX bodies_by_item ON bodies (item, revision);

CREATE TABLE links (
    pipeline TEXT NOT NULL,
    relation TEXT NOT NULL,
    child TEXT NOT NULL,
    said_by INTEGER NOT NULL,
    parent TEXT NOT NULL,
    position INTEGER,
    PRIMARY KEY (pipeline, child, relation, said_by, parent)
) WITHOUT ROWID;
CREATE INDEX links_by_parent ON links (pipeline, parent, relation);

CREATE TABLE journal (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    item INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    token INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    from_state TEXT NOT NULL,
    to_state TEXT NOT NULL,
    ended TEXT NOT NULL,
    error TEXT,
    actor TEXT,
    steps BLOB
);
CREATE INDEX journal_by_item ON journal (item, id);

CREATE TABLE tombstones (
    pipeline TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    buried_at INTEGER NOT NULL,
    forget_at INTEGER NOT NULL,
    PRIMARY KEY (pipeline, kind, key)
) WITHOUT ROWID;
CREATE INDEX tombstones_by_age ON tombstones (forget_at);

-- A card's id is its item's; entries that belong to no item have negative ids.
CREATE TABLE shelf (
    id INTEGER PRIMARY KEY,
    pipeline TEXT NOT NULL,
    key TEXT NOT NULL,
    collection TEXT NOT NULL,
    sort INTEGER NOT NULL,
    value BLOB NOT NULL,
    revision INTEGER NOT NULL,
    version INTEGER NOT NULL,
    written_at INTEGER NOT NULL,
    expires_at INTEGER
);
CREATE UNIQUE INDEX shelf_by_key ON shelf (pipeline, key);
CREATE INDEX shelf_in_order ON shelf (pipeline, collection, sort, key);
CREATE INDEX shelf_expiring ON shelf (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE shelf_versions (pipeline TEXT PRIMARY KEY, version INTEGER NOT NULL, changed_at INTEGER NOT NULL) WITHOUT ROWID;

-- A document's id is its item's, and so is the full text's rowid.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    pipeline TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    author TEXT,
    type TEXT,
    score INTEGER,
    time INTEGER NOT NULL,
    url TEXT,
    attributes TEXT NOT NULL
);
CREATE INDEX documents_by_time ON documents (pipeline, time);
CREATE VIRTUAL TABLE documents_text USING fts5 (title, text, tokenize = 'porter unicode61 remove_diacritics 2');

CREATE TABLE budgets (
    name TEXT NOT NULL, day TEXT NOT NULL, spent INTEGER NOT NULL DEFAULT 0, reserved INTEGER NOT NULL DEFAULT 0,
    limited_to INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (name, day)
) WITHOUT ROWID;

CREATE TABLE limiters (
    name TEXT PRIMARY KEY, entries TEXT NOT NULL, token INTEGER NOT NULL, held_until INTEGER NOT NULL, not_before INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE caches (
    name TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, expires_at INTEGER NOT NULL, PRIMARY KEY (name, key)
);
CREATE INDEX caches_by_age ON caches (expires_at);

CREATE TABLE pauses (part TEXT PRIMARY KEY, reason TEXT NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE tokens (
    hash TEXT PRIMARY KEY, name TEXT NOT NULL, scope TEXT NOT NULL, created_at INTEGER NOT NULL, last_used_at INTEGER, revoked_at INTEGER
) WITHOUT ROWID;

CREATE TABLE alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL, subject TEXT NOT NULL, message TEXT NOT NULL, help TEXT NOT NULL,
    value REAL NOT NULL, threshold REAL NOT NULL, fired_at INTEGER NOT NULL, cleared_at INTEGER, notified_at INTEGER
);
CREATE UNIQUE INDEX alerts_firing ON alerts (name, subject) WHERE cleared_at IS NULL;

CREATE TABLE samples (series TEXT NOT NULL, at INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY (series, at)) WITHOUT ROWID;
