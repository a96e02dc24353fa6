-- When a session is over as things stand: it was ended, or it expires. Live sessions, and those that are due for removal, are
-- found by the index.
ALTER TABLE session ADD COLUMN over_ms INTEGER
    GENERATED ALWAYS AS (coalesce(ended_ms, min(used_ms + idle_ms, started_ms + max_ms))) VIRTUAL;
CREATE INDEX session_over ON session (user, over_ms);

-- The labels of sessions, for searching. The column `labels` of a session has the same.
CREATE TABLE label (
    user    TEXT NOT NULL,
    key     TEXT NOT NULL,
    value   TEXT NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (user, key, value, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX label_session ON label (user, session);
INSERT INTO label (user, key, value, session)
    SELECT session.user, each.key, each.value, session.id FROM session, json_each(session.labels) AS each;
