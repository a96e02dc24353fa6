//! The session of a call: named by a flag, named by the variable, or selected for the terminal.

use std::path::Path;
use std::rc::Rc;

use crate::call::{SessionMode, WithheldSelection};
use crate::error::{Diagnostic, Result, SessionError, StoreError, UsageError};
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
    /// The terminal's selection, if it names a session that is gone.
    pub(crate) stale_selection: Option<PointerKey>,
}

impl ResolvedSession {
    fn pending(name: SessionName, context: Option<String>) -> Self {
        ResolvedSession { pending: Some(PendingSession { name, context }), ..Self::default() }
    }

    fn stale(state: &State, key: PointerKey, session: &str, reason: &str) -> Self {
        let session = quoted(session);
        state.warn(format!("session {session} of this terminal {reason}; this terminal has none now"), None);
        ResolvedSession { stale_selection: Some(key), ..Self::default() }
    }
}

/// Looks up the session that a call works in. A named session that cannot be used is an error; a terminal's selection
/// of one is ignored, with a warning.
pub(crate) fn resolve_session(state: &State) -> Result<ResolvedSession> {
    let mode = state.call().mode();
    let (text, origin, selection) = match &state.args().session {
        Some(text) if !state.leaves_hook_session() => (text.clone(), state.session_origin(), None),
        _ => match terminal_session(state)? {
            Some((text, key)) => {
                let device = Terminal::key_device(&key.place).to_owned();
                (text, Origin::named(Layer::Terminal, device), Some(key))
            }
            None => return Ok(ResolvedSession::default()),
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
    // A terminal's selection may outlive its session, and must not make every command in it fail.
    if let (Some(key), true) = (&selection, rows.is_empty()) {
        return Ok(ResolvedSession::stale(state, key.clone(), &text, "was forgotten"));
    }
    let row = match rows.len() {
        0 if mode.tolerates_stale_session && origin.layer == Layer::Environment => {
            state.warn(format!("{origin} names session {}, which is gone", quoted(&text)), None);
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
    if let Some(key) = selection
        && session.life(state.world()) != Lifecycle::Live
    {
        let reason = if session.ended.is_some() { "was ended" } else { "has expired" };
        return Ok(ResolvedSession::stale(state, key, session.label(), reason));
    }
    let settings = session_settings(state, &session)?;
    tracing::info!(session = session.label(), id = %session.id, %origin, "resolved session");
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
        if !is_session_setting(&key) {
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

fn terminal_session(state: &State) -> Result<Option<(String, PointerKey)>> {
    if state.call().mode().session == SessionMode::New {
        return Ok(None);
    }
    let Some(access) = state.call().terminal_access() else { return Ok(None) };
    let Some(store) = state.store()? else { return Ok(None) };
    let selected = |terminal: &Terminal| -> Result<Option<(String, PointerKey)>> {
        let key = terminal_key(state, terminal);
        Ok(store.pointer(&key)?.and_then(|pointer| pointer.value).map(|text| (text, key)))
    };
    match access {
        TerminalAccess::Read(terminal) => selected(terminal),
        // A call that names its context needs no session of the terminal.
        TerminalAccess::Withheld(..) if state.call().override_of("context").is_some() => Ok(None),
        TerminalAccess::Withheld(terminal, reason) => match selected(terminal)? {
            Some((text, _)) => withhold_session(state, &terminal.device, &text, reason).map(|()| None),
            None => Ok(None),
        },
        TerminalAccess::Foreign(_) if state.call().override_of("context").is_some() => Ok(None),
        TerminalAccess::Foreign(device) => {
            match foreign_selection(state, store, PointerKind::Session, &device)? {
                Some(text) => withhold_session(state, &device, &text, FOREIGN).map(|()| None),
                None => Ok(None),
            }
        }
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

/// Fails because the terminal has selected a live session that this call may not use; only warns if the call reads.
fn withhold_session(state: &State, device: &Path, text: &str, reason: &'static str) -> Result<()> {
    let rows = sessions_named(state, text)?;
    // Nothing to withhold: the session was forgotten.
    let Some(row) = rows.into_iter().next() else { return Ok(()) };
    let session = Session::of_row(row, state.dirs().state()?)?;
    if session.life(state.world()) != Lifecycle::Live {
        return Ok(());
    }
    let selection = format!("session {}", quoted(session.label()));
    withhold(state, device, selection, format!("--session {}", shell_quoted(session.label())), reason)
}

/// Fails because a terminal has a selection that this call may not use; only warns if the call reads.
pub(crate) fn withhold(
    state: &State,
    device: &Path,
    selection: String,
    flag: String,
    reason: &'static str,
) -> Result<()> {
    let error = UsageError::SelectionWithheld { selection, flag, device: device.to_owned(), reason };
    match state.call().mode().withheld_selection {
        WithheldSelection::Fail => return Err(error.into()),
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
    if state.inside_session().is_some() {
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

/// Deselects the session of this terminal, which goes on. Returns the label of a live one.
pub(crate) fn deselect_for_terminal(state: &State) -> Result<Option<String>> {
    let Some(terminal) = state.call().selectable_terminal() else { return Ok(None) };
    let key = terminal_key(state, terminal);
    let left = selected_session(state, &key)?;
    if left.is_some() {
        state.store_for_writing()?.remove_pointers(std::slice::from_ref(&key))?;
    }
    let left = left.filter(|session| session.life(state.world()) == Lifecycle::Live);
    Ok(left.map(|session| session.label().to_owned()))
}

/// The session that a terminal has selected.
fn selected_session(state: &State, key: &PointerKey) -> Result<Option<Session>> {
    let pointer = state.fresh_store()?.map(|store| store.pointer(key)).transpose()?.flatten();
    let Some(id) = pointer.and_then(|pointer| pointer.value) else { return Ok(None) };
    Ok(state.look_up_session(&id).ok().map(|(_, session)| session))
}
