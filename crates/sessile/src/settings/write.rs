//! Where a changed setting goes, and putting it there.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use serde::Serialize;

use crate::app::App;
use crate::call::ConfigSource;
use crate::context::weaken::leads_others;
use crate::context::{Context, Home};
use crate::error::{Error, FileError, Result, SessionError, UsageError};
use crate::files::LockedDir;
use crate::history::{Effect, perform, settle, unless_overtaken};
use crate::secrets::{USE_THE_VAULT, is_secret};
use crate::session::{EntryKind, Session};
use crate::settings::document::is_json;
use crate::settings::project::Project;
use crate::settings::{Document, Kind, Layer, Node, SettingKey, Source, Stack, Value, edit, trust};
use crate::state::State;

/// Where a setting is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteScope {
    /// In this directory, for this person: `local.toml`.
    Directory,
    /// In this project, for everyone: `config.toml`, to be committed.
    Project,
    /// For this user.
    Global,
}

/// What a change did.
#[derive(Clone, Debug, Serialize)]
pub struct Changed {
    /// The key.
    pub key: SettingKey,
    /// What it was there.
    pub old: Option<Value>,
    /// What it is there now.
    pub new: Option<Value>,
    /// The file.
    #[serde(serialize_with = "crate::text::path_in_json")]
    pub path: PathBuf,
}

/// Where a setting goes.
#[derive(Clone, Debug)]
pub enum Target {
    /// Into the session this call works in.
    Session(Rc<Session>),
    /// Into a file.
    File(Layer, PathBuf),
}

impl Target {
    /// Its layer.
    pub fn layer(&self) -> Layer {
        match self {
            Target::Session(_) => Layer::Session,
            Target::File(layer, _) => *layer,
        }
    }

    /// What it is, for people.
    pub fn place(&self) -> String {
        match self {
            Target::Session(session) => format!("session {}", session.label()),
            Target::File(_, path) => path.display().to_string(),
        }
    }
}

/// What a scope means. Without a scope it is the session, else the project's personal file, and nothing wider.
pub fn target(state: &State, scope: Option<WriteScope>) -> Result<Target> {
    match state.session()? {
        Some(_) if scope.is_none() => Ok(Target::Session(state.require_session("setting it")?)),
        _ => file(state, scope).map(|(layer, path)| Target::File(layer, path)),
    }
}

/// Sets a setting where it goes, or removes it, and records it.
pub fn change(
    state: &State,
    command: &str,
    target: &Target,
    key: &SettingKey,
    value: Option<&Value>,
) -> Result<Changed> {
    match target {
        Target::File(_, path) => {
            refuse_to_redirect(state, key)?;
            change_file(state, command, path, key, value)
        }
        Target::Session(session) => change_in_session(state, command, session, key, value),
    }
}

/// The rule of `context::weaken`, with a hint for a call that names one key.
fn refuse_to_redirect(state: &State, key: &SettingKey) -> Result<()> {
    if state.enclosing_session().is_some() && leads_others(state.app(), key) {
        return Err(SessionError::RefusedInside {
            what: format!("setting {} for others", crate::text::quoted(key.to_string())),
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
            Err(UsageError::Arguments("with --no-config there is no file to change: leave it out".into())
                .into())
        }
        (ConfigSource::File(file), _) => Ok((Layer::File, file.clone())),
        (_, Some(WriteScope::Directory)) => Ok((Layer::Directory, directory(state)?.local_settings())),
        (_, Some(WriteScope::Project)) => Ok((Layer::Directory, directory(state)?.settings())),
        (_, Some(WriteScope::Global)) => Ok((Layer::User, user_file(state)?)),
        (_, None) => match state.project() {
            Some(project) => Ok((Layer::Directory, project.local_settings())),
            None => Err(UsageError::ScopeRequired {
                what: "this directory belongs to no project".into(),
                flags: "pass --dir for this directory, or --global for this user everywhere",
            }
            .into()),
        },
    }
}

/// The project of the working directory, or the one that could be made there.
pub fn directory(state: &State) -> Result<Project> {
    match (state.project(), state.world().cwd()) {
        (Some(project), _) => Ok(project.clone()),
        (None, Some(cwd)) if *state.source() == ConfigSource::Usual => {
            Ok(Project::at(state.app(), state.world(), cwd))
        }
        (None, Some(_)) => {
            Err(UsageError::Arguments("--config and --no-config know no directories".into()).into())
        }
        (None, None) => Err(UsageError::Arguments("the working directory does not exist".into()).into()),
    }
}

/// The user's settings file, or the one that stands for it.
pub fn user_file(state: &State) -> Result<PathBuf> {
    match state.source() {
        ConfigSource::File(file) => Ok(file.clone()),
        ConfigSource::Usual => Ok(state.dirs().config()?.join("config.toml")),
        ConfigSource::Nothing => {
            Err(UsageError::Arguments("with --no-config there is no file to change: leave it out".into())
                .into())
        }
    }
}

/// Sets a key in a file, or removes it, and records it.
pub fn change_file(
    state: &State,
    command: &str,
    path: &Path,
    key: &SettingKey,
    value: Option<&Value>,
) -> Result<Changed> {
    settle(state)?;
    refuse_secret(state, path, key)?;
    value.map_or(Ok(()), |value| refuse_secret_value(key, value, &key.to_string()))?;
    unless_overtaken(|| {
        let old = value_in_file(state, path, key)?;
        if old.as_ref() != value {
            let effect = setting_effect(path, key, old.as_ref(), value);
            perform(state, command, &key.to_string(), &[effect])?;
        }
        Ok(changed(key, old, value, path.to_owned()))
    })
}

/// What is told about a change: what looks like a secret is not repeated.
fn changed(key: &SettingKey, old: Option<Value>, new: Option<&Value>, path: PathBuf) -> Changed {
    let masked = |value: Value| value.masked_for(key);
    Changed { key: key.clone(), old: old.map(masked), new: new.cloned().map(masked), path }
}

fn change_in_session(
    state: &State,
    command: &str,
    session: &Session,
    key: &SettingKey,
    value: Option<&Value>,
) -> Result<Changed> {
    settle(state)?;
    let definition = crate::settings::definition(state.app(), key)?;
    if value.is_some() || is_context(key) {
        require_session_setting(key)?;
    }
    if let Some(value) = value {
        refuse_secret_value(key, value, &key.to_string())?;
        crate::session::refuse_secret(&key.to_string(), &serde_json::json!(value))?;
    }
    unless_overtaken(|| {
        let found = state.sessions()?.entry(session, EntryKind::Setting, &key.to_string())?;
        let old = found.as_ref().and_then(|entry| definition.kind.of_json(&entry.value));
        if old.as_ref() != value {
            let effect = Effect::Entry {
                session: session.id.to_string(),
                entry: EntryKind::Setting,
                key: key.to_string(),
                before: found.map(|entry| entry.value),
                after: value.map(|value| serde_json::json!(value)),
            };
            perform(state, command, &key.to_string(), &[effect])?;
        }
        Ok(changed(key, old, value, session.room().dir().to_owned()))
    })
}

/// Fails unless `config set` could set the settings of an exported session in a session.
pub(crate) fn check_imported(app: &App, settings: &BTreeMap<String, serde_json::Value>) -> Result<()> {
    for (name, json) in settings {
        let key: SettingKey = name.parse()?;
        let definition = crate::settings::definition(app, &key)?;
        require_session_setting(&key)?;
        crate::session::refuse_secret(name, json)?;
        let value = definition.kind.of_json(json).ok_or_else(|| UsageError::InvalidValue {
            place: key.to_string(),
            // An error does not quote the file.
            value: "the value in the file".into(),
            expected: definition.kind.expected(),
        })?;
        refuse_secret_value(&key, &value, name)?;
    }
    Ok(())
}

/// Whether a session can have a setting. Its context is pinned. Credentials are the user's, and a program can keep them,
/// which nobody who may set a value for a session may select.
pub(crate) fn is_session_setting(key: &SettingKey) -> bool {
    !is_context(key) && key.segments().first().is_none_or(|first| first != "vault")
}

fn is_context(key: &SettingKey) -> bool {
    matches!(key.segments(), [name] if name == "context")
}

fn require_session_setting(key: &SettingKey) -> Result<()> {
    if is_context(key) {
        return Err(SessionError::RefusedInside {
            what: "changing the context".into(),
            instead: "a session keeps the context it was started with; start another session",
        }
        .into());
    }
    if !is_session_setting(key) {
        return Err(SessionError::RefusedInside {
            what: format!("setting {}", crate::text::quoted(key.to_string())),
            instead: "a session has no vault of its own; set it for the user, outside any session",
        }
        .into());
    }
    Ok(())
}

/// Puts a new text into a file that still says what was seen, and records it.
pub fn change_text(state: &State, command: &str, path: &Path, old: Option<&str>, new: &str) -> Result<()> {
    settle(state)?;
    let effect = Effect::Text {
        path: path.to_owned(),
        before: old.map(str::to_owned),
        after: Some(new.to_owned()),
        untrusted: false,
    };
    perform(state, command, &path.display().to_string(), &[effect]).map(drop)
}

/// The effect of changing a key.
pub(crate) fn setting_effect(
    path: &Path,
    key: &SettingKey,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Effect {
    Effect::Setting {
        path: path.to_owned(),
        key: key.to_string(),
        before: old.map(|value| serde_json::json!(value)),
        after: new.map(|value| serde_json::json!(value)),
        untrusted: false,
    }
}

/// The value that a file gives a key now.
pub fn value_in_file(state: &State, path: &Path, key: &SettingKey) -> Result<Option<Value>> {
    match state.load(path)? {
        Some(document) => value_in(state, &document, key),
        None => Ok(None),
    }
}

fn refuse_secret(state: &State, path: &Path, key: &SettingKey) -> Result<()> {
    if crate::settings::definition(state.app(), key)?.kind == Kind::Secret {
        return Err(UsageError::SecretRefused {
            place: path.to_string_lossy().into_owned(),
            instead: "a token for one call stands in a file of its own, given with --config",
        }
        .into());
    }
    Ok(())
}

/// Fails if a value is a secret: a variable for commands whose name says so, or a URL with a password.
pub(crate) fn refuse_secret_value(key: &SettingKey, value: &Value, place: &str) -> Result<()> {
    let is_refused = match (key.segments(), value) {
        ([table, name], Value::Text(text)) if table == "env" => is_secret(name, text),
        _ => value.has_url_password(),
    };
    match is_refused {
        true => Err(UsageError::SecretRefused { place: place.to_owned(), instead: USE_THE_VAULT }.into()),
        false => Ok(()),
    }
}

fn value_in(state: &State, document: &Document, key: &SettingKey) -> Result<Option<Value>> {
    let definition = crate::settings::definition(state.app(), key)?;
    let node = key.segments().iter().try_fold(document.root(), |node, name| node.get(name));
    node.map(|node| definition.read(node, key, document)).transpose()
}

/// Whether recorded changes are made to a file: the settings and contexts of the user and of projects, or the `--config`
/// file.
pub(crate) fn is_managed(state: &State, path: &Path) -> bool {
    if let ConfigSource::File(file) = state.source() {
        let is_same = || Some(path.canonicalize().ok()? == file.canonicalize().ok()?);
        return path == file || is_same().unwrap_or(false);
    }
    let project = Project::containing(state.app(), state.world(), path);
    let dirs = [state.dirs().config().ok(), project.as_ref().map(Project::dir)];
    dirs.into_iter().flatten().filter_map(|dir| path.strip_prefix(dir).ok()).any(|relative| {
        let names: Vec<Component<'_>> = relative.components().collect();
        match names.as_slice() {
            [Component::Normal(name)] => *name == "config.toml" || *name == "local.toml",
            [Component::Normal(dir), Component::Normal(name)] => {
                *dir == "contexts" && Path::new(name).extension().is_some_and(|ending| ending == "toml")
            }
            _ => false,
        }
    })
}

/// Brings one key of a file from one value to another, under the file's lock.
pub(crate) fn replace_setting(
    state: &State,
    path: &Path,
    key: &SettingKey,
    from: Option<&serde_json::Value>,
    to: Option<&serde_json::Value>,
    rule: TrustRule,
) -> Result<()> {
    let kind = crate::settings::definition(state.app(), key)?.kind;
    let to = to.and_then(|json| kind.of_json(json));
    rewrite(state, path, rule, |text| {
        let document = state.parse(path, text.unwrap_or_else(|| empty(path)).to_owned())?;
        let now = value_in(state, &document, key)?;
        if now.map(|value| serde_json::json!(value)).as_ref() != from {
            return Err(FileError::ConcurrentChange { path: path.to_owned(), kept: None }.into());
        }
        let changed = match &to {
            Some(value) => Some(edit::set(path, document.text(), key, value)?),
            None => edit::unset(path, document.text(), key)?,
        };
        Ok(changed.or_else(|| text.map(str::to_owned)))
    })
}

/// Brings a whole file from one text to another, under its lock; no text means no file.
pub(crate) fn replace_text(
    state: &State,
    path: &Path,
    from: Option<&str>,
    to: Option<&str>,
    rule: TrustRule,
) -> Result<()> {
    rewrite(state, path, rule, |text| {
        if text != from {
            return Err(FileError::ConcurrentChange { path: path.to_owned(), kept: None }.into());
        }
        Ok(to.map(str::to_owned))
    })
}

/// How a rewritten file of a project comes by its trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustRule {
    /// The command made the content: trusted if the replaced text was trusted, asked for nothing, or did not exist.
    Extend,
    /// The content is restored: trusted if the replaced text was trusted.
    Keep,
    /// The content comes from an untrusted file.
    Withhold,
}

/// Rewrites a file under its lock. In a project, trust in the old text extends to the new one as the rule says; a text
/// that was trusted at this path before is trusted in any case.
fn rewrite(
    state: &State,
    path: &Path,
    rule: TrustRule,
    change: impl FnOnce(Option<&str>) -> Result<Option<String>>,
) -> Result<()> {
    let locker = state.locker()?;
    let project = state.project_of(path);
    let mode = if project.is_some() { 0o644 } else { 0o600 };
    if let Some(project) = &project
        && path == project.local_settings()
    {
        project.ignore_local_settings(&locker)?;
    }
    let (dir, name) = match &project {
        Some(project) => project.lock_file(&locker, path)?,
        None => LockedDir::of_file(&locker, path, 0o700)?,
    };
    let old = dir.read(&name)?;
    let new = change(old.as_deref())?;
    if new == old {
        return Ok(());
    }
    let Some(text) = new else { return dir.remove(&name).map(drop) };
    let is_trusted = match (rule, old) {
        _ if project.is_none() => false,
        (TrustRule::Withhold, _) | (TrustRule::Keep, None) => false,
        (TrustRule::Extend, None) => true,
        (TrustRule::Extend, Some(old)) => is_covered(state, path, old)?,
        (TrustRule::Keep, Some(old)) => state.is_trusted(&Document::parse(path, old)?)?,
    };
    if !is_trusted {
        return dir.replace(&name, &text, mode);
    }
    let (key, fingerprint) = (trust::key(state.app(), path), trust::fingerprint(&text));
    let mut store = state.store_for_writing()?;
    store.trust_also(&key, &fingerprint, state.now_ms())?;
    dir.replace(&name, &text, mode)?;
    // If this fails, what the file said before stays trusted: its user trusted that too.
    let _ = store.trust(&[(key, fingerprint)], state.now_ms());
    Ok(())
}

/// Fails unless a text could stand in a settings file.
pub fn check_text(state: &State, layer: Layer, path: &Path, text: &str) -> Result<()> {
    let document = Rc::new(state.parse(path, text.to_owned())?);
    if layer == Layer::File {
        for (name, node) in document.root().get("contexts").map(Node::members).unwrap_or_default() {
            let within = vec!["contexts".to_owned(), name.clone()];
            let name = document.context_name(name, node)?;
            Context::read(state.app(), name, Home::File, true, Rc::clone(&document), within)?;
        }
    }
    let source = Source::File { layer, name: None, document, within: Vec::new(), trusted: true };
    Stack::new(state.app(), vec![source]).check()
}

/// An empty file of a path's format.
pub(crate) fn empty(path: &Path) -> &'static str {
    if is_json(path) { "{}" } else { "" }
}

/// Whether everything in a file is there with its user's knowledge: it was trusted, or asked for nothing that needs
/// trust.
fn is_covered(state: &State, path: &Path, text: String) -> Result<bool> {
    let document = Rc::new(Document::parse(path, text)?);
    let is_settings = path.parent().is_some_and(|dir| dir.file_name().is_some_and(|name| name != "contexts"));
    Ok((is_settings && !state.asks_for_trust(&document)) || state.is_trusted(&document)?)
}

/// Whether a text of a file belongs to a project and is not trusted, whatever settings this call uses.
pub(crate) fn is_untrusted(state: &State, path: &Path, text: &str) -> Result<bool> {
    if Project::containing(state.app(), state.world(), path).is_none() {
        return Ok(false);
    }
    match is_covered(state, path, text.to_owned()) {
        Ok(covered) => Ok(!covered),
        // Nobody has read and trusted what cannot be parsed.
        Err(Error::File(FileError::Syntax { .. }) | Error::File(FileError::Value { .. })) => Ok(true),
        Err(error) => Err(error),
    }
}
