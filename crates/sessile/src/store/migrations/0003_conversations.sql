-- What a session remembers about its agents. The newest of an agent is found by the key alone, however many there are.
CREATE TABLE conversation (
    user       TEXT    NOT NULL,
    session    TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    used       INTEGER NOT NULL,
    id         TEXT    NOT NULL,
    name       TEXT,
    context_id TEXT,
    task_id    TEXT,
    task_state TEXT,
    started_ms INTEGER NOT NULL,
    used_ms    INTEGER NOT NULL,
    next_item  INTEGER NOT NULL,
    PRIMARY KEY (user, session, agent, used, id)
) STRICT, WITHOUT ROWID;

-- Each index costs every command that opens the store: these are for what is asked for all the time.
CREATE INDEX conversation_context ON conversation (user, session, agent, context_id);
CREATE INDEX conversation_used ON conversation (user, session, used_ms);

-- Messages and artifacts, in order.
CREATE TABLE conversation_item (
    user         TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (user, conversation, number)
) STRICT, WITHOUT ROWID;
