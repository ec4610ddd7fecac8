-- Up to which finding of the log a removed item had been merged: what stands before it brings nothing new.
ALTER TABLE tombstones ADD COLUMN intake_id INTEGER NOT NULL DEFAULT 0;
