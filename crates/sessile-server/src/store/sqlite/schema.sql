-- What the service adds to the library's schema, in a file of its own. Whose a row is stands first in every key.
ALTER TABLE session ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE session ADD COLUMN used_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN next_event INTEGER NOT NULL DEFAULT 1;

-- The next number of each queue: places and fencing tokens are taken from it, so that neither comes twice.
CREATE TABLE queue (
    user     TEXT    NOT NULL,
    resource TEXT    NOT NULL,
    next     INTEGER NOT NULL,
    PRIMARY KEY (user, resource)
) STRICT, WITHOUT ROWID;

-- The processes in which somebody waits, and when they were last heard of: who waits in one that has died is passed over.
CREATE TABLE process (
    id      TEXT    NOT NULL PRIMARY KEY,
    seen_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who holds and who waits, in which process, for which request.
CREATE TABLE place (
    user       TEXT    NOT NULL,
    resource   TEXT    NOT NULL,
    place      INTEGER NOT NULL,
    token      INTEGER,
    holder     TEXT    NOT NULL,
    process    TEXT    NOT NULL,
    claim      TEXT    NOT NULL,
    asked_ms   INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (user, resource, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
    user    TEXT    NOT NULL,
    session TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    at_ms   INTEGER NOT NULL,
    PRIMARY KEY (user, session, number)
) STRICT, WITHOUT ROWID;

-- What came of a change that may be sent again.
CREATE TABLE answered (
    user   TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    change TEXT    NOT NULL,
    done   TEXT    NOT NULL,
    at_ms  INTEGER NOT NULL,
    PRIMARY KEY (user, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX answered_at ON answered (at_ms);

CREATE TABLE audit (
    user    TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    at_ms   INTEGER NOT NULL,
    token   TEXT,
    action  TEXT    NOT NULL,
    session TEXT,
    subject TEXT,
    outcome TEXT    NOT NULL,
    PRIMARY KEY (user, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE account (
    user        TEXT    NOT NULL PRIMARY KEY,
    made_ms     INTEGER NOT NULL,
    disabled_ms INTEGER
) STRICT, WITHOUT ROWID;

-- A token itself is nowhere: only what it hashes to.
CREATE TABLE token (
    hash       TEXT    NOT NULL PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    user       TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    made_ms    INTEGER NOT NULL,
    expires_ms INTEGER,
    revoked_ms INTEGER
) STRICT, WITHOUT ROWID;
