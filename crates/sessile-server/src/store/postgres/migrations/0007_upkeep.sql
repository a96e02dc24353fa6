-- From when on there can be something of a user's that is to be removed one day, by kind: a sweep visits only those for whom it
-- is time. It has no row security, for the sweep looks for users.
CREATE TABLE upkeep (
    user_id  text   COLLATE "C" NOT NULL,
    kind     text   COLLATE "C" NOT NULL,
    since_ms bigint NOT NULL,
    PRIMARY KEY (user_id, kind)
);
CREATE INDEX upkeep_since ON upkeep (kind, since_ms);
INSERT INTO upkeep (user_id, kind, since_ms)
    SELECT user_id, kind, 0 FROM account, unnest(ARRAY['answered', 'events', 'audit', 'sessions']) AS kind;

-- Which process does what only one is to do, and until when.
CREATE TABLE lease (
    name     text   COLLATE "C" NOT NULL PRIMARY KEY,
    holder   text   COLLATE "C" NOT NULL,
    until_ms bigint NOT NULL
);

-- What holds for a store since it was made. A store that is older has no rows here.
CREATE TABLE store_setting (
    name  text   COLLATE "C" NOT NULL PRIMARY KEY,
    value bigint NOT NULL
);
