-- Sessions with message rows that do not count: those of a fork that is being copied, and those that were rewound. A message
-- counts if its session exists and its number is below the session's `next_message`. The others are removed in slices.
CREATE TABLE leftover (
    user       TEXT    NOT NULL,
    session    TEXT    NOT NULL,
    since_ms   INTEGER NOT NULL,
    -- For a fork: the next event of its source when copying began. A rewind since then shows as an event.
    from_event INTEGER NOT NULL,
    PRIMARY KEY (user, session)
) STRICT, WITHOUT ROWID;
