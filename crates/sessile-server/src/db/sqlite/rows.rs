//! Rows of the store, read. Every query carries the user.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Result, Row, Rows};
use serde_json::Value;

use crate::json_text::JsonText;
use crate::model::{Message, Session};
use crate::query::PageSize;

/// A session, and the times that its life is counted by.
pub(super) struct Found {
    pub(super) session: Session,
}

impl Found {
    /// Whether it neither was ended nor has expired.
    pub(super) fn is_live(&self, now: i64) -> bool {
        self.session.ended_ms.is_none() && now < self.session.expires_ms
    }
}

const COLUMNS: &str = "id, name, context, labels, revision, started_ms, used_ms, idle_ms, max_ms, ended_ms, end_reason, \
                       next_message";

fn found(row: &Row<'_>) -> Result<Found> {
    let (started, used): (i64, i64) = (row.get(5)?, row.get(6)?);
    let (idle, max): (i64, i64) = (row.get(7)?, row.get(8)?);
    let labels: String = row.get(3)?;
    Ok(Found {
        session: Session {
            id: row.get(0)?,
            name: row.get(1)?,
            context: row.get(2)?,
            labels: serde_json::from_str(&labels).unwrap_or_default(),
            settings: BTreeMap::new(),
            revision: row.get(4)?,
            started_ms: started,
            used_ms: used,
            expires_ms: used.saturating_add(idle).min(started.saturating_add(max)),
            idle_ms: idle,
            max_ms: max,
            ended_ms: row.get(9)?,
            end_reason: row.get(10)?,
            messages: row.get::<_, i64>(11)? - 1,
        },
    })
}

/// A session by its id.
pub(super) fn session(connection: &Connection, user: &str, id: &str) -> Result<Option<Found>> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE user = ?1 AND id = ?2");
    let session = connection.prepare_cached(&sql)?.query_row((user, id), found).optional()?;
    session.map(|session| with_settings(connection, user, session)).transpose()
}

/// The session that has a name and was not ended.
pub(super) fn named(connection: &Connection, user: &str, name: &str) -> Result<Option<Found>> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE user = ?1 AND name = ?2 AND ended_ms IS NULL");
    let session = connection.prepare_cached(&sql)?.query_row((user, name), found).optional()?;
    session.map(|session| with_settings(connection, user, session)).transpose()
}

fn with_settings(connection: &Connection, user: &str, mut found: Found) -> Result<Found> {
    let sql =
        "SELECT key, value FROM entry WHERE user = ?1 AND session = ?2 AND kind = 'setting' ORDER BY key";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map((user, &found.session.id), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    for row in rows {
        let (key, value) = row?;
        found.session.settings.insert(key, json(&value));
    }
    Ok(found)
}

/// Messages of a session after a number, up to the one that fills the page.
pub(super) fn messages(
    connection: &Connection,
    user: &str,
    session: &str,
    after: i64,
    limit: i64,
    bytes: i64,
) -> Result<Vec<Message>> {
    let mut statement = connection.prepare_cached(
        "SELECT number, token, body, at_ms FROM message WHERE user = ?1 AND session = ?2 AND number > ?3
             AND number < (SELECT next_message FROM session WHERE user = ?1 AND id = ?2)
         ORDER BY number LIMIT ?4",
    )?;
    page(statement.query((user, session, after, limit))?, bytes)
}

/// The last messages of a session, oldest first, from the one that fills the page. Numbers have no gaps, so they are found
/// by the last one.
pub(super) fn last_messages(
    connection: &Connection,
    user: &str,
    session: &Session,
    limit: i64,
    bytes: i64,
) -> Result<Vec<Message>> {
    let mut statement = connection.prepare_cached(
        "SELECT number, token, body, at_ms FROM message WHERE user = ?1 AND session = ?2 AND number <= ?3
         ORDER BY number DESC LIMIT ?4",
    )?;
    let mut messages = page(statement.query((user, &session.id, session.messages, limit.max(0)))?, bytes)?;
    messages.reverse();
    Ok(messages)
}

fn page(mut rows: Rows<'_>, bytes: i64) -> Result<Vec<Message>> {
    let (mut messages, mut size) = (Vec::new(), PageSize::new(bytes));
    while !size.is_full()
        && let Some(row) = rows.next()?
    {
        let body = JsonText::stored(row.get(2)?);
        size.add(&body);
        messages.push(Message { number: row.get(0)?, token: row.get(1)?, body, at_ms: row.get(3)? });
    }
    Ok(messages)
}

/// What was stored as JSON.
pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
