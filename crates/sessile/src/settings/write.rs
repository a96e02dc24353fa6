//! Where a changed setting goes, and putting it there.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Serialize;

use crate::context::{Context, Home};
use crate::error::{Error, Result};
use crate::files::LockedDir;
use crate::settings::project::Project;
use crate::settings::{Document, Kind, Layer, Node, SettingKey, Source, Stack, Value, edit, trust};
use crate::state::{ConfigSource, State};

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
    /// What it was there, masked if it looks like a secret.
    pub old: Option<Value>,
    /// What it is there now.
    pub new: Option<Value>,
    /// The file.
    pub path: PathBuf,
}

/// The file that a scope means. Without a scope it is the project's personal file, and nothing wider.
pub fn target(state: &State, scope: Option<WriteScope>) -> Result<(Layer, PathBuf)> {
    match (state.source(), scope) {
        (ConfigSource::Nothing, _) => {
            Err(Error::Usage("with --no-config there is no file to change: leave it out".into()))
        }
        (ConfigSource::File(file), _) => Ok((Layer::File, file.clone())),
        (_, Some(WriteScope::Directory)) => Ok((Layer::Directory, directory(state)?.local_settings())),
        (_, Some(WriteScope::Project)) => Ok((Layer::Directory, directory(state)?.settings())),
        (_, Some(WriteScope::Global)) => Ok((Layer::User, user_file(state)?)),
        (_, None) if state.inside_session().is_some() => Err(Error::ScopeRequired {
            what: "inside a session nothing outside it is changed unasked".into(),
            flags: "--dir for this directory or --global for this user, or set it for one call with --set KEY=VALUE",
        }),
        (_, None) => match state.project() {
            Some(project) => Ok((Layer::Directory, project.local_settings())),
            None => Err(Error::ScopeRequired {
                what: "this directory belongs to no project".into(),
                flags: "--dir for this directory, or --global for this user everywhere",
            }),
        },
    }
}

/// The project of the working directory, or the one that could be made there.
pub fn directory(state: &State) -> Result<Project> {
    match (state.project(), state.world().cwd()) {
        (Some(project), _) => Ok(project.clone()),
        (None, Some(cwd)) if *state.source() == ConfigSource::Usual => Ok(Project::at(state.app(), cwd)),
        (None, Some(_)) => Err(Error::Usage("--config and --no-config know no directories".into())),
        (None, None) => Err(Error::Usage("the working directory does not exist".into())),
    }
}

/// The user's settings file, or the one that stands for it.
pub fn user_file(state: &State) -> Result<PathBuf> {
    match state.source() {
        ConfigSource::File(file) => Ok(file.clone()),
        ConfigSource::Usual => Ok(state.dirs().config()?.join("config.toml")),
        ConfigSource::Nothing => {
            Err(Error::Usage("with --no-config there is no file to change: leave it out".into()))
        }
    }
}

/// Sets a key in a file, or removes it, under the file's lock.
pub fn change_file(state: &State, path: &Path, key: &SettingKey, value: Option<&Value>) -> Result<Changed> {
    let definition = crate::settings::definition(state.app(), key)?;
    if definition.kind == Kind::Secret {
        return Err(Error::SecretRefused {
            place: path.to_string_lossy().into_owned(),
            instead: "a token for one call stands in a file of its own, given with --config",
        });
    }
    let mut old = None;
    change_text(state, path, |text| {
        let document = Document::parse(path, text.to_owned())?;
        let node = key.segments().iter().try_fold(document.root(), |node, name| node.get(name));
        old = node.map(|node| definition.read(node, key, &document)).transpose()?;
        match value {
            Some(value) if old.as_ref() == Some(value) => Ok(None),
            Some(value) => edit::set(path, text, key, value).map(Some),
            None => edit::unset(path, text, key),
        }
    })?;
    let masked = |value: Value| value.masked_for(key);
    let (old, new) = (old.map(masked), value.cloned().map(masked));
    Ok(Changed { key: key.clone(), old, new, path: path.to_owned() })
}

/// Fails unless a text could stand in a settings file.
pub fn check_text(state: &State, layer: Layer, path: &Path, text: &str) -> Result<()> {
    let document = Rc::new(Document::parse(path, text.to_owned())?);
    if layer == Layer::File {
        for (name, _) in document.root().get("contexts").map(Node::members).unwrap_or_default() {
            let within = vec!["contexts".to_owned(), name.clone()];
            Context::read(state.app(), name.parse()?, Home::File, true, Rc::clone(&document), within)?;
        }
    }
    let source = Source::File { layer, name: None, document, within: Vec::new(), trusted: true };
    Stack::new(state.app(), vec![source]).check()
}

/// Changes the text of a settings file under its lock. `None` leaves it alone. In a project, trust that covered
/// the old text goes over to the new one.
pub fn change_text(
    state: &State,
    path: &Path,
    change: impl FnOnce(&str) -> Result<Option<String>>,
) -> Result<()> {
    let locker = state.locker()?;
    let project = project_of(state, path);
    let (dir_mode, mode) = if project.is_some() { (0o755, 0o644) } else { (0o700, 0o600) };
    if let Some(project) = &project
        && path == project.local_settings()
    {
        project.ignore_local_settings(&locker)?;
    }
    let (dir, name) = LockedDir::of_file(&locker, path, dir_mode)?;
    let old = dir.read(&name)?;
    let empty = || if path.extension().is_some_and(|ending| ending == "json") { "{}" } else { "" };
    let Some(new) = change(old.as_deref().unwrap_or_else(empty))? else { return Ok(()) };
    let covered = project.is_some() && is_covered(state, path, old)?;
    if !covered {
        return dir.replace(&name, &new, mode);
    }
    let (key, fingerprint) = (trust::key(path), trust::fingerprint(&new));
    let mut store = state.store_for_writing()?;
    store.trust_also(&key, &fingerprint, state.now_ms())?;
    dir.replace(&name, &new, mode)?;
    // If this fails, what the file said before stays trusted: its user trusted that too.
    let _ = store.trust(&[(key, fingerprint)], state.now_ms());
    Ok(())
}

/// The project that a file belongs to, if it is in one's state directory.
fn project_of(state: &State, path: &Path) -> Option<Project> {
    let root = path.ancestors().find_map(|dir| {
        (dir.file_name()?.to_str()? == format!(".{}", state.app().name())).then(|| dir.parent())?
    })?;
    (*state.source() == ConfigSource::Usual).then(|| Project::at(state.app(), root))
}

/// Whether everything in a file is there with its user's knowledge: it was trusted, asked for nothing that
/// needs trust, or did not exist.
fn is_covered(state: &State, path: &Path, text: Option<String>) -> Result<bool> {
    let Some(text) = text else { return Ok(true) };
    let document = Rc::new(Document::parse(path, text)?);
    let is_settings = path.parent().is_some_and(|dir| dir.file_name().is_some_and(|name| name != "contexts"));
    Ok((is_settings && !state.asks_for_trust(&document)) || state.is_trusted(&document)?)
}
