//! Sessions as rows. Every query carries the user.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::store::{
    ConversationRow, EntryPlace, OperationRow, Store, conversations, entries, messages, operations,
};

/// Row of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SessionRow {
    /// User that owns it.
    pub user: String,
    /// Id.
    pub id: String,
    /// Name.
    pub name: Option<String>,
    /// The context it is pinned to.
    pub context: Option<String>,
    /// Owner, as JSON.
    pub owner: String,
    /// Labels, as a JSON object.
    pub labels: String,
    /// Idle limit, in milliseconds.
    pub idle_ms: i64,
    /// Lifetime limit, in milliseconds.
    pub max_ms: i64,
    /// Start, in milliseconds.
    pub started_ms: i64,
    /// Boot id at the start.
    pub boot: String,
    /// Start on the boot clock, in milliseconds.
    pub started_boot_ms: i64,
    /// The same without what the machine had slept.
    pub started_awake_ms: i64,
    /// End, in milliseconds.
    pub ended_ms: Option<i64>,
    /// Reason of the end.
    pub end_reason: Option<String>,
}

/// Initial content of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct InitialContent {
    /// Entries: kind, key and JSON.
    pub entries: Vec<(&'static str, String, String)>,
    /// Messages, as JSON.
    pub messages: Vec<String>,
    /// Conversations with agents, with their items as kind and JSON.
    pub conversations: Vec<(ConversationRow, Vec<(String, String)>)>,
    /// Operation for the history; the subject is filled in.
    pub operation: Option<OperationRow>,
}

const COLUMNS: &str = "user, id, name, context, owner, labels, idle_ms, max_ms, started_ms, boot, started_boot_ms, \
                       ended_ms, end_reason, started_awake_ms";

fn row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        user: row.get(0)?,
        id: row.get(1)?,
        name: row.get(2)?,
        context: row.get(3)?,
        owner: row.get(4)?,
        labels: row.get(5)?,
        idle_ms: row.get(6)?,
        max_ms: row.get(7)?,
        started_ms: row.get(8)?,
        boot: row.get(9)?,
        started_boot_ms: row.get(10)?,
        ended_ms: row.get(11)?,
        end_reason: row.get(12)?,
        started_awake_ms: row.get(13)?,
    })
}

impl Store {
    /// Adds a session with its initial content. Returns false and adds nothing if a live session has its name.
    pub(crate) fn add_session(
        &mut self,
        new: &SessionRow,
        check_ms: i64,
        contents: &InitialContent,
    ) -> Result<bool> {
        let add = |connection: &Connection| {
            if let Some(name) = &new.name {
                let taken = connection
                    .prepare_cached(
                        "SELECT 1 FROM session WHERE user = ?1 AND name = ?2 AND ended_ms IS NULL",
                    )?
                    .exists((&new.user, name))?;
                if taken {
                    return Ok(false);
                }
            }
            connection
                .prepare_cached(
                    "INSERT INTO session (user, id, name, context, owner, labels, idle_ms, max_ms, started_ms, boot,
                                          started_boot_ms, started_awake_ms, check_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                )?
                .execute(params![
                    new.user,
                    new.id,
                    new.name,
                    new.context,
                    new.owner,
                    new.labels,
                    new.idle_ms,
                    new.max_ms,
                    new.started_ms,
                    new.boot,
                    new.started_boot_ms,
                    new.started_awake_ms,
                    check_ms
                ])?;
            for (kind, key, value) in &contents.entries {
                let place = EntryPlace { user: &new.user, session: &new.id, kind };
                entries::insert(connection, place, key, value, 1, new.started_ms)?;
            }
            messages::append(connection, &new.user, &new.id, 0, &contents.messages, new.started_ms)?;
            for (conversation, items) in &contents.conversations {
                let place = (new.id.as_str(), new.context.as_deref());
                conversations::bring_in(connection, &new.user, place, conversation, items)?;
            }
            if let Some(operation) = &contents.operation {
                let subject = new.name.clone().unwrap_or_else(|| new.id.clone());
                operations::insert(connection, &OperationRow { subject, ..operation.clone() })?;
            }
            Ok(true)
        };
        // No question but by its own id finds a session without a name.
        if new.name.is_none() { self.write_keeping_answers(&new.id, add) } else { self.write(add) }
    }

    /// A session by its id.
    pub(crate) fn session(&self, user: &str, id: &str) -> Result<Option<SessionRow>> {
        self.answer(&("session", user, id), |connection| {
            connection
                .prepare_cached(&format!("SELECT {COLUMNS} FROM session WHERE user = ?1 AND id = ?2"))?
                .query_row((user, id), row)
                .optional()
        })
    }

    /// The sessions that a name or the beginning of an id can mean: a live one of that name, else at most two whose
    /// ids begin so, else the newest ended one of that name.
    pub(crate) fn sessions_named(&self, user: &str, text: &str) -> Result<Vec<SessionRow>> {
        // A whole id is the common case, and names cannot look like one.
        if text.parse::<crate::names::SessionId>().is_ok() {
            return Ok(self.session(user, text)?.into_iter().collect());
        }
        let is_hex = text.len() >= 4 && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
        let search = |connection: &Connection| {
            let find = |clause: &str, limit: u32| {
                connection
                    .prepare_cached(&format!(
                        "SELECT {COLUMNS} FROM session WHERE user = ?1 AND {clause} LIMIT {limit}"
                    ))?
                    .query_map((user, text), row)?
                    .collect::<rusqlite::Result<Vec<_>>>()
            };
            let live = find("name = ?2 AND ended_ms IS NULL", 1)?;
            if !live.is_empty() {
                return Ok(live);
            }
            if is_hex {
                // '~' sorts after every character of an id.
                let by_id = find("id >= ?2 AND id < ?2 || '~'", 2)?;
                if !by_id.is_empty() {
                    return Ok(by_id);
                }
            }
            // Ids are UUIDs of version 7, whose order is that of their times.
            find("name = ?2 ORDER BY id DESC", 1)
        };
        // Any new session may have an id that begins like this, so that no answer is kept.
        if is_hex { self.read(search) } else { self.answer(&("sessions", user, text), search) }
    }

    /// Sessions in the order of their ids, newest first, after the one given.
    pub(crate) fn sessions(
        &self,
        user: &str,
        before: Option<&str>,
        only_live: bool,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        let live = if only_live { "AND ended_ms IS NULL" } else { "" };
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM session WHERE user = ?1 AND id < coalesce(?2, '~') {live}
                     ORDER BY id DESC LIMIT ?3"
                ))?
                .query_map((user, before, i64::try_from(limit).unwrap_or(i64::MAX)), row)?
                .collect()
        })
    }

    /// The live sessions of any user that may have expired by now.
    pub(crate) fn sessions_to_check(&self, now_ms: i64, limit: usize) -> Result<Vec<SessionRow>> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM session WHERE ended_ms IS NULL AND check_ms <= ?1 ORDER BY check_ms LIMIT ?2"
                ))?
                .query_map((now_ms, i64::try_from(limit).unwrap_or(i64::MAX)), row)?
                .collect()
        })
    }

    /// Whether a session of any user lives.
    pub(crate) fn session_lives(&self, id: &str) -> Result<bool> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT 1 FROM session WHERE id = ?1 AND ended_ms IS NULL")?
                .exists([id])
        })
    }

    /// The ids of the live sessions of all users.
    pub(crate) fn live_ids(&self) -> Result<std::collections::BTreeSet<String>> {
        self.read(|connection| {
            connection
                .prepare("SELECT id FROM session WHERE ended_ms IS NULL")?
                .query_map([], |row| row.get(0))?
                .collect()
        })
    }

    /// Puts the next check of a session off.
    pub(crate) fn put_off_check(&mut self, user: &str, id: &str, check_ms: i64) -> Result<()> {
        self.write(|connection| {
            connection
                .prepare_cached("UPDATE session SET check_ms = ?3 WHERE user = ?1 AND id = ?2")?
                .execute((user, id, check_ms))
                .map(drop)
        })
    }

    /// Ends a session; returns whether it lived.
    pub(crate) fn end_session(&mut self, user: &str, id: &str, now_ms: i64, reason: &str) -> Result<bool> {
        // Every answer about a session has its id, but that no live session has a name.
        self.write_keeping_answers(id, |connection| {
            let ended = connection
                .prepare_cached(
                    "UPDATE session SET ended_ms = ?3, end_reason = ?4 WHERE user = ?1 AND id = ?2 AND ended_ms IS NULL",
                )?
                .execute((user, id, now_ms, reason))?;
            // In the same transaction: no lease outlives the session that took it.
            super::tickets::drop_leases_of(connection, id)?;
            Ok(ended == 1)
        })
    }

    /// Gives a session a name, or takes it; returns false if a live one has it.
    pub(crate) fn rename_session(&mut self, user: &str, id: &str, name: Option<&str>) -> Result<bool> {
        self.write(|connection| {
            let taken = connection
                .prepare_cached(
                    "SELECT 1 FROM session WHERE user = ?1 AND name = ?2 AND id <> ?3 AND ended_ms IS NULL",
                )?
                .exists((user, name, id))?;
            if !taken {
                connection
                    .execute("UPDATE session SET name = ?3 WHERE user = ?1 AND id = ?2", (user, id, name))?;
            }
            Ok(!taken)
        })
    }

    /// Deletes a session that has ended, with its entries and messages. Its conversations stay. Returns whether it existed.
    pub(crate) fn forget_session(&mut self, user: &str, id: &str) -> Result<bool> {
        self.write_keeping_answers(id, |connection| delete(connection, user, id, "AND ended_ms IS NOT NULL"))
    }

    /// Ends a session and deletes it. Returns whether it existed.
    pub(crate) fn end_and_forget_session(&mut self, user: &str, id: &str) -> Result<bool> {
        self.write_keeping_answers(id, |connection| {
            super::tickets::drop_leases_of(connection, id)?;
            delete(connection, user, id, "")
        })
    }
}

fn delete(connection: &Connection, user: &str, id: &str, condition: &str) -> rusqlite::Result<bool> {
    let row = format!("DELETE FROM session WHERE user = ?1 AND id = ?2 {condition}");
    let gone = connection.execute(&row, (user, id))?;
    // A session that lives or belongs to another user keeps its content.
    if gone == 1 {
        connection.execute("DELETE FROM entry WHERE user = ?1 AND session = ?2", (user, id))?;
        connection.execute("DELETE FROM message WHERE user = ?1 AND session = ?2", (user, id))?;
    }
    Ok(gone == 1)
}
