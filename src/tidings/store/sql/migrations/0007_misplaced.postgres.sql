-- Items that are to begin again because their card names a wrong parent: a few at most, so whether there are any is known
-- at once.
CREATE INDEX links_misplaced ON links (pipeline, child) WHERE relation = 'misplaced';
