-- Session that a lock belongs to: the lock is released when the session ends.
ALTER TABLE place ADD COLUMN session TEXT;
