//! Queries.

use rusqlite::{Connection, OptionalExtension, Result};

use super::apply;
use super::listing::{self, Listing};
use super::rows;
use crate::change::Refusal;
use crate::ids::{SessionId, SessionRef, UserName};
use crate::json_text::{JsonText, StoredValue};
use crate::model::{EntryRecord, HistoryEntry, SessionEvent, SessionRecord};
use crate::query::{EventPage, ListPage, PageSize, Query, QueryAnswer};
use crate::rules::{audit, idempotency};
use crate::store::columns::Column;
use crate::store::lists;

type Outcome = Result<std::result::Result<QueryAnswer, Refusal>>;

macro_rules! history {
    ($table:expr, $which:expr) => {
        concat!(
            "SELECT id, at_ms, action, session, subject, outcome, token FROM ",
            $table,
            " WHERE user = ?1 AND id < ?2 AND ",
            $which,
            " ORDER BY id DESC LIMIT ?3"
        )
    };
}

// Only the partial index of changes skips the reads, of which there may be many more.
const HISTORY: &str = history!("audit INDEXED BY audit_changes", audit::changing!());
const HISTORY_AND_READS: &str = history!("audit", "TRUE");

/// Answers a query of a user.
pub(super) fn answer(connection: &Connection, user: &UserName, query: &Query, now: i64) -> Outcome {
    let user = user.as_str();
    let known = |session: &SessionId| -> Result<std::result::Result<SessionRecord, Refusal>> {
        Ok(rows::session(connection, user, session.as_str())?.ok_or(Refusal::NoSession))
    };
    match query {
        Query::Session { session } => {
            let found = match session {
                SessionRef::Id(id) => rows::session(connection, user, id.as_str())?,
                SessionRef::Name(name) => rows::named(connection, user, name)?,
            };
            Ok(found.map(QueryAnswer::Session).ok_or(Refusal::NoSession))
        }
        Query::Sessions { live, label, after, limit } => {
            let listing =
                Listing { live: *live, label: label.as_ref(), after: after.as_deref(), limit: *limit };
            Ok(Ok(QueryAnswer::Sessions(listing.page(connection, user, now)?)))
        }
        Query::Messages { session, after, limit, bytes } => match known(session)? {
            Ok(session) => {
                let page = rows::messages(connection, user, session.id.as_str(), *after, *limit, *bytes)?;
                Ok(Ok(QueryAnswer::Messages(page)))
            }
            Err(refusal) => Ok(Err(refusal)),
        },
        Query::LastMessages { session, limit, bytes } => match known(session)? {
            Ok(session) => {
                let SessionRecord { id, messages, .. } = session;
                let page = rows::last_messages(connection, user, id.as_str(), messages, *limit, *bytes)?;
                Ok(Ok(QueryAnswer::Messages(page)))
            }
            Err(refusal) => Ok(Err(refusal)),
        },
        Query::Entries { session, key, after, limit, bytes } => match known(session)? {
            Ok(session) => {
                let mut statement = connection.prepare_cached(
                    "SELECT key, value, revision FROM entry
                     WHERE user = ?1 AND session = ?2 AND kind = 'state' AND (?3 IS NULL OR key = ?3) AND key > ?4
                     ORDER BY key LIMIT ?5",
                )?;
                let after = after.as_deref().unwrap_or("");
                let mut rows = statement.query((user, session.id.as_str(), key, after, limit))?;
                let (mut entries, mut size) = (Vec::new(), PageSize::new(*bytes));
                while !size.is_full()
                    && let Some(row) = rows.next()?
                {
                    let value = row.get::<_, Column<JsonText>>(1)?.0;
                    size.add(&value);
                    entries.push(EntryRecord { key: row.get(0)?, value, revision: row.get(2)? });
                }
                let page = ListPage::of(entries, *limit, size, |last: &EntryRecord| last.key.clone());
                Ok(Ok(QueryAnswer::Entries(page)))
            }
            Err(refusal) => Ok(Err(refusal)),
        },
        Query::Answered { session, key } => match known(session)? {
            Ok(_) => {
                let stored = apply::answer(connection, user, key)?;
                Ok(stored.map_or(Ok(QueryAnswer::Answered(None)), |stored| idempotency::decode(&stored)))
            }
            Err(refusal) => Ok(Err(refusal)),
        },
        Query::Locks { after, limit } => listing::locks(connection, user, after.as_deref(), *limit, now)
            .map(|page| Ok(QueryAnswer::Locks(page))),
        Query::SessionLocks { session } => listing::session_locks(connection, user, session, now)
            .map(|locks| Ok(QueryAnswer::SessionLocks(locks))),
        Query::History { session, since_ms, reads, before, limit } => {
            let sql = if *reads { HISTORY_AND_READS } else { HISTORY };
            let scan = lists::history_scan(session.as_deref(), *since_ms, *limit);
            let scanned = connection
                .prepare_cached(sql)?
                .query_map((user, before.as_deref().unwrap_or(lists::LAST_ID), scan), |row| {
                    Ok(HistoryEntry {
                        id: row.get(0)?,
                        at_ms: row.get(1)?,
                        action: row.get(2)?,
                        session: row.get(3)?,
                        subject: row.get(4)?,
                        outcome: row.get(5)?,
                        token_id: row.get(6)?,
                    })
                })?
                .collect::<Result<Vec<_>>>()?;
            let page = lists::history(scanned, session.as_deref(), *since_ms, *limit);
            Ok(Ok(QueryAnswer::History(page)))
        }
        Query::Events { session, after, limit } => {
            let last: Option<i64> = connection
                .prepare_cached("SELECT next_event - 1 FROM session WHERE user = ?1 AND id = ?2")?
                .query_row((user, session.as_str()), |row| row.get(0))
                .optional()?;
            let Some(last) = last else { return Ok(Err(Refusal::NoSession)) };
            let events = connection
                .prepare_cached(
                    "SELECT number, kind, body, at_ms FROM event
                     WHERE user = ?1 AND session = ?2 AND number > ?3 ORDER BY number LIMIT ?4",
                )?
                .query_map((user, session.as_str(), after, limit), |row| {
                    Ok(SessionEvent {
                        number: row.get(0)?,
                        kind: row.get(1)?,
                        body: row.get::<_, Column<StoredValue>>(2)?.0.0,
                        at_ms: row.get(3)?,
                    })
                })?
                .collect::<Result<Vec<_>>>()?;
            Ok(Ok(QueryAnswer::Events(EventPage { events, last })))
        }
    }
}
