-- Whose a row is stands first in every key, so that the tables can be spread by it. The column is not called `user`:
-- unquoted, that is the database's role, and a condition on it would be silently wrong. Texts are compared by their
-- bytes, as in the other store. No sequences and no triggers: numbers come from the rows' own counters.
CREATE TABLE session (
    user_id      text   COLLATE "C" NOT NULL,
    id           text   COLLATE "C" NOT NULL,
    name         text   COLLATE "C",
    context      text,
    labels       text   NOT NULL,
    idle_ms      bigint NOT NULL,
    max_ms       bigint NOT NULL,
    started_ms   bigint NOT NULL,
    used_ms      bigint NOT NULL,
    ended_ms     bigint,
    end_reason   text,
    revision     bigint NOT NULL,
    next_message bigint NOT NULL,
    next_event   bigint NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE UNIQUE INDEX session_live_name ON session (user_id, name) WHERE ended_ms IS NULL AND name IS NOT NULL;

-- A session's own settings and its small values, told apart by kind.
CREATE TABLE entry (
    user_id    text   COLLATE "C" NOT NULL,
    session    text   COLLATE "C" NOT NULL,
    kind       text   COLLATE "C" NOT NULL,
    key        text   COLLATE "C" NOT NULL,
    value      text   NOT NULL,
    revision   bigint NOT NULL,
    changed_ms bigint NOT NULL,
    PRIMARY KEY (user_id, session, kind, key)
);

-- Bodies are JSON as it was sent: the database's own type changes it, and refuses some of it.
CREATE TABLE message (
    user_id text   COLLATE "C" NOT NULL,
    session text   COLLATE "C" NOT NULL,
    number  bigint NOT NULL,
    token   bigint NOT NULL,
    body    text   NOT NULL,
    at_ms   bigint NOT NULL,
    PRIMARY KEY (user_id, session, number)
);

CREATE TABLE event (
    user_id text   COLLATE "C" NOT NULL,
    session text   COLLATE "C" NOT NULL,
    number  bigint NOT NULL,
    kind    text   NOT NULL,
    body    text   NOT NULL,
    at_ms   bigint NOT NULL,
    PRIMARY KEY (user_id, session, number)
);

-- The next number of each queue: places and fencing tokens are taken from it, so that neither comes twice.
CREATE TABLE queue (
    user_id  text   COLLATE "C" NOT NULL,
    resource text   COLLATE "C" NOT NULL,
    next     bigint NOT NULL,
    PRIMARY KEY (user_id, resource)
);

-- The processes in which somebody waits, and when they were last heard of: who waits in one that has died is passed over.
CREATE TABLE process (
    id      text   COLLATE "C" NOT NULL PRIMARY KEY,
    seen_ms bigint NOT NULL
);

-- Who holds and who waits, in which process, for which request.
CREATE TABLE place (
    user_id    text   COLLATE "C" NOT NULL,
    resource   text   COLLATE "C" NOT NULL,
    place      bigint NOT NULL,
    token      bigint,
    holder     text   NOT NULL,
    process    text   COLLATE "C" NOT NULL,
    claim      text   COLLATE "C" NOT NULL,
    asked_ms   bigint NOT NULL,
    expires_ms bigint NOT NULL,
    PRIMARY KEY (user_id, resource, place)
);

-- What came of a change that may be sent again.
CREATE TABLE answered (
    user_id text   COLLATE "C" NOT NULL,
    key     text   COLLATE "C" NOT NULL,
    change  text   NOT NULL,
    done    text   NOT NULL,
    at_ms   bigint NOT NULL,
    PRIMARY KEY (user_id, key)
);
CREATE INDEX answered_at ON answered (user_id, at_ms);

CREATE TABLE audit (
    user_id text   COLLATE "C" NOT NULL,
    id      text   COLLATE "C" NOT NULL,
    at_ms   bigint NOT NULL,
    token   text,
    action  text   NOT NULL,
    session text,
    subject text,
    outcome text   NOT NULL,
    PRIMARY KEY (user_id, id)
);

CREATE TABLE account (
    user_id     text   COLLATE "C" NOT NULL PRIMARY KEY,
    made_ms     bigint NOT NULL,
    disabled_ms bigint
);

-- A token itself is nowhere: only what it hashes to.
CREATE TABLE token (
    hash       text   COLLATE "C" NOT NULL PRIMARY KEY,
    id         text   COLLATE "C" NOT NULL UNIQUE,
    user_id    text   COLLATE "C" NOT NULL,
    scopes     text   NOT NULL,
    made_ms    bigint NOT NULL,
    expires_ms bigint,
    revoked_ms bigint
);
CREATE INDEX token_of ON token (user_id, made_ms, id);

-- The second wall: whoever forgets the user in a query still sees nothing of anybody else's, the owner of the tables
-- included. With nobody said, nothing is seen.
ALTER TABLE session  ENABLE ROW LEVEL SECURITY;
ALTER TABLE session  FORCE  ROW LEVEL SECURITY;
ALTER TABLE entry    ENABLE ROW LEVEL SECURITY;
ALTER TABLE entry    FORCE  ROW LEVEL SECURITY;
ALTER TABLE message  ENABLE ROW LEVEL SECURITY;
ALTER TABLE message  FORCE  ROW LEVEL SECURITY;
ALTER TABLE event    ENABLE ROW LEVEL SECURITY;
ALTER TABLE event    FORCE  ROW LEVEL SECURITY;
ALTER TABLE queue    ENABLE ROW LEVEL SECURITY;
ALTER TABLE queue    FORCE  ROW LEVEL SECURITY;
ALTER TABLE place    ENABLE ROW LEVEL SECURITY;
ALTER TABLE place    FORCE  ROW LEVEL SECURITY;
ALTER TABLE answered ENABLE ROW LEVEL SECURITY;
ALTER TABLE answered FORCE  ROW LEVEL SECURITY;
ALTER TABLE audit    ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit    FORCE  ROW LEVEL SECURITY;
CREATE POLICY own ON session  USING (user_id = current_setting('sessile.user', true));
CREATE POLICY own ON entry    USING (user_id = current_setting('sessile.user', true));
CREATE POLICY own ON message  USING (user_id = current_setting('sessile.user', true));
CREATE POLICY own ON event    USING (user_id = current_setting('sessile.user', true));
CREATE POLICY own ON queue    USING (user_id = current_setting('sessile.user', true));
CREATE POLICY own ON place    USING (user_id = current_setting('sessile.user', true));
CREATE POLICY own ON answered USING (user_id = current_setting('sessile.user', true));
CREATE POLICY own ON audit    USING (user_id = current_setting('sessile.user', true));
