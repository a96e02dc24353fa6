-- What a scope points to. For a directory and for the user the current value stands in their settings file,
-- and only the previous one is kept here.
CREATE TABLE pointer (
    kind       TEXT    NOT NULL,
    scope      TEXT    NOT NULL,
    place      TEXT    NOT NULL,
    account    TEXT    NOT NULL,
    value      TEXT,
    previous   TEXT,
    changed_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, scope, place, account)
) STRICT, WITHOUT ROWID;

-- Approvals are never removed: they are the record of who opened what, when, and for how long.
CREATE TABLE approval (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    context         TEXT    NOT NULL,
    granted_ms      INTEGER NOT NULL,
    expires_ms      INTEGER NOT NULL,
    boot            TEXT    NOT NULL,
    expires_boot_ms INTEGER NOT NULL,
    granted_by      TEXT    NOT NULL,
    terminal        TEXT    NOT NULL,
    with_pin        INTEGER NOT NULL,
    revoked_ms      INTEGER
) STRICT;
CREATE INDEX approval_by_context ON approval (context, expires_ms);

-- While a trusted file is being changed, its old and its new content are trusted both: whichever a crash leaves.
CREATE TABLE trusted (
    path        TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    trusted_ms  INTEGER NOT NULL,
    PRIMARY KEY (path, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE TABLE pin (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    hash      TEXT    NOT NULL,
    failures  INTEGER NOT NULL DEFAULT 0,
    failed_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
