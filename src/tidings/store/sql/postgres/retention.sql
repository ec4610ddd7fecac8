-- What PostgreSQL does differently in retention.sql, and why.

-- part: unless_locked
-- The merge retires while it holds other items' rows. A worker that settles locks rows in the order of their ids: waiting
-- for one of them out of that order could be a deadlock. What is locked goes when it is tidied.
FOR UPDATE OF items SKIP LOCKED
