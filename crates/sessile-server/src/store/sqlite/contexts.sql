-- Which session an agent's context belongs to, for good: what an agent calls alike in two sessions is the first one's. The
-- context is a hash of the agent's address and its own name for it.
CREATE TABLE agent_context (
    context TEXT NOT NULL PRIMARY KEY,
    user    TEXT NOT NULL,
    session TEXT NOT NULL
) STRICT, WITHOUT ROWID;
