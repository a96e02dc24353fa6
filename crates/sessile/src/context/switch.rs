//! Switching the context of a terminal, a directory or a user.

use std::path::PathBuf;

use serde::Serialize;

use crate::call::ConfigSource;
use crate::context::selection::{pointer_effect, terminal_key};
use crate::error::{ContextError, Result, SessionError, UsageError};
use crate::history::{Effect, PointerValue, perform, settle, unless_overtaken};
use crate::names::ContextName;
use crate::process::ProcessId;
use crate::session::resolve::deselect_for_terminal;
use crate::settings::{SettingKey, Value, trust};
use crate::state::State;
use crate::store::{PointerKey, PointerKind, Scope};
use crate::terminal::Terminal;

/// Scope of a selection to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchScope {
    /// In this terminal.
    Terminal,
    /// In this directory, for this person.
    Directory,
    /// For the user, everywhere.
    Global,
}

/// Result of a context switch.
#[derive(Clone, Debug, Serialize)]
pub struct ContextSwitch {
    /// Scope of the selection.
    pub scope: SwitchScope,
    /// The terminal or file that says it now.
    pub place: String,
    /// Previous selection.
    pub old: Option<String>,
    /// New selection; none if the context was deselected.
    pub new: Option<ContextName>,
    /// Time and process of the previous selection of a directory, where the history knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_set: Option<SelectionAuthor>,
    /// Session that this terminal had, and that goes on without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_session: Option<String>,
}

/// Time and process of a selection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SelectionAuthor {
    /// Age, in milliseconds.
    pub age_ms: i64,
    /// Pid of the process that made it.
    pub pid: i32,
}

/// Context to select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchTarget {
    /// The context of this name.
    Named(ContextName),
    /// The one that was selected before.
    Previous,
    /// None.
    Nothing,
}

/// Selects a context for a scope. At the prompt of a hooked shell the terminal also leaves its session.
pub fn switch(state: &State, to: &SwitchTarget, scope: Option<SwitchScope>) -> Result<ContextSwitch> {
    // A half-done switch must not become the previous selection.
    settle(state)?;
    let is_hooked = state.is_at_hooked_prompt();
    if !is_hooked && state.session()?.is_some() {
        return Err(SessionError::RefusedInside {
            what: "switching the context".into(),
            instead: "the context of a session never changes; start another session",
        }
        .into());
    }
    let scope = match scope {
        Some(scope) => scope,
        None if state.call().selectable_terminal().is_some() => SwitchScope::Terminal,
        None => return Err(not_selectable(state).into()),
    };
    let target = Target::resolve(state, scope)?;
    let mut switched = unless_overtaken(|| try_switch(state, to, scope, &target))?;
    if scope == SwitchScope::Terminal {
        // Without the hook it is a session that is over, which would make the next command fail.
        let left = deselect_for_terminal(state)?;
        switched.left_session = left.filter(|left| left.is_live).map(|left| left.label);
    }
    if let Some(shell) = state.hooked_prompt() {
        shell.request_change(state)?;
    }
    Ok(switched)
}

/// The error of a switch that no terminal can remember.
fn not_selectable(state: &State) -> UsageError {
    let reason = match state.call().obstacle() {
        Some(reason) => reason,
        None if !state.world().streams().stdout => "standard output is not a terminal",
        None => "standard input is not the terminal of this process",
    };
    UsageError::ScopeRequired {
        what: format!("context use: {reason}"),
        flags: "pass --context NAME to each command; or pass --dir for this directory or --global for this user",
    }
}

fn try_switch(
    state: &State,
    to: &SwitchTarget,
    scope: SwitchScope,
    target: &Target,
) -> Result<ContextSwitch> {
    // Read at every attempt: another process may have switched in between.
    let pointer = state.fresh_store()?.map(|store| store.pointer(&target.key)).transpose()?.flatten();
    let before = pointer.map(|row| PointerValue { value: row.value, previous: row.previous });
    let old = target.value(state, before.as_ref().and_then(|before| before.value.clone()))?;
    let last = before.as_ref().and_then(|before| before.previous.clone());
    let new: Option<ContextName> = match to {
        SwitchTarget::Named(name) => Some(name.clone()),
        SwitchTarget::Previous => Some(last.as_deref().ok_or(ContextError::NoPrevious)?.parse()?),
        SwitchTarget::Nothing => None,
    };
    if let Some(new) = &new {
        state.contexts().get(new)?.require_trust(state)?;
    }
    let word = new.as_ref().map(ContextName::as_str);
    // Selecting the same context twice must not lose the way back.
    let previous = if old.as_deref() == word { last } else { old.clone() };
    let value = word.filter(|_| target.file.is_none()).map(str::to_owned);
    let after = PointerValue { value, previous };
    let mut effects = vec![pointer_effect(&target.key, before, Some(after))];
    // The file comes last: it is what counts.
    if let Some(file) = &target.file {
        let value = |name: &str| Value::Text(name.to_owned());
        let (old, new) = (old.as_deref().map(value), word.map(value));
        effects.push(Effect::setting(file, &SettingKey::new(["context"]), old.as_ref(), new.as_ref()));
    }
    let is_replaced = scope == SwitchScope::Directory && old.is_some() && old.as_deref() != word;
    let old_set = if is_replaced { target.author(state)? } else { None };
    perform(state, "context use", word.unwrap_or_default(), &effects)?;
    // The switch is made already, and a failure to tidy up does not undo it.
    let _ = state.store_for_writing().and_then(|mut store| forget_dead_terminals(&mut store));
    Ok(ContextSwitch { scope, place: target.place.clone(), old, new, old_set, left_session: None })
}

/// Storage of a scope's selection.
struct Target {
    key: PointerKey,
    file: Option<PathBuf>,
    place: String,
}

impl Target {
    fn resolve(state: &State, scope: SwitchScope) -> Result<Self> {
        let account = state.pointer_account();
        let in_file = |scope, place: String, file: PathBuf| Target {
            key: PointerKey { kind: PointerKind::Context, scope, place, account: account.clone() },
            place: file.to_string_lossy().into_owned(),
            file: Some(file),
        };
        Ok(match scope {
            SwitchScope::Terminal => {
                let terminal = state.call().selectable_terminal();
                let key = terminal_key(state, terminal.ok_or_else(|| not_selectable(state))?);
                Target { place: Terminal::key_device(&key.place).to_owned(), key, file: None }
            }
            SwitchScope::Directory => {
                let file = state.writable_project()?.local_settings();
                // The key resolves links, so that one directory has one selection.
                in_file(Scope::Directory, trust::key(state.app(), &file), file)
            }
            SwitchScope::Global => in_file(Scope::Global, String::new(), state.user_settings_file()?),
        })
    }

    /// The last selection that the history has of the file, unless the file was edited by hand since.
    fn author(&self, state: &State) -> Result<Option<SelectionAuthor>> {
        let Some(file) = &self.file else { return Ok(None) };
        let needle = serde_json::Value::from(file.to_string_lossy()).to_string();
        let store = state.fresh_store()?;
        let made = store.map(|store| store.last_operation_holding(&state.account(), "context use", &needle));
        let Some(operation) = made.transpose()?.flatten() else { return Ok(None) };
        let process: Option<ProcessId> = serde_json::from_str(&operation.process).unwrap_or_default();
        let age_ms = state.now_ms().saturating_sub(operation.at_ms);
        Ok(process.map(|process| SelectionAuthor { age_ms, pid: process.pid }))
    }

    fn value(&self, state: &State, pointer: Option<String>) -> Result<Option<String>> {
        let Some(file) = &self.file else { return Ok(pointer) };
        let document = match (state.source(), state.load(file)?) {
            (ConfigSource::Nothing, _) | (_, None) => return Ok(None),
            (_, Some(document)) => document,
        };
        Ok(document.root().get("context").and_then(|node| node.as_str()).map(str::to_owned))
    }
}

/// Deletes the selections of terminals that no longer exist.
fn forget_dead_terminals(store: &mut crate::store::Store) -> Result<()> {
    let mut dead = Vec::new();
    for kind in [PointerKind::Context, PointerKind::Session] {
        let keys = store.pointers(kind)?.into_iter().map(|pointer| pointer.key);
        dead.extend(keys.filter(|key| key.scope == Scope::Terminal && !Terminal::key_is_alive(&key.place)));
    }
    if dead.is_empty() { Ok(()) } else { store.remove_pointers(&dead) }
}
