//! Changes of settings: the scope of a change, and the file or the session that it goes to.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Serialize;

use crate::call::ConfigSource;
use crate::context::guard_weakening::leads_others;
use crate::context::{Context, ContextLocation};
use crate::error::{Result, SessionError, UsageError};
use crate::history::{Effect, perform, settle, unless_overtaken, value_in_file};
use crate::session::{EntryKind, Session};
use crate::settings::rules::{is_context, refuse_secret_value, require_session_setting};
use crate::settings::{Layer, Node, SettingKey, SettingKind, SettingSource, Stack, Value};
use crate::state::State;

/// Scope of a setting to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteScope {
    /// In this directory, for this person: `local.toml`.
    Directory,
    /// In this project, for everyone: `config.toml`, to be committed.
    Project,
    /// For this user.
    Global,
}

/// Change of a setting.
#[derive(Clone, Debug, Serialize)]
pub struct SettingChange {
    /// The key.
    pub key: SettingKey,
    /// Previous value.
    pub old: Option<Value>,
    /// New value.
    pub new: Option<Value>,
    /// The file.
    #[serde(serialize_with = "crate::text::path_in_json")]
    pub path: PathBuf,
}

/// Destination of a setting.
#[derive(Clone, Debug)]
pub enum WriteTarget {
    /// Into the session this call works in.
    Session(Rc<Session>),
    /// Into a file.
    File(Layer, PathBuf),
}

impl WriteTarget {
    /// Layer.
    pub fn layer(&self) -> Layer {
        match self {
            WriteTarget::Session(_) => Layer::Session,
            WriteTarget::File(layer, _) => *layer,
        }
    }

    /// Description for people.
    pub fn place(&self) -> String {
        match self {
            WriteTarget::Session(session) => format!("session {}", session.label()),
            WriteTarget::File(_, path) => path.display().to_string(),
        }
    }
}

/// Destination of a scope. The default is the session, else the project's personal file, and nothing wider.
pub fn target(state: &State, scope: Option<WriteScope>) -> Result<WriteTarget> {
    match state.session()? {
        Some(_) if scope.is_none() => Ok(WriteTarget::Session(state.require_session("setting it")?)),
        _ => file(state, scope).map(|(layer, path)| WriteTarget::File(layer, path)),
    }
}

/// Fails if a setting cannot be set in this place at all, whatever its value.
pub fn require_settable(state: &State, target: &WriteTarget, key: &SettingKey) -> Result<()> {
    match target {
        WriteTarget::File(..) => refuse_to_redirect(state, key),
        WriteTarget::Session(_) => require_session_setting(state.app(), key),
    }
}

/// Sets a setting where it goes, or removes it, and records it.
pub fn change(
    state: &State,
    command: &str,
    target: &WriteTarget,
    key: &SettingKey,
    value: Option<&Value>,
) -> Result<SettingChange> {
    match target {
        WriteTarget::File(_, path) => {
            refuse_to_redirect(state, key)?;
            change_file(state, command, path, key, value)
        }
        WriteTarget::Session(session) => change_in_session(state, command, session, key, value),
    }
}

/// The rule of `context::guard_weakening`, with a hint for a call that names one key.
fn refuse_to_redirect(state: &State, key: &SettingKey) -> Result<()> {
    if state.inside_session().is_some() && leads_others(state.app(), key) {
        return Err(SessionError::RefusedInside {
            what: format!("setting {} outside the session", crate::text::quoted(key.to_string())),
            instead: "leave out --global, --dir and --project to set it for this session",
        }
        .into());
    }
    Ok(())
}

/// The file that a scope means.
pub fn file(state: &State, scope: Option<WriteScope>) -> Result<(Layer, PathBuf)> {
    match (state.source(), scope) {
        (ConfigSource::Nothing, _) => {
            Err(UsageError::Arguments("--no-config excludes every settings file; remove the flag".into())
                .into())
        }
        // With `--config` one file stands for every scope.
        (ConfigSource::File(file), _) => Ok((Layer::File, file.clone())),
        (_, Some(WriteScope::Directory)) => {
            Ok((Layer::Directory, state.writable_project()?.local_settings()))
        }
        (_, Some(WriteScope::Project)) => Ok((Layer::Directory, state.writable_project()?.settings())),
        (_, Some(WriteScope::Global)) => Ok((Layer::User, state.user_settings_file()?)),
        (_, None) => match state.project() {
            Some(project) => Ok((Layer::Directory, project.local_settings())),
            None => Err(UsageError::ScopeRequired {
                what: "the working directory is not in a project".into(),
                flags: "pass --dir for this directory, or --global for this user everywhere",
            }
            .into()),
        },
    }
}

/// Sets a key in a file, or removes it, and records it.
pub fn change_file(
    state: &State,
    command: &str,
    path: &Path,
    key: &SettingKey,
    value: Option<&Value>,
) -> Result<SettingChange> {
    settle(state)?;
    refuse_secret(state, path, key)?;
    value.map_or(Ok(()), |value| refuse_secret_value(key, value, &key.to_string()))?;
    unless_overtaken(|| {
        let old = value_in_file(state, path, key)?;
        // Setting a value that is there already leaves no operation, so `undo` skips no real change.
        if old.as_ref() != value {
            let effect = Effect::setting(path, key, old.as_ref(), value);
            perform(state, command, &key.to_string(), &[effect])?;
        }
        Ok(changed(key, old, value, path.to_owned()))
    })
}

/// Reported change, with secrets redacted.
fn changed(key: &SettingKey, old: Option<Value>, new: Option<&Value>, path: PathBuf) -> SettingChange {
    let masked = |value: Value| value.masked_for(key);
    SettingChange { key: key.clone(), old: old.map(masked), new: new.cloned().map(masked), path }
}

fn change_in_session(
    state: &State,
    command: &str,
    session: &Session,
    key: &SettingKey,
    value: Option<&Value>,
) -> Result<SettingChange> {
    settle(state)?;
    let definition = crate::settings::definition(state.app(), key)?;
    // Removing a stored setting is allowed for any key but the context, to get rid of rows of a restored
    // database.
    if value.is_some() || is_context(key) {
        require_session_setting(state.app(), key)?;
    }
    if let Some(value) = value {
        refuse_secret_value(key, value, &key.to_string())?;
        crate::secrets::refuse_secret(&key.to_string(), &serde_json::json!(value))?;
    }
    unless_overtaken(|| {
        let found = state.sessions()?.entry(session, EntryKind::Setting, &key.to_string())?;
        let old = found.as_ref().and_then(|entry| definition.kind.of_json(&entry.value));
        if old.as_ref() != value {
            let effect = Effect::Entry {
                session: session.id.to_string(),
                entry: EntryKind::Setting,
                key: key.to_string(),
                // The stored value itself, also if its kind does not fit any more: undo must bring back what
                // was there.
                before: found.map(|entry| entry.value),
                after: value.map(|value| serde_json::json!(value)),
            };
            perform(state, command, &key.to_string(), &[effect])?;
        }
        Ok(changed(key, old, value, session.room().dir().to_owned()))
    })
}

fn refuse_secret(state: &State, path: &Path, key: &SettingKey) -> Result<()> {
    if crate::settings::definition(state.app(), key)?.kind == SettingKind::Secret {
        return Err(UsageError::SecretRefused {
            place: path.to_string_lossy().into_owned(),
            instead: "put a token for one call into its own file and pass it with --config",
        }
        .into());
    }
    Ok(())
}

/// Fails unless a text is a valid settings file.
pub fn check_text(state: &State, layer: Layer, path: &Path, text: &str) -> Result<()> {
    let document = Rc::new(state.parse(path, text.to_owned())?);
    if layer == Layer::File {
        for (name, node) in document.root().get("contexts").map(Node::members).unwrap_or_default() {
            let within = vec!["contexts".to_owned(), name.clone()];
            let name = document.context_name(name, node)?;
            Context::read(state.app(), name, ContextLocation::File, true, Rc::clone(&document), within)?;
        }
    }
    let source = SettingSource::File { layer, name: None, document, within: Vec::new(), trusted: true };
    Stack::new(state.app(), vec![source]).check()
}
