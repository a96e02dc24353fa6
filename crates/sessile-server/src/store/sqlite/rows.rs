//! Rows of the store, read. Every query carries the user.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Result, Row, Rows};
use serde_json::Value;

use crate::change::LockMode;
use crate::ids::{FencingToken, Position, turn_token};
use crate::json_text::{JsonText, StoredValue};
use crate::model::{MessageRecord, SessionRecord, Ticket};
use crate::query::PageSize;
use crate::rules::LoadedSession;
use crate::store::columns::Column;

const COLUMNS: &str = "id, name, context, labels, revision, started_ms, used_ms, idle_ms, max_ms, ended_ms, end_reason, \
                       next_message, next_event";

fn from_row(row: &Row<'_>) -> Result<LoadedSession> {
    let mut session = SessionRecord {
        id: row.get::<_, Column<_>>(0)?.0,
        name: row.get(1)?,
        context: row.get(2)?,
        labels: serde_json::from_str(row.get_ref(3)?.as_str()?).unwrap_or_default(),
        settings: BTreeMap::new(),
        revision: row.get(4)?,
        started_ms: row.get(5)?,
        used_ms: row.get(6)?,
        expires_ms: 0,
        idle_ms: row.get(7)?,
        max_ms: row.get(8)?,
        ended_ms: row.get(9)?,
        end_reason: row.get(10)?,
        messages: row.get::<_, i64>(11)? - 1,
    };
    session.set_expiry();
    Ok(LoadedSession::new(session, row.get(12)?))
}

/// Row of a session, by its id, without its settings.
pub(super) fn record(connection: &Connection, user: &str, id: &str) -> Result<Option<LoadedSession>> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE user = ?1 AND id = ?2");
    connection.prepare_cached(&sql)?.query_row((user, id), from_row).optional()
}

/// Row of the session that has a name and was not ended, without its settings.
pub(super) fn named_record(connection: &Connection, user: &str, name: &str) -> Result<Option<LoadedSession>> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE user = ?1 AND name = ?2 AND ended_ms IS NULL");
    connection.prepare_cached(&sql)?.query_row((user, name), from_row).optional()
}

/// A session by its id.
pub(super) fn session(connection: &Connection, user: &str, id: &str) -> Result<Option<SessionRecord>> {
    record(connection, user, id)?.map(|record| with_settings(connection, user, record.session)).transpose()
}

/// The session that has a name and was not ended.
pub(super) fn named(connection: &Connection, user: &str, name: &str) -> Result<Option<SessionRecord>> {
    let record = named_record(connection, user, name)?;
    record.map(|record| with_settings(connection, user, record.session)).transpose()
}

fn with_settings(connection: &Connection, user: &str, session: SessionRecord) -> Result<SessionRecord> {
    Ok(SessionRecord { settings: settings(connection, user, session.id.as_str())?, ..session })
}

/// Settings of a session.
pub(super) fn settings(
    connection: &Connection,
    user: &str,
    session: &str,
) -> Result<BTreeMap<String, Value>> {
    connection
        .prepare_cached(
            "SELECT key, value FROM entry WHERE user = ?1 AND session = ?2 AND kind = 'setting' ORDER BY key",
        )?
        .query_map((user, session), |row| Ok((row.get(0)?, row.get::<_, Column<StoredValue>>(1)?.0.0)))?
        .collect()
}

/// Messages of a session after a number, up to the one that fills the page.
pub(super) fn messages(
    connection: &Connection,
    user: &str,
    session: &str,
    after: i64,
    limit: i64,
    bytes: i64,
) -> Result<Vec<MessageRecord>> {
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
    session: &str,
    last: i64,
    limit: i64,
    bytes: i64,
) -> Result<Vec<MessageRecord>> {
    let mut statement = connection.prepare_cached(
        "SELECT number, token, body, at_ms FROM message WHERE user = ?1 AND session = ?2 AND number <= ?3
         ORDER BY number DESC LIMIT ?4",
    )?;
    let mut messages = page(statement.query((user, session, last, limit.max(0)))?, bytes)?;
    messages.reverse();
    Ok(messages)
}

fn page(mut rows: Rows<'_>, bytes: i64) -> Result<Vec<MessageRecord>> {
    let (mut messages, mut size) = (Vec::new(), PageSize::new(bytes));
    while !size.is_full()
        && let Some(row) = rows.next()?
    {
        let body = row.get::<_, Column<JsonText>>(2)?.0;
        size.add(&body);
        let token = turn_token::from_number(row.get(1)?);
        messages.push(MessageRecord { number: row.get(0)?, token, body, at_ms: row.get(3)? });
    }
    Ok(messages)
}

/// Place of a queue, from the columns `place`, `token`, `holder`, `asked_ms`, `expires_ms`, `shared` and `session`, the first of
/// which has an index.
pub(super) fn ticket(row: &Row<'_>, first: usize) -> Result<Ticket> {
    Ok(Ticket {
        place: Position::new(row.get(first)?),
        token: row.get::<_, Option<i64>>(first + 1)?.map(FencingToken::new),
        holder: row.get(first + 2)?,
        asked_ms: row.get(first + 3)?,
        expires_ms: row.get(first + 4)?,
        mode: LockMode::of(row.get(first + 5)?),
        session: row.get(first + 6)?,
    })
}
