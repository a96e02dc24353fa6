-- Which session an agent's context belongs to, for good: what an agent calls alike in two sessions is the first one's. The
-- context is a hash of the agent's address and its own name for it. Its key is the only one without the user, so that two
-- users cannot have the same.
CREATE TABLE claim (
    context text COLLATE "C" NOT NULL PRIMARY KEY,
    user_id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL
);
ALTER TABLE claim ENABLE ROW LEVEL SECURITY;
ALTER TABLE claim FORCE  ROW LEVEL SECURITY;
CREATE POLICY own ON claim USING (user_id = current_setting('sessile.user', true));
