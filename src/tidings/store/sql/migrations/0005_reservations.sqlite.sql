-- A stretch of the log that one worker runs before its items are born.
ALTER TABLE aheads RENAME TO reservations;
DROP INDEX aheads_in_order;
CREATE INDEX reservations_in_order ON reservations (pipeline, through);

-- A settle returns what waits for it; nothing looks for waiting revisions by themselves any more.
DROP INDEX items_waiting;
