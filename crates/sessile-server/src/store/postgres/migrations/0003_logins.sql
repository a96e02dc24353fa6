-- Machines that ask to be let in, until somebody who administers the store decides, and the token is collected. Both codes
-- are here only as what they hash to; the token is made when it is collected, so it never is. As yet they are nobody's.
CREATE TABLE login (
    device_hash      text   COLLATE "C" NOT NULL PRIMARY KEY,
    code_hash        text   COLLATE "C" NOT NULL UNIQUE,
    client           text   NOT NULL,
    peer             text,
    asked_ms         bigint NOT NULL,
    expires_ms       bigint NOT NULL,
    state            text   NOT NULL,
    user_id          text   COLLATE "C",
    scopes           text,
    token_expires_ms bigint
);
