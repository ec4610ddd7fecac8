-- Which item a tombstone is of: the last line of its journal is kept as long, and tells why it was removed.
ALTER TABLE tombstones ADD COLUMN item bigint NOT NULL DEFAULT 0;
