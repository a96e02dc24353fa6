CREATE TABLE session (
    user            TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    name            TEXT,
    context         TEXT,
    owner           TEXT    NOT NULL,
    labels          TEXT    NOT NULL,
    idle_ms         INTEGER NOT NULL,
    max_ms          INTEGER NOT NULL,
    started_ms      INTEGER NOT NULL,
    boot            TEXT    NOT NULL,
    started_boot_ms INTEGER NOT NULL,
    started_awake_ms INTEGER NOT NULL,
    -- The earliest time at which it could have expired: what gc looks at first.
    check_ms        INTEGER NOT NULL,
    ended_ms        INTEGER,
    end_reason      TEXT,
    next_message    INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (user, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX session_live_name ON session (user, name) WHERE ended_ms IS NULL AND name IS NOT NULL;
CREATE INDEX session_live_check ON session (check_ms) WHERE ended_ms IS NULL;

-- A session's own settings and its small values, told apart by kind.
CREATE TABLE entry (
    user       TEXT    NOT NULL,
    session    TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL,
    PRIMARY KEY (user, session, kind, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE message (
    user    TEXT    NOT NULL,
    session TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    token   INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    at_ms   INTEGER NOT NULL,
    PRIMARY KEY (user, session, number)
) STRICT, WITHOUT ROWID;

-- One row for each that holds or waits for a resource, first come first served. The number is the fencing token;
-- AUTOINCREMENT never hands one out twice.
CREATE TABLE ticket (
    token           INTEGER PRIMARY KEY AUTOINCREMENT,
    resource        TEXT    NOT NULL,
    holder          TEXT    NOT NULL,
    asked_ms        INTEGER NOT NULL,
    held_ms         INTEGER,
    -- Set for a lease, which outlives the process that took it.
    expires_ms      INTEGER,
    boot            TEXT,
    expires_boot_ms INTEGER
) STRICT;
CREATE INDEX ticket_by_resource ON ticket (resource, token);

CREATE TABLE operation (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms     INTEGER NOT NULL,
    user      TEXT    NOT NULL,
    session   TEXT,
    terminal  TEXT,
    command   TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    effects   TEXT    NOT NULL,
    state     TEXT    NOT NULL,
    process   TEXT    NOT NULL,
    undoes    INTEGER,
    undone_by INTEGER
) STRICT;
CREATE INDEX operation_intents ON operation (id) WHERE state = 'intent';
