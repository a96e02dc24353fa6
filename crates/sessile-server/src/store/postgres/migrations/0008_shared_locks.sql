-- Mode of a place: whether a lock is shared.
ALTER TABLE place ADD COLUMN shared boolean NOT NULL DEFAULT false;
