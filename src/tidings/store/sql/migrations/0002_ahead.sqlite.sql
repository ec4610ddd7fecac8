-- A worker may run the next findings before their items are born: one at a time, by the right of a token.
ALTER TABLE checkpoints ADD COLUMN ahead_token INTEGER NOT NULL DEFAULT 0;
ALTER TABLE checkpoints ADD COLUMN ahead_to INTEGER;
ALTER TABLE checkpoints ADD COLUMN ahead_until INTEGER;

-- Bulk gives way to what is more urgent.
CREATE INDEX intake_urgent ON intake (pipeline, id) WHERE priority < 2;
