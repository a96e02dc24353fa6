-- When a session is over as things stand: it was ended, or it expires. A column, for row security keeps the index of an
-- expression from being used.
ALTER TABLE session ADD COLUMN over_ms bigint
    GENERATED ALWAYS AS (coalesce(ended_ms, least(used_ms + idle_ms, started_ms + max_ms))) STORED;
CREATE INDEX session_over ON session (user_id, over_ms);

-- The labels of sessions, for searching. The column `labels` of a session has the same.
CREATE TABLE label (
    user_id text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    value   text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, key, value, session)
);
CREATE INDEX label_session ON label (user_id, session);
-- The owner has to see everybody's sessions for a moment.
ALTER TABLE session NO FORCE ROW LEVEL SECURITY;
INSERT INTO label (user_id, key, value, session)
    SELECT user_id, each.key, each.value, id FROM session, json_each_text(labels::json) AS each;
ALTER TABLE session FORCE ROW LEVEL SECURITY;
ALTER TABLE label ENABLE ROW LEVEL SECURITY;
ALTER TABLE label FORCE  ROW LEVEL SECURITY;
CREATE POLICY own ON label USING (user_id = current_setting('sessile.user', true));
