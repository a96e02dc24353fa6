//! Selection of a context, for a call and for a scope.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::call::ConfigSource;
use crate::error::{ProjectError, Result, SessionError, UsageError};
use crate::history::{Effect, PointerValue};
use crate::interactive::TerminalAccess;
use crate::names::ContextName;
use crate::session::PendingSession;
use crate::session::resolve::{FOREIGN, foreign_selection, withhold};
use crate::settings::project::Project;
use crate::settings::{Candidate, IgnoreReason, Layer, Origin, SettingKey, Value, trust};
use crate::state::State;
use crate::store::{PointerKey, PointerKind, Scope};
use crate::terminal::Terminal;
use crate::text::{quoted, shell_quoted};

/// The context a call is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SelectedContext {
    /// Name.
    pub name: ContextName,
    /// Origin of the selection.
    pub origin: Origin,
}

/// Resolves the context of the call by the order of precedence.
pub(crate) fn select(state: &State) -> Result<Option<SelectedContext>> {
    let key = SettingKey::new(["context"]);
    let candidates = state.base()?.explain(&key)?;
    let strongest = candidates.into_iter().find(|candidate| candidate.ignored.is_none());
    let explicit = strongest.as_ref().filter(|found| found.origin.layer.is_explicit());
    let found = match (state.session()?, explicit) {
        (Some(current), asked) => {
            let session = &current.session;
            let asked = asked.and_then(|asked| asked.value.as_str());
            // An error and not a warning: the command would otherwise run in another context than its caller
            // named.
            require_pinned(state, session.label(), session.context.as_deref(), asked)?;
            let origin = Origin::named(Layer::Session, session.label());
            session.context.clone().map(|name| Candidate { value: Value::Text(name), origin, ignored: None })
        }
        (None, Some(_)) => strongest,
        (None, None) => match state.pending_session()? {
            // A session that is started again keeps its context.
            Some(PendingSession { name, context: Some(context) }) => {
                let origin = Origin::named(Layer::Session, name.to_string());
                Some(Candidate { value: Value::Text(context.clone()), origin, ignored: None })
            }
            // A session that is started inside another goes on in that one's context.
            Some(_) if state.enclosing_session().is_some() => outer_context(state)?,
            // The terminal comes after explicit values and before files, as the order of layers says.
            _ => terminal_selection(state)?.or(strongest),
        },
    };
    let selected = found.and_then(|Candidate { value, origin, .. }| {
        let name = value.as_str().and_then(|name| ContextName::of_session(name).ok());
        name.map(|name| SelectedContext { name, origin })
    });
    match &selected {
        Some(SelectedContext { name, origin }) => {
            tracing::debug!(context = %name, %origin, "resolved context");
        }
        None => tracing::debug!("no context selected"),
    }
    if !state.resolution.has_started_session.get() {
        warn_if_unexpected(state, selected.as_ref())?;
    }
    Ok(selected)
}

/// Fails if a project that is not trusted selects a context, and nothing stronger does. A session would otherwise start in
/// another context, or in none.
pub(crate) fn refuse_untrusted(state: &State) -> Result<()> {
    if state.session()?.is_some() {
        return Ok(());
    }
    let candidates = state.base()?.explain(&SettingKey::new(["context"]))?;
    let untrusted =
        candidates.into_iter().find(|candidate| candidate.ignored == Some(IgnoreReason::Untrusted));
    let (Some(untrusted), Some(project)) = (untrusted, state.project()) else { return Ok(()) };
    match state.selected()? {
        Some(selected) if selected.origin.layer <= untrusted.origin.layer => Ok(()),
        _ => Err(ProjectError::UntrustedSelection {
            context: untrusted.value.to_string(),
            project: project.root().to_owned(),
        }
        .into()),
    }
}

/// Fails if a call names another context than the one that its session is pinned to, unless the call only reads.
pub(super) fn require_pinned(
    state: &State,
    session: &str,
    pinned: Option<&str>,
    asked: Option<&str>,
) -> Result<()> {
    match asked.filter(|asked| pinned != Some(asked) && !state.call().mode().tolerates_stale_session) {
        None => Ok(()),
        Some(asked) => Err(SessionError::ContextFixed {
            session: session.to_owned(),
            pinned: pinned.map(str::to_owned),
            asked: asked.to_owned(),
        }
        .into()),
    }
}

fn outer_context(state: &State) -> Result<Option<Candidate>> {
    let id = state.enclosing_session().unwrap_or_default();
    let rows = state.store()?.map(|store| store.sessions_named(&state.account(), id)).transpose()?;
    let outer =
        // Without it the new session would silently start in another context than its surroundings.
        rows.unwrap_or_default().into_iter().next().ok_or_else(|| SessionError::NotFound(id.to_owned()))?;
    let origin = Origin::named(Layer::Session, outer.name.unwrap_or(outer.id));
    Ok(outer.context.map(|name| Candidate { value: Value::Text(name), origin, ignored: None }))
}

fn terminal_selection(state: &State) -> Result<Option<Candidate>> {
    let Some(access) = state.call().terminal_access() else { return Ok(None) };
    let Some(store) = state.store()? else { return Ok(None) };
    let withheld = |device: &Path, name: &str, reason| {
        let flag = format!("--context {}", shell_quoted(name));
        let selection = format!("context {}", quoted(name));
        let device = device.to_owned();
        withhold(state, UsageError::SelectionWithheld { selection, flag, device, reason }).map(|()| None)
    };
    let (terminal, obstacle) = match access {
        TerminalAccess::Read(terminal) => (terminal, None),
        TerminalAccess::Withheld(terminal, reason) => (terminal, Some(reason)),
        TerminalAccess::Foreign(device) => {
            let name = foreign_selection(state, store, PointerKind::Context, &device)?;
            return name.map_or(Ok(None), |name| withheld(&device, &name, FOREIGN));
        }
    };
    let key = terminal_key(state, terminal);
    let Some(name) = store.pointer(&key)?.and_then(|pointer| pointer.value) else { return Ok(None) };
    if let Some(reason) = obstacle {
        return withheld(&terminal.device, &name, reason);
    }
    let origin = Origin::named(Layer::Terminal, Terminal::key_device(&key.place));
    Ok(Some(Candidate { value: Value::Text(name), origin, ignored: None }))
}

pub(super) fn terminal_key(state: &State, terminal: &Terminal) -> PointerKey {
    PointerKey {
        kind: PointerKind::Context,
        scope: Scope::Terminal,
        place: terminal.key(),
        account: state.pointer_account(),
    }
}

fn warn_if_unexpected(state: &State, selected: Option<&SelectedContext>) -> Result<()> {
    let Some(expected) = state.base()?.get("expect-context")? else { return Ok(()) };
    let name = selected.map(|selected| selected.name.as_str());
    if name != expected.value.as_str() {
        let in_use = match selected {
            Some(selected) => {
                format!("context {} is in use ({})", quoted(selected.name.as_str()), selected.origin)
            }
            None => "no context is in use".to_owned(),
        };
        state.warn(
            format!("{in_use}, but {} is expected ({})", quoted(expected.value.to_string()), expected.origin),
            Some(format!("name it: --context {}", expected.value)),
        );
    }
    Ok(())
}

pub(super) fn pointer_effect(
    key: &PointerKey,
    before: Option<PointerValue>,
    after: Option<PointerValue>,
) -> Effect {
    let PointerKey { kind, scope, place, account } = key.clone();
    Effect::Pointer { target: kind, scope, place, account, before, after }
}

/// Every scope that has a context selected: the terminals, directories and files that point to it.
pub(crate) fn pointing_to(state: &State, name: &ContextName) -> Result<Vec<(Option<PointerKey>, Origin)>> {
    let mut found = Vec::new();
    let in_file = |path: &Path, layer| -> Result<Option<Origin>> {
        // A file that cannot be read selects nothing, and must not keep a context from being renamed.
        let Ok(Some(document)) = state.load(path) else { return Ok(None) };
        let node = document.root().get("context").filter(|node| node.as_str() == Some(name.as_str()));
        Ok(node.map(|node| Origin::in_file(layer, path, document.line(node.offset))))
    };
    for pointer in
        state.store()?.map(|store| store.pointers(PointerKind::Context)).transpose()?.unwrap_or_default()
    {
        match pointer.key.scope {
            Scope::Terminal => {
                let selected = pointer.value.as_deref() == Some(name.as_str());
                if selected && Terminal::key_is_alive(&pointer.key.place) {
                    let device = Terminal::key_device(&pointer.key.place).to_owned();
                    found.push((Some(pointer.key), Origin::named(Layer::Terminal, device)));
                }
            }
            Scope::Directory => {
                let file = crate::path_text::decode(&pointer.key.place);
                found.extend(in_file(&file, Layer::Directory)?.map(|origin| (Some(pointer.key), origin)));
            }
            Scope::Global => {}
        }
    }
    // The sessions of this moment: a pinned session would lose its context by a rename.
    let live = state
        .fresh_store()?
        .map(|store| store.sessions(&state.account(), None, true, usize::MAX))
        .transpose()?;
    for row in
        live.unwrap_or_default().into_iter().filter(|row| row.context.as_deref() == Some(name.as_str()))
    {
        let label = row.name.unwrap_or(row.id);
        found.push((None, Origin::named(Layer::Session, label)));
    }
    let project = state.project().map(|project: &Project| [project.local_settings(), project.settings()]);
    let mut files: Vec<(Layer, PathBuf)> =
        project.into_iter().flatten().map(|file| (Layer::Directory, file)).collect();
    match state.source() {
        ConfigSource::Usual => {
            files.extend(state.dirs().user_settings().map(|file| (Layer::User, file)));
            files.push((Layer::System, state.dirs().system_settings()));
        }
        ConfigSource::File(file) => files.push((Layer::File, file.clone())),
        ConfigSource::Nothing => {}
    }
    for (layer, file) in files {
        // One file can be known by two paths, and would otherwise be changed twice.
        let key = |path: &Path| trust::key(state.app(), path);
        let known = |origin: &Origin| origin.path.as_deref().is_some_and(|path| key(path) == key(&file));
        if !found.iter().any(|(_, origin)| known(origin)) {
            found.extend(in_file(&file, layer)?.map(|origin| (None, origin)));
        }
    }
    Ok(found)
}

/// The effects that take a context out of every place of this user's that points to it, or put another in.
pub(crate) fn repointing(state: &State, name: &ContextName, to: Option<&ContextName>) -> Result<Vec<Effect>> {
    let mut effects = Vec::new();
    for (pointer, origin) in pointing_to(state, name)? {
        let value = |name: &ContextName| Value::Text(name.to_string());
        match (&origin.path, origin.layer) {
            // The administrator's file is not ours to change, and a session keeps its context.
            (_, Layer::System | Layer::Session) => {}
            (Some(path), _) => {
                let key = SettingKey::new(["context"]);
                effects.push(Effect::setting(path, &key, Some(&value(name)), to.map(value).as_ref()));
            }
            (None, _) => {
                let Some(key) = pointer else { continue };
                let row = state.store()?.map(|store| store.pointer(&key)).transpose()?.flatten();
                let before = row.map(|row| PointerValue { value: row.value, previous: row.previous });
                let after = to.map(|to| PointerValue {
                    value: Some(to.to_string()),
                    previous: before
                        .as_ref()
                        .and_then(|before| before.previous.clone())
                        .map(|previous| if previous == name.as_str() { to.to_string() } else { previous }),
                });
                effects.push(pointer_effect(&key, before, after));
            }
        }
    }
    // The way back goes to the new name too, or nowhere.
    for row in state
        .fresh_store()?
        .map(|store| store.pointers(PointerKind::Context))
        .transpose()?
        .unwrap_or_default()
    {
        let known = |effect: &Effect| matches!(effect, Effect::Pointer { place, scope, .. } if *place == row.key.place && *scope == row.key.scope);
        if row.previous.as_deref() == Some(name.as_str()) && !effects.iter().any(known) {
            let before = PointerValue { value: row.value.clone(), previous: row.previous };
            let after = PointerValue { value: row.value, previous: to.map(ToString::to_string) };
            effects.push(pointer_effect(&row.key, Some(before), Some(after)));
        }
    }
    Ok(effects)
}
