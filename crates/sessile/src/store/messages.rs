//! A session's messages, numbered by the session itself.

use std::sync::Arc;

use crate::error::Result;
use crate::store::Store;

/// Row of a message.
#[derive(Clone, Debug)]
pub(crate) struct MessageRow {
    /// Number in the session, from 1.
    pub number: i64,
    /// Body, as JSON.
    pub body: String,
}

/// Outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// Appended; the number of the last message.
    Done(i64),
    /// Turn lost: it was broken or passed on.
    Lost,
    /// The session has ended.
    NoSession,
}

impl Store {
    /// The last messages of a session, oldest first.
    pub(crate) fn last_messages(&self, user: &str, session: &str, limit: usize) -> Result<Vec<MessageRow>> {
        let mut rows = self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT number, body FROM message WHERE user = ?1 AND session = ?2
                     ORDER BY number DESC LIMIT ?3",
                )?
                .query_map((user, session, i64::try_from(limit).unwrap_or(i64::MAX)), |row| {
                    Ok(MessageRow { number: row.get(0)?, body: row.get(1)? })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()
        })?;
        // Selected from the end, so that the cost does not grow with the session.
        rows.reverse();
        Ok(rows)
    }

    /// Appends messages if no turn is held or waiting; otherwise does nothing.
    pub(crate) fn append_alone(
        &mut self,
        user: &str,
        session: &str,
        bodies: &Arc<[String]>,
        now_ms: i64,
    ) -> Result<Option<Commit>> {
        let (user, session, bodies) = (user.to_owned(), session.to_owned(), Arc::clone(bodies));
        self.write_owned(move |connection| {
            // Waiters count too: appending now would overtake a turn that was asked for earlier.
            let queued: bool = connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM ticket WHERE resource = ?1)")?
                .query_row([crate::store::turn_resource(&user, &session)], |row| row.get(0))?;
            if queued {
                return Ok(None);
            }
            append(connection, &user, &session, 0, &bodies, now_ms).map(Some)
        })
    }

    /// Ends a turn: appends all its messages and gives its ticket back, or does nothing.
    pub(crate) fn commit_turn(
        &mut self,
        user: &str,
        session: &str,
        token: i64,
        bodies: &[String],
        now_ms: i64,
    ) -> Result<Commit> {
        self.write(|connection| {
            let resource = crate::store::turn_resource(user, session);
            let first: Option<i64> = connection
                .prepare_cached("SELECT min(token) FROM ticket WHERE resource = ?1")?
                .query_row([&resource], |row| row.get(0))?;
            // Only the lowest token holds the turn; a late holder must not write after its turn was given
            // away.
            if first != Some(token) {
                return Ok(Commit::Lost);
            }
            // In the transaction of the messages: a crash leaves a turn with its ticket, or a commit without
            // it.
            connection.prepare_cached("DELETE FROM ticket WHERE token = ?1")?.execute([token])?;
            append(connection, user, session, token, bodies, now_ms)
        })
    }
}

pub(super) fn append(
    connection: &rusqlite::Connection,
    user: &str,
    session: &str,
    token: i64,
    bodies: &[String],
    now_ms: i64,
) -> rusqlite::Result<Commit> {
    use rusqlite::OptionalExtension;
    let next: Option<i64> = connection
        .prepare_cached(
            "UPDATE session SET next_message = next_message + ?3
             WHERE user = ?1 AND id = ?2 AND ended_ms IS NULL RETURNING next_message",
        )?
        .query_row((user, session, i64::try_from(bodies.len()).unwrap_or(0)), |row| row.get(0))
        .optional()?;
    let Some(next) = next else { return Ok(Commit::NoSession) };
    let first = next.saturating_sub(i64::try_from(bodies.len()).unwrap_or(0));
    let mut insert = connection.prepare_cached(
        "INSERT INTO message (user, session, number, token, body, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (number, body) in (first..).zip(bodies) {
        insert.execute((user, session, number, token, body, now_ms))?;
    }
    Ok(Commit::Done(next.saturating_sub(1)))
}
