-- Which session an agent's context belongs to, for good: what an agent calls alike in two sessions is the first one's. The
-- context is a hash of the agent's address and its own name for it. Its key is the only one without the user, so that two
-- users cannot have the same.
CREATE TABLE agent_context (
    context text COLLATE "C" NOT NULL PRIMARY KEY,
    user_id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL
);
ALTER TABLE agent_context ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_context FORCE  ROW LEVEL SECURITY;
CREATE POLICY own ON agent_context USING (user_id = current_setting('sessile.user', true));
