//! The session of a call: named by a flag, named by the variable, or selected for the terminal.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::call::{SessionMode, WithheldSelection};
use crate::error::{Error, Result, SessionEnd, SessionError, StoreError, UsageError};
use crate::interactive::TerminalAccess;
use crate::session::{EntryKind, Lifecycle, Session, SessionId, SessionName};
use crate::settings::rules::is_session_setting;
use crate::settings::{Layer, Origin, SettingKey, Value};
use crate::state::State;
use crate::store::{EntryPlace, PointerKey, PointerKind, Scope, SessionRow, Store};
use crate::terminal::Terminal;
use crate::text::{quoted, shell_quoted};

/// The session of a call.
#[derive(Clone, Debug)]
pub struct CurrentSession {
    /// The session.
    pub session: Rc<Session>,
    /// The flag, the variable or the terminal that names it.
    pub origin: Origin,
    /// The settings that it overrides.
    pub settings: Vec<(SettingKey, Value)>,
}

/// A session that a call names and is to start.
#[derive(Clone, Debug)]
pub struct PendingSession {
    /// Name.
    pub name: SessionName,
    /// The context of the last session of that name, which the new one is pinned to as well.
    pub context: Option<String>,
}

/// Result of looking up a call's session. At most one of the fields is set.
#[derive(Debug, Default)]
pub(crate) struct ResolvedSession {
    pub(crate) current: Option<CurrentSession>,
    pub(crate) pending: Option<PendingSession>,
    /// The session that the terminal has selected, if it is over.
    pub(crate) over: Option<EndedSelection>,
}

/// Session that a terminal has selected and that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSelection {
    /// Name or id.
    pub session: String,
    /// Reason.
    pub end: SessionEnd,
}

impl ResolvedSession {
    fn pending(name: SessionName, context: Option<String>) -> Self {
        ResolvedSession { pending: Some(PendingSession { name, context }), ..Self::default() }
    }

    /// Fails because the terminal's session is over: the call would otherwise act on the user's own target. A call that
    /// only reads reports it. The selection stays until a person leaves it, or a loop would go on with its next command.
    fn over(state: &State, device: &Path, selection: EndedSelection, row: Option<&Session>) -> Result<Self> {
        let error = SessionError::SelectionOver {
            session: selection.session.clone(),
            device: device.to_owned(),
            end: selection.end,
            name: row.and_then(|session| session.name.clone()),
            context: row.and_then(|session| session.context.clone()),
        };
        // A call that names its context needs no session of the terminal.
        if state.call().override_of("context").is_none() {
            withhold(state, error)?;
        }
        Ok(ResolvedSession { over: Some(selection), ..Self::default() })
    }

    /// The same for a session that was found.
    fn over_found(state: &State, device: &Path, session: &Session) -> Result<Self> {
        let end = if session.ended.is_some() { SessionEnd::Stopped } else { SessionEnd::Expired };
        let selection = EndedSelection { session: session.label().to_owned(), end };
        Self::over(state, device, selection, Some(session))
    }
}

/// Looks up the session that a call works in. One that cannot be used is an error. A call that only reads goes on without
/// the one that its terminal has selected, with a warning.
pub(crate) fn resolve_session(state: &State) -> Result<ResolvedSession> {
    let mode = state.call().mode();
    let (text, origin, selection) = match &state.args().session {
        Some(text) if !state.leaves_hook_session() => (text.clone(), state.session_origin(), None),
        _ => match terminal_session(state)? {
            TerminalSession::None => return Ok(ResolvedSession::default()),
            TerminalSession::Withheld(resolved) => return Ok(resolved),
            TerminalSession::Selected(text, device) => {
                (text, Origin::named(Layer::Terminal, device.clone()), Some(PathBuf::from(device)))
            }
        },
    };
    let mut rows = sessions_named(state, &text)?;
    // Only a flag starts sessions: the session of a variable existed when the variable was set.
    let is_flag = origin.layer == Layer::Flag;
    let can_start = is_flag && matches!(mode.session, SessionMode::StartMissing | SessionMode::StartEnded);
    if can_start && rows.is_empty() {
        match text.parse::<SessionName>() {
            Ok(name) => return Ok(ResolvedSession::pending(name, None)),
            // An id cannot be chosen, so this one belonged to a session that was forgotten.
            Err(_) if text.parse::<SessionId>().is_ok() => {}
            Err(error) => return Err(error),
        }
    }
    if let (Some(device), true) = (&selection, rows.is_empty()) {
        let selection = EndedSelection { session: text, end: SessionEnd::Deleted };
        return ResolvedSession::over(state, device, selection, None);
    }
    let row = match rows.len() {
        0 if mode.tolerates_stale_session && origin.layer == Layer::Environment => {
            state.warn(format!("{origin}: session {} not found", quoted(&text)), None);
            return Ok(ResolvedSession::default());
        }
        0 => return Err(SessionError::NotFound(crate::text::shortened(&text, 80)).into()),
        1 => rows.remove(0),
        _ => return Err(SessionError::Ambiguous(text).into()),
    };
    let session = Session::of_row(row, state.dirs().state()?)?;
    if can_start
        && mode.session == SessionMode::StartEnded
        && session.life(state.world()) != Lifecycle::Live
        && let Ok(name) = session.name.as_deref().unwrap_or_default().parse::<SessionName>()
    {
        return Ok(ResolvedSession::pending(name, session.context));
    }
    if let Some(device) = selection
        && session.life(state.world()) != Lifecycle::Live
    {
        return ResolvedSession::over_found(state, &device, &session);
    }
    let settings = session_settings(state, &session)?;
    tracing::debug!(session = session.label(), id = %session.id, %origin, "resolved session");
    let current = CurrentSession { session: Rc::new(session), origin, settings };
    Ok(ResolvedSession { current: Some(current), ..ResolvedSession::default() })
}

fn sessions_named(state: &State, text: &str) -> Result<Vec<SessionRow>> {
    let rows = state.store()?.map(|store| store.sessions_named(&state.account(), text)).transpose()?;
    Ok(rows.unwrap_or_default())
}

/// The settings of a session. Keys that this version does not know are left out: a newer one may have set them.
fn session_settings(state: &State, session: &Session) -> Result<Vec<(SettingKey, Value)>> {
    let user = state.account();
    let place = EntryPlace { user: &user, session: session.id.as_str(), kind: EntryKind::Setting.as_str() };
    let mut settings = Vec::new();
    for entry in state.store()?.map(|store| store.entries(place)).transpose()?.unwrap_or_default() {
        let Ok(key) = entry.key.parse::<SettingKey>() else { continue };
        // A restored database can have rows that no command writes.
        if !is_session_setting(state.app(), &key) {
            continue;
        }
        let Some(definition) = state.app().setting(key.segments()) else { continue };
        let json: serde_json::Value = serde_json::from_str(&entry.value).map_err(|_| {
            let path = state.dirs().store().unwrap_or_default();
            let detail = format!("the value of setting {} is not JSON", quoted(&entry.key));
            StoreError::Corrupt { path, detail }
        })?;
        settings.extend(definition.kind.of_json(&json).map(|value| (key, value)));
    }
    Ok(settings)
}

/// The session of a call's terminal.
enum TerminalSession {
    /// No selection.
    None,
    /// Id and device.
    Selected(String, String),
    /// A selection that this call may not use, and that does not count.
    Withheld(ResolvedSession),
}

fn terminal_session(state: &State) -> Result<TerminalSession> {
    if state.call().mode().session == SessionMode::New {
        return Ok(TerminalSession::None);
    }
    let Some(access) = state.call().terminal_access() else { return Ok(TerminalSession::None) };
    let Some(store) = state.store()? else { return Ok(TerminalSession::None) };
    let selected = |terminal: &Terminal| -> Result<Option<String>> {
        Ok(store.pointer(&terminal_key(state, terminal))?.and_then(|pointer| pointer.value))
    };
    let (text, device, reason) = match access {
        TerminalAccess::Read(terminal) => {
            let device = Terminal::key_device(&terminal.key()).to_owned();
            return Ok(selected(terminal)?
                .map_or(TerminalSession::None, |text| TerminalSession::Selected(text, device)));
        }
        // A call that names its context needs no session of the terminal.
        _ if state.call().override_of("context").is_some() => return Ok(TerminalSession::None),
        TerminalAccess::Withheld(terminal, reason) => (selected(terminal)?, terminal.device.clone(), reason),
        TerminalAccess::Foreign(device) => {
            (foreign_selection(state, store, PointerKind::Session, &device)?, device, FOREIGN)
        }
    };
    match text {
        Some(text) => withhold_session(state, &device, &text, reason).map(TerminalSession::Withheld),
        None => Ok(TerminalSession::None),
    }
}

/// Why the selections of a terminal that controls other processes are withheld.
pub(crate) const FOREIGN: &str = "the terminal does not control this process";

/// The selection of a terminal that controls other processes, by its device.
pub(crate) fn foreign_selection(
    state: &State,
    store: &Store,
    kind: PointerKind,
    device: &Path,
) -> Result<Option<String>> {
    let account = state.pointer_account();
    let is_here = |key: &PointerKey| {
        key.scope == Scope::Terminal
            && key.account == account
            && Path::new(Terminal::key_device(&key.place)) == device
            // Device names are reused: the selection of a closed terminal does not count for the new one.
            && Terminal::key_is_alive(&key.place)
    };
    Ok(store.pointers(kind)?.into_iter().find(|row| is_here(&row.key)).and_then(|row| row.value))
}

/// Fails because the terminal has selected a session that this call may not use; only warns if the call reads.
fn withhold_session(
    state: &State,
    device: &Path,
    text: &str,
    reason: &'static str,
) -> Result<ResolvedSession> {
    let Some(row) = sessions_named(state, text)?.into_iter().next() else {
        let selection = EndedSelection { session: text.to_owned(), end: SessionEnd::Deleted };
        return ResolvedSession::over(state, device, selection, None);
    };
    let session = Session::of_row(row, state.dirs().state()?)?;
    if session.life(state.world()) != Lifecycle::Live {
        return ResolvedSession::over_found(state, device, &session);
    }
    let selection = format!("session {}", quoted(session.label()));
    let flag = format!("--session {}", shell_quoted(session.label()));
    withhold(state, UsageError::SelectionWithheld { selection, flag, device: device.to_owned(), reason })?;
    Ok(ResolvedSession::default())
}

/// Fails because a terminal has a selection that this call may not use; only warns if the call reads.
pub(crate) fn withhold(state: &State, error: impl Into<Error>) -> Result<()> {
    let error = error.into();
    match state.call().mode().withheld_selection {
        WithheldSelection::Fail => return Err(error),
        WithheldSelection::Report => state.warn(error.to_string(), error.hint(state.app())),
        WithheldSelection::Ignore => {}
    }
    Ok(())
}

fn terminal_key(state: &State, terminal: &Terminal) -> PointerKey {
    PointerKey {
        kind: PointerKind::Session,
        scope: Scope::Terminal,
        place: terminal.key(),
        account: state.pointer_account(),
    }
}

/// Selection of a session for a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalSelection {
    /// Whether the session was selected.
    pub is_selected: bool,
    /// Label of the live session that the terminal had before, and that goes on.
    pub left: Option<String>,
    /// Whether the shell of the terminal follows.
    pub is_hooked: bool,
}

/// Selects a session for this terminal. It is not selected for a call that may not select anything for its terminal, nor
/// inside a session, whose variable is stronger anyway.
pub(crate) fn select_for_terminal(state: &State, session: &Session) -> Result<TerminalSelection> {
    if state.pinned_session().is_some() {
        return Ok(TerminalSelection::default());
    }
    let Some(terminal) = state.call().selectable_terminal() else { return Ok(TerminalSelection::default()) };
    let key = terminal_key(state, terminal);
    let left = selected_session(state, &key)?;
    let previous = left.as_ref().map(|left| left.id.to_string());
    let mut store = state.store_for_writing()?;
    store.set_pointer(&key, Some(session.id.as_str()), previous.as_deref(), state.now_ms())?;
    drop(store);
    let shell = state.hooked_prompt();
    if let Some(shell) = shell {
        shell.request_change(state)?;
    }
    let is_left = |left: &Session| left.id != session.id && left.life(state.world()) == Lifecycle::Live;
    let left = left.filter(is_left).map(|left| left.label().to_owned());
    Ok(TerminalSelection { is_selected: true, left, is_hooked: shell.is_some() })
}

/// Session that a terminal has left.
pub(crate) struct LeftSession {
    pub(crate) label: String,
    pub(crate) is_live: bool,
}

/// Deselects the session of this terminal. A live one goes on.
pub(crate) fn deselect_for_terminal(state: &State) -> Result<Option<LeftSession>> {
    let Some(terminal) = state.call().selectable_terminal() else { return Ok(None) };
    let key = terminal_key(state, terminal);
    let pointer = state.fresh_store()?.map(|store| store.pointer(&key)).transpose()?.flatten();
    let Some(id) = pointer.and_then(|pointer| pointer.value) else { return Ok(None) };
    state.store_for_writing()?.remove_pointers(std::slice::from_ref(&key))?;
    Ok(Some(match state.look_up_session(&id) {
        Ok((_, session)) => LeftSession {
            label: session.label().to_owned(),
            is_live: session.life(state.world()) == Lifecycle::Live,
        },
        // It was deleted altogether.
        Err(_) => LeftSession { label: id, is_live: false },
    }))
}

/// Deselects a session for this terminal if it has selected that one.
pub(crate) fn deselect_stopped(state: &State, session: &Session) -> Result<()> {
    let Some(terminal) = state.call().selectable_terminal() else { return Ok(()) };
    let selected = selected_session(state, &terminal_key(state, terminal))?;
    if selected.is_some_and(|selected| selected.id == session.id) {
        deselect_for_terminal(state)?;
    }
    Ok(())
}

/// The session that a terminal has selected.
fn selected_session(state: &State, key: &PointerKey) -> Result<Option<Session>> {
    let pointer = state.fresh_store()?.map(|store| store.pointer(key)).transpose()?.flatten();
    let Some(id) = pointer.and_then(|pointer| pointer.value) else { return Ok(None) };
    Ok(state.look_up_session(&id).ok().map(|(_, session)| session))
}
