-- What a session remembers about its agents. The newest of an agent is found by the key alone, however many there are. What is
-- part of the key is never null; each word of this is read by every command that opens the store, so none is to spare.
CREATE TABLE conversation (
    user TEXT, session TEXT, agent TEXT, used INTEGER, id TEXT,
    name TEXT, context_id TEXT, task_id TEXT, task_state TEXT,
    started_ms INTEGER, used_ms INTEGER, next_item INTEGER,
    PRIMARY KEY (user, session, agent, used, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversation_context ON conversation (user, session, agent, context_id);
CREATE INDEX conversation_name ON conversation (user, session, name);
CREATE INDEX conversation_used ON conversation (user, session, used_ms);

-- Messages and artifacts, in order.
CREATE TABLE conversation_item (
    user TEXT, conversation TEXT, number INTEGER, kind TEXT, body TEXT, at_ms INTEGER,
    PRIMARY KEY (user, conversation, number)
) STRICT, WITHOUT ROWID;
