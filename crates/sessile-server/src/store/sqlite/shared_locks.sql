-- Mode of a place: 1 for a lock that is shared.
ALTER TABLE place ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;
