//! Rewrites of settings and context files, under their locks and with the trust in them.

use std::path::{Component, Path};
use std::rc::Rc;

use crate::call::ConfigSource;
use crate::error::{Error, FileError, Result};
use crate::files::LockedDir;
use crate::history::{Effect, perform, settle};
use crate::settings::project::Project;
use crate::settings::{Document, SettingKey, Value, edit, empty_text, trust};
use crate::state::State;

/// Whether recorded changes are made to a file: the settings and contexts of the user and of projects, or the `--config`
/// file.
pub(crate) fn is_managed(state: &State, path: &Path) -> bool {
    if let ConfigSource::File(file) = state.source() {
        // The file may have been named by another path or a link when the change was recorded.
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

/// Whether a file is in the state directory of a project that does not exist, or that is another user's. A restored history
/// can name any directory, and would make a project of it.
pub(crate) fn is_in_missing_project(state: &State, path: &Path) -> bool {
    // With `--config` no project counts, and `is_managed` has accepted the file itself only.
    if matches!(state.source(), ConfigSource::File(_)) {
        return false;
    }
    let is_users = state.dirs().config().is_ok_and(|dir| path.starts_with(dir));
    let project = Project::containing(state.app(), state.world(), path).filter(|_| !is_users);
    project.is_some_and(|project| !project.is_own_dir())
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
        let document = state.parse(path, text.unwrap_or_else(|| empty_text(path)).to_owned())?;
        let now = value_in(state, &document, key)?;
        if now.map(|value| serde_json::json!(value)).as_ref() != from {
            return Err(FileError::ConcurrentChange { path: path.to_owned(), kept: None }.into());
        }
        let changed = match &to {
            Some(value) => Some(edit::set(path, document.text(), key, value)?),
            None => edit::unset(path, document.text(), key)?,
        };
        // Unsetting a missing key changes nothing, and must not remove the file.
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

/// Trust of a rewritten project file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustRule {
    /// The command made the content. It is trusted if the replaced text was trusted, required no trust, or did not
    /// exist.
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
        // Before the file exists, so that it is never seen by git in between.
        project.ignore_local_settings(&locker)?;
    }
    let (dir, name) = match &project {
        Some(project) => project.lock_file(&locker, path)?,
        None => LockedDir::of_file(&locker, path, 0o700)?,
    };
    // Read under the lock: the comparison and the write are one step for other processes.
    let old = dir.read(&name)?;
    let new = change(old.as_deref())?;
    // An unchanged file keeps its time stamp, which the plans of rooms depend on.
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
    // Before the write: a crash leaves old or new content, and both are trusted.
    store.trust_also(&key, &fingerprint, state.now_ms())?;
    dir.replace(&name, &text, mode)?;
    // If this fails, what the file said before stays trusted: its user trusted that too.
    let _ = store.trust(&[(key, fingerprint)], state.now_ms());
    Ok(())
}

/// Whether the user knows the content of a file: the file was trusted, or required no trust.
fn is_covered(state: &State, path: &Path, text: String) -> Result<bool> {
    let document = Rc::new(Document::parse(path, text)?);
    // A context asks for trust whatever it contains; settings only where they select or name something.
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

/// The value that a file gives a key now.
pub fn value_in_file(state: &State, path: &Path, key: &SettingKey) -> Result<Option<Value>> {
    match state.load(path)? {
        Some(document) => value_in(state, &document, key),
        None => Ok(None),
    }
}

fn value_in(state: &State, document: &Document, key: &SettingKey) -> Result<Option<Value>> {
    let definition = crate::settings::definition(state.app(), key)?;
    let node = key.segments().iter().try_fold(document.root(), |node, name| node.get(name));
    node.map(|node| definition.read(node, key, document)).transpose()
}

/// Replaces the text of a file that is unchanged since it was read, and records that.
pub fn change_text(state: &State, command: &str, path: &Path, old: Option<&str>, new: &str) -> Result<()> {
    // A half-done operation on this file must be settled before it is changed again.
    settle(state)?;
    let effect = Effect::Text {
        path: path.to_owned(),
        before: old.map(str::to_owned),
        after: Some(new.to_owned()),
        untrusted: false,
    };
    perform(state, command, &path.display().to_string(), &[effect]).map(drop)
}
