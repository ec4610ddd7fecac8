-- Wake published funding calls once, so that each plans the days on which its deadlines come near.
UPDATE items SET due_at = 1
WHERE kind = 'opportunity' AND state = 'published' AND due_at IS NOT NULL AND lease_until IS NULL;
