//! Conversations with agents, and their items.
//!
//! `used` orders the conversations of one agent: the newest has the highest. It is part of the key, so that the newest is
//! found without looking at the others.

use rusqlite::{Connection, OptionalExtension, Row};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::store::Store;

/// Row of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationRow {
    /// Id.
    pub id: String,
    /// The session that used it last.
    pub session: String,
    /// The context it was held in.
    pub context: Option<String>,
    /// The credential that its calls named.
    pub account: Option<String>,
    /// The agent's URL.
    pub agent: String,
    /// Name.
    pub name: Option<String>,
    /// The agent's id of it.
    pub context_id: Option<String>,
    /// The agent's id of the task that it is about.
    pub task_id: Option<String>,
    /// State of the task.
    pub task_state: Option<String>,
    /// Start, in milliseconds.
    pub started_ms: i64,
    /// Last use, in milliseconds.
    pub used_ms: i64,
    /// Number of the next item.
    pub next_item: i64,
    used: i64,
}

/// Row of an item of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemRow {
    /// Number in the conversation, from 1.
    pub number: i64,
    /// Kind: `sent`, `message`, `status`, `artifact`, `task`.
    pub kind: String,
    /// Body, as JSON.
    pub body: String,
    /// Time of arrival, in milliseconds.
    pub at_ms: i64,
}

/// Outcome of a renaming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RenameOutcome {
    /// The conversation has the name.
    Renamed,
    /// A conversation of the session has the name already.
    NameTaken,
    /// The conversation does not exist.
    NotFound,
}

/// Filter of conversations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConversationFilter<'a> {
    /// Of this session.
    pub session: Option<&'a str>,
    /// With this agent.
    pub agent: Option<&'a str>,
    /// Held in this context, or in none.
    pub context: Option<Option<&'a str>>,
}

/// Indexed key of a conversation in a session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConversationKey<'a> {
    /// Name.
    Name(&'a str),
    /// The agent, and its id of the conversation.
    Context(&'a str, &'a str),
    /// The agent, and its id of the task that the conversation is about.
    Task(&'a str, &'a str),
}

/// Change of a conversation. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConversationChange {
    /// The agent's id of it.
    pub context_id: Option<String>,
    /// The task that it is about.
    pub task_id: Option<String>,
    /// State of the task.
    pub task_state: Option<String>,
    /// Added items, as kind and JSON.
    pub items: Vec<(&'static str, String)>,
    /// Message that they answer, as JSON; added before them if they go to another conversation.
    pub sent: Option<String>,
}

const COLUMNS: &str = "id, session, agent, name, context_id, task_id, task_state, started_ms, used_ms, next_item, used, \
                       context, account";

fn read(row: &Row<'_>) -> rusqlite::Result<ConversationRow> {
    Ok(ConversationRow {
        id: row.get(0)?,
        session: row.get(1)?,
        agent: row.get(2)?,
        name: row.get(3)?,
        context_id: row.get(4)?,
        task_id: row.get(5)?,
        task_state: row.get(6)?,
        started_ms: row.get(7)?,
        used_ms: row.get(8)?,
        next_item: row.get(9)?,
        used: row.get(10)?,
        context: row.get(11)?,
        account: row.get(12)?,
    })
}

impl Store {
    /// The conversation of an account with an agent that was used last in a session.
    pub(crate) fn newest_conversation(
        &self,
        user: &str,
        session: &str,
        agent: &str,
        account: Option<&str>,
    ) -> Result<Option<ConversationRow>> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM conversation
                     WHERE user = ?1 AND session = ?2 AND agent = ?3 AND account IS ?4 ORDER BY used DESC LIMIT 1"
                ))?
                .query_row((user, session, agent, account), read)
                .optional()
        })
    }

    /// The conversation that was used last in a session, with whatever agent.
    pub(crate) fn last_conversation(&self, user: &str, session: &str) -> Result<Option<ConversationRow>> {
        self.answer(&("last conversation", user, session), |connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM conversation
                     WHERE user = ?1 AND session = ?2 ORDER BY used_ms DESC LIMIT 1"
                ))?
                .query_row((user, session), read)
                .optional()
        })
    }

    /// The conversation of a session that has this; of several the one that was used last.
    pub(crate) fn conversation(
        &self,
        user: &str,
        session: &str,
        key: ConversationKey<'_>,
    ) -> Result<Option<ConversationRow>> {
        self.read(|connection| by_key(connection, user, session, key))
    }

    /// Selected conversations of a user, the last used first.
    pub(crate) fn conversations(
        &self,
        user: &str,
        filter: ConversationFilter<'_>,
    ) -> Result<Vec<ConversationRow>> {
        // With a choice in it the index of sessions would not be used.
        let session = if filter.session.is_some() { "session = ?2" } else { "?2 IS NULL" };
        let context = if filter.context.is_some() { "context IS ?4" } else { "?4 IS NULL" };
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM conversation
                     WHERE user = ?1 AND {session} AND (?3 IS NULL OR agent = ?3) AND {context}
                     ORDER BY used_ms DESC, used DESC, id DESC"
                ))?
                .query_map((user, filter.session, filter.agent, filter.context.flatten()), read)?
                .collect()
        })
    }

    /// Starts a conversation with its first messages, so that no conversation is empty; it becomes the newest of its
    /// agent. A name that another process took meanwhile is not assigned.
    pub(crate) fn begin_conversation(
        &mut self,
        user: &str,
        row: &ConversationRow,
        change: &ConversationChange,
    ) -> Result<Option<ConversationRow>> {
        self.write(|connection| {
            let (mut row, now_ms) = (row.clone(), row.started_ms);
            // The caller saw the name free before it waited for the lock.
            if let Some(name) = &row.name
                && by_key(connection, user, &row.session, ConversationKey::Name(name))?.is_some()
            {
                row.name = None;
            }
            add(connection, user, &mut row, change, now_ms)?;
            insert(connection, user, &row)?;
            newest(connection, user, &row.session, &row.agent)
        })
    }

    /// Changes the current row of a conversation and appends messages; concurrent changes stay. Messages with another
    /// context id go to the conversation of that id, which is created if necessary. `None` if the conversation does
    /// not exist.
    pub(crate) fn change_conversation(
        &mut self,
        user: &str,
        known: &ConversationRow,
        change: &ConversationChange,
        other_id: &str,
        now_ms: i64,
    ) -> Result<Option<ConversationRow>> {
        self.write(|connection| {
            let Some(mut row) = find(connection, user, known)? else { return Ok(None) };
            let (mut is_stored, mut change) = (true, change.clone());
            if let (Some(own), Some(said)) = (&row.context_id, &change.context_id)
                && own != said
            {
                let other =
                    by_key(connection, user, &row.session, ConversationKey::Context(&row.agent, said))?;
                is_stored = other.is_some();
                let new = || ConversationRow {
                    context: row.context.clone(),
                    account: row.account.clone(),
                    ..ConversationRow::new(other_id.to_owned(), &row.session, &row.agent, now_ms)
                };
                row = other.unwrap_or_else(new);
                // An answer without its question would be hard to read.
                change.items.splice(0..0, change.sent.take().map(|sent| ("sent", sent)));
            }
            // `used` is part of the primary key, so a use is a removal and an insertion.
            if is_stored {
                remove(connection, user, &row)?;
            }
            add(connection, user, &mut row, &change, now_ms)?;
            insert(connection, user, &row)?;
            newest(connection, user, &row.session, &row.agent)
        })
    }

    /// Makes a conversation the newest of its agent in another session. It keeps its name unless the session has one of
    /// that name. `None` if it does not exist.
    pub(crate) fn adopt_conversation(
        &mut self,
        user: &str,
        known: &ConversationRow,
        session: &str,
    ) -> Result<Option<ConversationRow>> {
        self.write(|connection| {
            let Some(mut row) = find(connection, user, known)? else { return Ok(None) };
            if row.session == session {
                return Ok(Some(row));
            }
            remove(connection, user, &row)?;
            session.clone_into(&mut row.session);
            if let Some(name) = &row.name
                && by_key(connection, user, session, ConversationKey::Name(name))?.is_some()
            {
                row.name = None;
            }
            insert(connection, user, &row)?;
            newest(connection, user, session, &row.agent)
        })
    }

    /// Deletes conversations of every account that were last used before a time. Returns the number deleted.
    pub(crate) fn expire_conversations(&mut self, before_ms: i64) -> Result<usize> {
        self.write(|connection| {
            connection.execute(
                "DELETE FROM conversation_item WHERE (user, conversation) IN
                 (SELECT user, id FROM conversation WHERE used_ms < ?1)",
                [before_ms],
            )?;
            connection.execute("DELETE FROM conversation WHERE used_ms < ?1", [before_ms])
        })
    }

    /// Gives a conversation a name that no other of its session has, or none.
    pub(crate) fn rename_conversation(
        &mut self,
        user: &str,
        row: &ConversationRow,
        name: Option<&str>,
    ) -> Result<RenameOutcome> {
        self.write(|connection| {
            // In the transaction: another process may take the name at the same time.
            if let Some(name) = name
                && by_key(connection, user, &row.session, ConversationKey::Name(name))?.is_some()
            {
                return Ok(RenameOutcome::NameTaken);
            }
            let changed = connection.execute(
                "UPDATE conversation SET name = ?5 WHERE user = ?1 AND session = ?2 AND agent = ?3 AND id = ?4",
                (user, &row.session, &row.agent, &row.id, name),
            )?;
            Ok(if changed > 0 { RenameOutcome::Renamed } else { RenameOutcome::NotFound })
        })
    }

    /// Deletes conversations with their messages. Returns the number deleted.
    pub(crate) fn forget_conversations(&mut self, user: &str, rows: &[ConversationRow]) -> Result<usize> {
        self.write(|connection| {
            let mut forgotten = 0;
            for known in rows {
                if let Some(row) = find(connection, user, known)? {
                    forgotten += usize::from(remove(connection, user, &row)?);
                    forget_items(connection, user, &row.id)?;
                }
            }
            Ok(forgotten)
        })
    }

    /// Items from a number on, oldest first.
    pub(crate) fn conversation_items(
        &self,
        user: &str,
        id: &str,
        from: i64,
        limit: usize,
    ) -> Result<Vec<ItemRow>> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT number, kind, body, at_ms FROM conversation_item
                     WHERE user = ?1 AND conversation = ?2 AND number >= ?3 ORDER BY number LIMIT ?4",
                )?
                .query_map((user, id, from, i64::try_from(limit).unwrap_or(i64::MAX)), |row| {
                    Ok(ItemRow {
                        number: row.get(0)?,
                        kind: row.get(1)?,
                        body: row.get(2)?,
                        at_ms: row.get(3)?,
                    })
                })?
                .collect()
        })
    }
}

/// Adds items, and applies their ids and states to the conversation.
fn add(
    connection: &Connection,
    user: &str,
    row: &mut ConversationRow,
    change: &ConversationChange,
    now_ms: i64,
) -> rusqlite::Result<()> {
    let ConversationChange { context_id, task_id, task_state, items, .. } = change;
    // Where one task stands says nothing about another.
    if task_id.is_some() && *task_id != row.task_id {
        row.task_state = None;
    }
    row.context_id = context_id.clone().or(row.context_id.take());
    row.task_id = task_id.clone().or(row.task_id.take());
    row.task_state = task_state.clone().or(row.task_state.take());
    let mut add = connection.prepare_cached(
        "INSERT INTO conversation_item (user, conversation, number, kind, body, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (kind, body) in items {
        add.execute((user, &row.id, row.next_item, kind, body, now_ms))?;
        row.next_item += 1;
    }
    row.used_ms = now_ms;
    Ok(())
}

fn by_key(
    connection: &Connection,
    user: &str,
    session: &str,
    key: ConversationKey<'_>,
) -> rusqlite::Result<Option<ConversationRow>> {
    // The index is named: without statistics the key alone seems as good, and reads all of an agent. A task is asked
    // for by people, and is looked for.
    let (index, filter, agent, value) = match key {
        ConversationKey::Name(name) => {
            ("INDEXED BY conversation_name", "?3 IS NULL AND name = ?4", None, name)
        }
        ConversationKey::Context(agent, id) => {
            ("INDEXED BY conversation_context", "agent = ?3 AND context_id = ?4", Some(agent), id)
        }
        ConversationKey::Task(agent, id) => ("", "agent = ?3 AND task_id = ?4", Some(agent), id),
    };
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM conversation {index}
             WHERE user = ?1 AND session = ?2 AND {filter} ORDER BY used DESC LIMIT 1"
        ))?
        .query_row((user, session, agent, value), read)
        .optional()
}

fn newest(
    connection: &Connection,
    user: &str,
    session: &str,
    agent: &str,
) -> rusqlite::Result<Option<ConversationRow>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM conversation WHERE user = ?1 AND session = ?2 AND agent = ?3
             ORDER BY used DESC LIMIT 1"
        ))?
        .query_row((user, session, agent), read)
        .optional()
}

/// Current row, because another process may have used it.
fn find(
    connection: &Connection,
    user: &str,
    known: &ConversationRow,
) -> rusqlite::Result<Option<ConversationRow>> {
    let key = (user, &known.session, &known.agent, known.used, &known.id);
    // The key of the last read is right unless another process used the conversation since; it needs no scan.
    let at_key = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM conversation
             WHERE user = ?1 AND session = ?2 AND agent = ?3 AND used = ?4 AND id = ?5"
        ))?
        .query_row(key, read)
        .optional()?;
    if at_key.is_some() {
        return Ok(at_key);
    }
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM conversation
             WHERE user = ?1 AND session = ?2 AND agent = ?3 AND id = ?4 ORDER BY used DESC"
        ))?
        .query_row((user, &known.session, &known.agent, &known.id), read)
        .optional()
        .and_then(|found| match found {
            Some(found) => Ok(Some(found)),
            // A later session may have continued it.
            None => connection
                .prepare_cached(&format!("SELECT {COLUMNS} FROM conversation WHERE user = ?1 AND id = ?2"))?
                .query_row((user, &known.id), read)
                .optional(),
        })
}

/// Inserts a row as the newest of its agent.
fn insert(connection: &Connection, user: &str, row: &ConversationRow) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO conversation (user, session, agent, used, id, name, context_id, task_id, task_state, started_ms,
                                       used_ms, next_item, context, account)
             VALUES (?1, ?2, ?3,
                     coalesce((SELECT max(used) FROM conversation WHERE user = ?1 AND session = ?2 AND agent = ?3), 0) + 1,
                     ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute((
            user,
            &row.session,
            &row.agent,
            &row.id,
            &row.name,
            &row.context_id,
            &row.task_id,
            &row.task_state,
            row.started_ms,
            row.used_ms,
            row.next_item,
            &row.context,
            &row.account,
        ))
        .map(drop)
}

fn remove(connection: &Connection, user: &str, row: &ConversationRow) -> rusqlite::Result<bool> {
    let removed = connection
        .prepare_cached(
            "DELETE FROM conversation WHERE user = ?1 AND session = ?2 AND agent = ?3 AND used = ?4 AND id = ?5",
        )?
        .execute((user, &row.session, &row.agent, row.used, &row.id))?;
    Ok(removed > 0)
}

fn forget_items(connection: &Connection, user: &str, id: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM conversation_item WHERE user = ?1 AND conversation = ?2")?
        .execute((user, id))
        .map(drop)
}

/// Puts a conversation of another session into a new one.
pub(super) fn bring_in(
    connection: &Connection,
    user: &str,
    (session, context): (&str, Option<&str>),
    row: &ConversationRow,
    items: &[(String, String)],
) -> rusqlite::Result<()> {
    let next_item = i64::try_from(items.len()).unwrap_or(0) + 1;
    let (session, context) = (session.to_owned(), context.map(str::to_owned));
    let row = ConversationRow { session, context, next_item, ..row.clone() };
    insert(connection, user, &row)?;
    let mut add = connection.prepare_cached(
        "INSERT INTO conversation_item (user, conversation, number, kind, body, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (number, (kind, body)) in (1i64..).zip(items) {
        add.execute((user, &row.id, number, kind, body, row.used_ms))?;
    }
    Ok(())
}

impl ConversationRow {
    /// A new one.
    pub fn new(id: String, session: &str, agent: &str, now_ms: i64) -> Self {
        ConversationRow {
            id,
            session: session.to_owned(),
            context: None,
            account: None,
            agent: agent.to_owned(),
            name: None,
            context_id: None,
            task_id: None,
            task_state: None,
            started_ms: now_ms,
            used_ms: now_ms,
            next_item: 1,
            used: 0,
        }
    }
}
