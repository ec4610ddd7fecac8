-- How a run ended: complete, incomplete, slowed, out of credits, refused, failed or stopped; NULL for earlier releases.
ALTER TABLE runs ADD COLUMN ended TEXT;
