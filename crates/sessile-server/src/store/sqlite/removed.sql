-- What restores have removed: a later restore neither revives nor repeats it. Rows of sessions, users and tokens that the store
-- has again are dropped.
CREATE TABLE removed_session (
    user       TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    ended_ms   INTEGER,
    end_reason TEXT,
    revision   INTEGER NOT NULL,
    next_event INTEGER NOT NULL,
    PRIMARY KEY (user, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE removed_account (
    user        TEXT    NOT NULL PRIMARY KEY,
    disabled_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE removed_token (
    hash       TEXT    NOT NULL PRIMARY KEY,
    revoked_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
