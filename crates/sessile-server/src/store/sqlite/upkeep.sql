-- From when on there can be something of a user's that is to be removed one day, by kind: a sweep visits only those for whom it
-- is time.
CREATE TABLE upkeep (
    user     TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    since_ms INTEGER NOT NULL,
    PRIMARY KEY (user, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX upkeep_since ON upkeep (kind, since_ms);
INSERT INTO upkeep (user, kind, since_ms)
    SELECT user, kind.column1, 0 FROM account, (VALUES ('answered'), ('events'), ('audit'), ('sessions')) AS kind;
DROP INDEX answered_at;
CREATE INDEX answered_at ON answered (user, at_ms);

-- Which process does what only one is to do, and until when.
CREATE TABLE lease (
    name     TEXT    NOT NULL PRIMARY KEY,
    holder   TEXT    NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What holds for a store since it was made. A store that is older has no rows here.
CREATE TABLE store_setting (
    name  TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
