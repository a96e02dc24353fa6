//! Operations as views for output.

use std::path::Path;

use serde::Serialize;

use crate::clock::rfc3339;
use crate::error::{Error, HistoryError, Result};
use crate::history::Effect;
use crate::history::effect::{decode, marked};
use crate::state::State;
use crate::store::{OperationFilter, OperationRow, Store};
use crate::terminal::Terminal;

/// The text that a file had after the last operation on it; none if nothing is recorded, or if that removed the file.
pub(crate) fn recorded_text(store: &Store, user: &str, path: &Path) -> Result<Option<String>> {
    // The path may also occur in the text of other effects, so the first hit is not always the file's.
    const LOOK_BACK: i64 = 20;
    // Quoted as JSON, so that a path is not found within a longer one.
    let needle = serde_json::Value::from(path.to_string_lossy()).to_string();
    for effects in store.effects_holding(user, &needle, LOOK_BACK)? {
        let last = decode(&effects).into_iter().rev().find_map(|effect| match effect {
            Effect::Text { path: changed, after, .. } if changed == path => Some(after),
            _ => None,
        });
        if let Some(text) = last {
            return Ok(text);
        }
    }
    Ok(None)
}

/// One change of state.
#[derive(Clone, Debug, Serialize)]
pub struct Operation {
    /// Number, by which `undo` names it.
    pub id: i64,
    /// Time, as RFC 3339.
    pub at: String,
    /// Time, in milliseconds since 1970.
    #[serde(skip)]
    pub at_ms: i64,
    /// Account that made the change.
    pub user: String,
    /// Id of the session in which it was made.
    pub session: Option<String>,
    /// Device of the terminal on which it was made.
    pub terminal: Option<String>,
    /// Command that made it, such as `context create`.
    pub command: String,
    /// Name of what was changed.
    pub subject: String,
    /// `done`; `intent` while it is being made; `unknown` if its process died and nothing of it was recorded; `restored` if
    /// it was done and came with a backup.
    pub state: String,
    /// The operation it undid.
    pub undoes: Option<i64>,
    /// The operation that undid it.
    pub undone_by: Option<i64>,
    /// Whether it can be undone at all.
    pub undoable: bool,
    /// Effects.
    #[serde(serialize_with = "crate::history::effect::serialize")]
    pub effects: Vec<Effect>,
}

impl Operation {
    /// Effects in their stored form: JSON, with a mark where a side is null.
    pub fn stored_effects(&self) -> impl Iterator<Item = serde_json::Value> {
        self.effects.iter().map(marked)
    }
}

impl From<OperationRow> for Operation {
    fn from(row: OperationRow) -> Self {
        let effects = decode(&row.effects);
        Operation {
            id: row.id,
            at: rfc3339(row.at_ms),
            at_ms: row.at_ms,
            user: row.user,
            session: row.session,
            terminal: row.terminal.map(|key| Terminal::key_device(&key).to_owned()),
            command: row.command,
            subject: row.subject,
            state: row.state,
            undoes: row.undoes,
            undone_by: row.undone_by,
            undoable: !effects.is_empty()
                // An event within several effects would make the undo a partial one.
                && !effects.iter().any(|effect| matches!(effect, Effect::Event { .. })),
            effects,
        }
    }
}

impl Operation {
    /// Whether it came with a backup. Anything can be written there, so it gives no trust.
    pub(super) fn is_restored(&self) -> bool {
        self.state == "restored"
    }
}

/// The operations of this user that a filter lets through, the newest first.
pub fn list(state: &State, filter: &OperationFilter<'_>) -> Result<Vec<Operation>> {
    let rows = state.store()?.map(|store| store.operations(&state.account(), filter)).transpose()?;
    Ok(rows.unwrap_or_default().into_iter().map(Operation::from).collect())
}

/// One operation of this user.
pub fn find(state: &State, id: i64) -> Result<Operation> {
    let row = state.store()?.map(|store| store.operation(&state.account(), id)).transpose()?.flatten();
    row.map(Operation::from).ok_or_else(|| Error::History(HistoryError::NotFound(id.to_string())))
}
