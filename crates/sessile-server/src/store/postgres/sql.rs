//! Every statement on what belongs to users, in one place. `{mine}` is where a statement is bound to its user.

use crate::rules::audit::changing;

/// Isolation of users. All but the first are only for tests, which show that each layer suffices alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserIsolation {
    /// Every statement is bound to its user, and row-level security enforces it too.
    #[default]
    Both,
    /// No statement is.
    OnlyRowSecurity,
    /// Row-level security is not required.
    OnlyStatements,
    /// No isolation.
    Neither,
}

impl UserIsolation {
    fn in_statements(self) -> bool {
        matches!(self, UserIsolation::Both | UserIsolation::OnlyStatements)
    }

    pub(super) fn in_rows(self) -> bool {
        matches!(self, UserIsolation::Both | UserIsolation::OnlyRowSecurity)
    }
}

/// Texts of the statements.
#[derive(Debug)]
pub(super) struct StatementTexts(Vec<String>);

impl StatementTexts {
    pub(super) fn new(isolation: UserIsolation) -> Self {
        // The parameter stays in use, so that both texts have the same parameters.
        let mine = if isolation.in_statements() { "user_id = $1" } else { "$1::text IS NOT NULL" };
        StatementTexts(Sql::ALL.iter().map(|text| text.replace("{mine}", mine)).collect())
    }

    pub(super) fn get(&self, sql: Sql) -> &str {
        self.0.get(sql as usize).map_or("", String::as_str)
    }
}

macro_rules! now {
    () => {
        "floor(extract(epoch FROM now()) * 1000)::bigint"
    };
}

macro_rules! session_columns {
    () => {
        "id, name, context, labels, revision, started_ms, used_ms, idle_ms, max_ms, ended_ms, end_reason, \
         next_message, next_event"
    };
}

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $($text:expr),+;)+) => {
        /// A statement. The first parameter is the user.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Sql { $($(#[$doc])* $name,)+ }
        impl Sql {
            const ALL: &[&str] = &[$(concat!($($text),+),)+];
        }
    };
}

statements! {
    /// Sets the user of the transaction for row-level security, and returns the time.
    As = "SELECT set_config('sessile.user', $1, true), floor(extract(epoch FROM now()) * 1000)::bigint";

    LockSession = "SELECT ", session_columns!(), " FROM session WHERE {mine} AND id = $2 FOR UPDATE";
    /// In the order of ids, which prevents deadlocks.
    LockSessions = "SELECT ", session_columns!(), " FROM session
        WHERE {mine} AND (id = $2 OR (name = $3 AND ended_ms IS NULL)) ORDER BY id FOR UPDATE";
    Session = "SELECT ", session_columns!(), " FROM session WHERE {mine} AND id = $2";
    /// By its id, or else by its name.
    SessionCalled = "SELECT ", session_columns!(), " FROM session
        WHERE {mine} AND (id = $2 OR (name = $2 AND ended_ms IS NULL)) ORDER BY id = $2 DESC LIMIT 1";
    /// Of these ids, the newest first.
    SessionsById = "SELECT ", session_columns!(), " FROM session
        WHERE {mine} AND id = ANY($2) ORDER BY id DESC";

    /// Live sessions, and whether they have the label; at most `$4` of them.
    Live = "SELECT id, $2::text IS NULL OR EXISTS (
            SELECT 1 FROM label WHERE {mine} AND key = $2 AND value = $3 AND label.session = live.id)
        FROM (SELECT id FROM session WHERE {mine} AND over_ms > ", now!(), "
              ORDER BY over_ms LIMIT $4) AS live";
    /// Sessions with a label, the newest first, and whether they are live.
    Labelled = "SELECT session, (SELECT over_ms > ", now!(), " FROM session WHERE {mine} AND id = found.session)
        FROM (SELECT session FROM label WHERE {mine} AND key = $2 AND value = $3 AND session < $4
              ORDER BY session DESC LIMIT $5) AS found";
    /// Sessions, the newest first, and whether they are live.
    Newest = "SELECT id, over_ms > ", now!(), " FROM session WHERE {mine} AND id < $2 ORDER BY id DESC LIMIT $3";
    InsertLabels = "INSERT INTO label (user_id, key, value, session)
        SELECT $1, key, value, $2 FROM unnest($3::text[], $4::text[]) AS given (key, value)";
    DropLabels = "DELETE FROM label WHERE {mine} AND session = $2";

    InsertSession = "INSERT INTO session (user_id, id, name, context, labels, idle_ms, max_ms, started_ms, used_ms,
            revision, next_message, next_event)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, 1, $9, $10)";
    UpdateSession = "UPDATE session SET name = $3, labels = $4, used_ms = $5, ended_ms = $6, end_reason = $7,
            revision = $8, next_message = $9, next_event = $10
        WHERE {mine} AND id = $2";
    UpdateCounters = "UPDATE session SET used_ms = $3, next_message = $4, next_event = $5 WHERE {mine} AND id = $2";

    Settings = "SELECT session, key, value FROM entry
        WHERE {mine} AND session = ANY($2) AND kind = 'setting' ORDER BY key";
    PutSetting = "INSERT INTO entry (user_id, session, kind, key, value, revision, changed_ms)
        VALUES ($1, $2, 'setting', $3, $4, 1, $5)
        ON CONFLICT (user_id, session, kind, key)
        DO UPDATE SET value = excluded.value, revision = entry.revision + 1, changed_ms = excluded.changed_ms";
    DropSetting = "DELETE FROM entry WHERE {mine} AND session = $2 AND kind = 'setting' AND key = $3";

    Entry = "SELECT kind, revision FROM entry
        WHERE {mine} AND session = $2 AND kind IN ('state', 'state-gone') AND key = $3";
    /// Up to the value that fills the page.
    Entries = "SELECT key, value, revision FROM (
            SELECT key, value, revision, sum(octet_length(value)) OVER (
                ORDER BY key ROWS UNBOUNDED PRECEDING) - octet_length(value) AS size_before
            FROM (SELECT key, value, revision FROM entry
                WHERE {mine} AND session = $2 AND kind = 'state' AND ($3::text IS NULL OR key = $3) AND key > $4
                ORDER BY key LIMIT $5) AS found) AS page
        WHERE size_before < $6 ORDER BY key";
    DropEntry = "DELETE FROM entry
        WHERE {mine} AND session = $2 AND kind IN ('state', 'state-gone') AND key = $3";
    InsertEntry = "INSERT INTO entry (user_id, session, kind, key, value, revision, changed_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";

    Conversation = "SELECT value FROM entry WHERE {mine} AND session = $2 AND kind = 'conversation'";
    DropConversation = "DELETE FROM entry WHERE {mine} AND session = $2 AND kind = 'conversation'";
    /// Keeps the owner of a context that another session has, of any user.
    ClaimContext = "INSERT INTO agent_context (user_id, context, session) VALUES ($1, $2, $3)
        ON CONFLICT (context) DO NOTHING";
    /// Only if the context is this session's.
    PutConversation = "INSERT INTO entry (user_id, session, kind, key, value, revision, changed_ms)
        SELECT $1, session, 'conversation', '', $4, 1, $5 FROM agent_context
        WHERE {mine} AND context = $2 AND session = $3";

    /// Up to the body that fills the page. A session without messages has one row without a number.
    Messages = "SELECT number, token, body, at_ms FROM session LEFT JOIN (
            SELECT number, token, body, at_ms, sum(octet_length(body)) OVER (
                ORDER BY number ROWS UNBOUNDED PRECEDING) - octet_length(body) AS size_before
            FROM (SELECT number, token, body, at_ms FROM message
                WHERE {mine} AND session = $2 AND number > $3 ORDER BY number LIMIT $4) AS found) AS page
            ON size_before < $5
        WHERE {mine} AND id = $2 ORDER BY number";
    /// Numbers have no gaps, so the last ones are found by the last one. From the body that fills the page. A session without
    /// messages has one row without a number.
    LastMessages = "SELECT number, token, body, at_ms FROM session LEFT JOIN (
            SELECT number, token, body, at_ms, sum(octet_length(body)) OVER (
                ORDER BY number DESC ROWS UNBOUNDED PRECEDING) - octet_length(body) AS size_before
            FROM message WHERE {mine} AND session = $2
                AND number >= (SELECT next_message - $3 FROM session WHERE {mine} AND id = $2)) AS page
            ON size_before < $4
        WHERE {mine} AND id = $2 ORDER BY number";
    InsertMessages = "INSERT INTO message (user_id, session, number, token, body, at_ms)
        SELECT $1, $2, $3::bigint + n - 1, $4, body, $5 FROM unnest($6::text[]) WITH ORDINALITY AS given (body, n)";
    /// Appends messages with their event, and deletes the conversation of an agent that does not know them.
    AppendMessages = "WITH dropped AS (
            DELETE FROM entry WHERE {mine} AND session = $2 AND kind = 'conversation'),
        messages AS (
            INSERT INTO message (user_id, session, number, token, body, at_ms)
            SELECT $1, $2, $3::bigint + n - 1, $4::bigint, body, $5::bigint
            FROM unnest($6::text[]) WITH ORDINALITY AS given (body, n)),
        events AS (
            INSERT INTO event (user_id, session, number, kind, body, at_ms) VALUES ($1, $2, $7, $8, $9, $5))
        UPDATE session SET used_ms = $10, next_message = $11, next_event = $12 WHERE {mine} AND id = $2";
    CopyMessages = "INSERT INTO message (user_id, session, number, token, body, at_ms)
        SELECT $1, $3, number, 0, body, at_ms FROM message WHERE {mine} AND session = $2 AND number <= $4";
    CutMessages = "DELETE FROM message WHERE {mine} AND session = $2 AND number > $3";

    Events = "SELECT number, kind, body, at_ms FROM event
        WHERE {mine} AND session = $2 AND number > $3 ORDER BY number LIMIT $4";
    LastEvent = "SELECT next_event - 1 FROM session WHERE {mine} AND id = $2";
    InsertEvent = "INSERT INTO event (user_id, session, number, kind, body, at_ms) VALUES ($1, $2, $3, $4, $5, $6)";

    /// Inserts the row if missing, so that two first requests serialize on it.
    LockQueue = "INSERT INTO queue (user_id, resource, next) VALUES ($1, $2, 1)
        ON CONFLICT (user_id, resource) DO UPDATE SET next = queue.next RETURNING next";
    Queue = "SELECT next FROM queue WHERE {mine} AND resource = $2 FOR UPDATE";
    SetQueue = "INSERT INTO queue (user_id, resource, next) VALUES ($1, $2, $3)
        ON CONFLICT (user_id, resource) DO UPDATE SET next = excluded.next";
    Places = "SELECT place, token, holder, asked_ms, expires_ms, shared, session, process, claim FROM place
        WHERE {mine} AND resource = $2";
    /// Number and places of a queue that the lock on its session protects. A queue without places has one row without one.
    TurnQueue = "SELECT place, token, holder, asked_ms, expires_ms, shared, session, process, claim,
            (SELECT next FROM queue WHERE {mine} AND resource = $2)
        FROM (VALUES (true)) AS always LEFT JOIN (
            SELECT place, token, holder, asked_ms, expires_ms, shared, session, process, claim FROM place
            WHERE {mine} AND resource = $2) AS found ON true";
    PutPlace = "INSERT INTO place (user_id, resource, place, token, holder, asked_ms, expires_ms, process, claim, shared,
            session)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (user_id, resource, place)
        DO UPDATE SET token = excluded.token, expires_ms = excluded.expires_ms, process = excluded.process,
            claim = excluded.claim";
    DropPlaces = "DELETE FROM place WHERE {mine} AND resource = $2 AND place = ANY($3)";
    DropQueue = "DELETE FROM place WHERE {mine} AND resource = $2";
    /// Places of locks, in the order of names.
    LockPlaces = "SELECT place, token, holder, asked_ms, expires_ms, shared, session, resource, process <> '' FROM place
        WHERE {mine} AND resource > $2 AND resource <= $3 ORDER BY resource, place LIMIT $4";
    /// Held places of the locks of a session.
    SessionLocks = "SELECT resource, token, expires_ms FROM place
        WHERE {mine} AND session = $2 AND token IS NOT NULL ORDER BY resource, place";

    Answered = "SELECT change, done FROM answered WHERE {mine} AND key = $2";
    DropAnswered = "DELETE FROM answered WHERE {mine} AND key = $2";
    InsertAnswered = "INSERT INTO answered (user_id, key, change, done, at_ms) VALUES ($1, $2, $3, $4, $5)";

    ForgetAnswered = "DELETE FROM answered WHERE {mine} AND key IN (
            SELECT key FROM answered WHERE {mine} AND at_ms < $2 ORDER BY at_ms LIMIT $3)
        RETURNING 1";
    ForgetEvents = "DELETE FROM event WHERE {mine} AND (session, number) IN (
            SELECT session, number FROM event WHERE {mine} AND at_ms < $2 ORDER BY at_ms LIMIT $3)
        RETURNING 1";
    /// Ids are in the order of time.
    ForgetAudit = "DELETE FROM audit WHERE {mine} AND at_ms < $2 AND id IN (
            SELECT id FROM audit WHERE {mine} ORDER BY id LIMIT $3)
        RETURNING 1";

    OldestAnswered = "SELECT min(at_ms) FROM answered WHERE {mine}";
    OldestEvent = "SELECT min(at_ms) FROM event WHERE {mine}";
    /// Ids are in the order of time.
    OldestAudit = "SELECT at_ms FROM audit WHERE {mine} ORDER BY id LIMIT 1";
    OldestOver = "SELECT min(over_ms) FROM session WHERE {mine}";

    Over = "SELECT id FROM session WHERE {mine} AND over_ms < $2 ORDER BY over_ms LIMIT $3";
    LockOver = "SELECT next_message - 1 FROM session
        WHERE {mine} AND id = $2 AND over_ms < $3 FOR UPDATE";
    SetLastMessage = "UPDATE session SET next_message = $3::bigint + 1 WHERE {mine} AND id = $2";
    ForgetEventsOf = "DELETE FROM event WHERE {mine} AND session = $2 AND number IN (
            SELECT number FROM event WHERE {mine} AND session = $2 ORDER BY number LIMIT $3)
        RETURNING 1";
    DropEntries = "DELETE FROM entry WHERE {mine} AND session = $2";
    DropNumbers = "DELETE FROM queue WHERE {mine} AND resource = $2";
    DropSession = "DELETE FROM session WHERE {mine} AND id = $2";

    History = "SELECT id, at_ms, action, session, subject, outcome, token FROM audit
        WHERE {mine} AND id < $2 AND ", changing!(), " ORDER BY id DESC LIMIT $3";
    HistoryAndReads = "SELECT id, at_ms, action, session, subject, outcome, token FROM audit
        WHERE {mine} AND id < $2 ORDER BY id DESC LIMIT $3";
    InsertAudit = "INSERT INTO audit (user_id, id, at_ms, token, action, session, outcome, subject)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    /// For a change that may have been put on the record before, and is kept from being made twice by its key.
    PutAudit = "INSERT INTO audit (user_id, id, at_ms, token, action, session, outcome, subject)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (user_id, id) DO UPDATE SET at_ms = excluded.at_ms, outcome = excluded.outcome";
}

#[cfg(test)]
mod tests {
    use super::{Sql, StatementTexts, UserIsolation};

    /// Every access to a table filters by user, and every inserted row begins with the user.
    #[test]
    fn every_statement_is_bound_to_a_user() {
        for text in Sql::ALL {
            let words: Vec<&str> = text.split_whitespace().collect();
            let tables = words.windows(2).filter(|pair| {
                matches!(pair[0], "FROM" | "UPDATE")
                    && pair[1] != "SET"
                    && pair[1].chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
            });
            assert_eq!(tables.count(), text.matches("{mine}").count(), "{text}");
            let put_in = text.matches("INSERT INTO").count();
            assert_eq!(
                put_in,
                text.matches(" (user_id, ").count() - text.matches("CONFLICT (user_id, ").count(),
                "{text}"
            );
            assert_eq!(
                put_in,
                text.matches("VALUES ($1, ").count() + text.matches("SELECT $1, ").count(),
                "{text}"
            );
            assert!(text.contains("{mine}") || put_in == 1 || text.contains("set_config"), "{text}");
        }
    }

    #[test]
    fn every_placeholder_in_statements_is_filled() {
        for isolation in [UserIsolation::Both, UserIsolation::OnlyRowSecurity] {
            let texts = StatementTexts::new(isolation);
            assert!(texts.0.iter().all(|text| !text.contains('{')), "{texts:?}");
            assert_eq!(
                texts.0.iter().any(|text| text.contains("user_id = $1")),
                isolation == UserIsolation::Both
            );
        }
    }
}
