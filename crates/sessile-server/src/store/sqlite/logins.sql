-- Machines that ask to be let in, until somebody who administers the store decides, and the token is collected. Both codes
-- are here only as what they hash to; the token is made when it is collected, so it never is.
CREATE TABLE login (
    device_hash      TEXT    NOT NULL PRIMARY KEY,
    code_hash        TEXT    NOT NULL UNIQUE,
    client           TEXT    NOT NULL,
    peer             TEXT,
    asked_ms         INTEGER NOT NULL,
    expires_ms       INTEGER NOT NULL,
    state            TEXT    NOT NULL,
    user             TEXT,
    scopes           TEXT,
    token_expires_ms INTEGER
) STRICT, WITHOUT ROWID;
