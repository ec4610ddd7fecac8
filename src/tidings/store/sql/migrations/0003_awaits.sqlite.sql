-- Who awaits an item that is not here yet: a few at most, so whether there are any is known at once.
CREATE INDEX links_awaiting ON links (pipeline, parent) WHERE relation = 'awaits';
