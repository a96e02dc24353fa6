//! Decision on the spare room: which preparations give the same room, and whether the room of a command may be kept.

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::call::ConfigSource;
use crate::error::Result;
use crate::run::IsolationArgs;
use crate::run::prepare::scope;
use crate::session::spare_room::RoomRecord;
use crate::settings::trust::fingerprint;
use crate::state::State;
use crate::tool::{Level, Plan, is_unguarded, restricts};

/// Variables that differ between calls of one shell, and that no preparation depends on.
const IRRELEVANT: [&str; 4] = ["_", "SHLVL", "PWD", "OLDPWD"];

/// Use of the spare room by a session.
#[derive(Debug, Default)]
pub(super) struct SpareUse {
    /// Fingerprint of the inputs of the preparation; none if the session can neither take nor leave a spare room.
    pub(super) key: Option<String>,
    /// Record of the room that the session took over, until its command starts.
    pub(super) taken: RefCell<Option<RoomRecord>>,
    /// Record of the room when the command started.
    record: RefCell<Option<RoomRecord>>,
    is_deserted: Cell<bool>,
}

impl SpareUse {
    /// Of a session whose preparation has inputs with this fingerprint.
    pub(super) fn of(key: Option<String>) -> Self {
        SpareUse { key, ..SpareUse::default() }
    }

    /// Records the room of a command that is about to start.
    pub(super) fn record(&self, room: &Path, plan: &mut Plan) {
        let (taken, inputs) = (self.taken.take(), plan.inputs.take());
        let record = match (taken, inputs, &self.key) {
            (Some(taken), _, _) if !plan.is_new() => taken.renewed(room),
            (None, Some(inputs), Some(key)) => RoomRecord::of(room, key, inputs),
            _ => None,
        };
        self.record.replace(record);
    }

    /// Directory of start-up files in a room that was taken over.
    pub(super) fn shell_dir(&self, room: &Path) -> Option<PathBuf> {
        self.taken.borrow().as_ref()?.shell_dir(room)
    }

    /// Notes that no process of the command is left.
    pub(super) fn note_deserted(&self) {
        self.is_deserted.set(true);
    }

    /// Record of the room, if the room may become the spare one.
    pub(super) fn take_record(&self) -> Option<RoomRecord> {
        self.record.take().filter(|_| self.is_deserted.get())
    }

    /// Whether the room may become the spare one, and nothing in it was changed.
    pub(super) fn is_unchanged(&self, room: &Path) -> bool {
        self.is_deserted.get() && self.record.borrow().as_ref().is_some_and(|record| record.holds(room))
    }
}

/// Fingerprint of what an ephemeral session's preparation depends on, beside files. `None` if its room is for that session alone.
pub(super) fn spare_key(state: &State, args: &IsolationArgs) -> Result<Option<String>> {
    let context = state.usable_context()?;
    // Profiles of a project count only if they are trusted, and only there.
    let has_own_tools = state.project().is_some_and(|project| project.tools().symlink_metadata().is_ok());
    if !matches!(state.source(), ConfigSource::Usual) || has_own_tools || !is_unguarded(context) {
        return Ok(None);
    }
    let scope = scope(state, args)?;
    if scope.level != Level::Env {
        return Ok(None);
    }
    let mut text = format!("{} {scope:?}", state.app().name());
    if let Some(context) = context {
        let _ = write!(text, " {:?} {:?}", context.name, context.tools);
        for (tool, bindings) in &context.tools {
            let _ = write!(text, " {}", restricts(state, tool, bindings)?);
        }
    }
    let _ = write!(text, " {:?}", state.runtime_dir().ok());
    // Any of them may be one that a profile reads.
    let mut variables: Vec<(&OsStr, &OsStr)> = state.world().variables().collect();
    variables.sort_unstable();
    for (name, value) in
        variables.into_iter().filter(|(name, _)| !IRRELEVANT.iter().any(|other| name == other))
    {
        let _ = write!(text, " {name:?}={value:?}");
    }
    Ok(Some(fingerprint(&text)))
}
