-- The last failed attempt on the clock since boot, which nobody can set.
ALTER TABLE pin ADD boot TEXT;
ALTER TABLE pin ADD failed_boot_ms INTEGER;
