//! Making, changing, renaming and deleting contexts.

use std::path::{Path, PathBuf};

use crate::context::catalog::{empty_text, file_in};
use crate::context::selection::{pointing_to, repoint};
use crate::context::{Context, Contexts, Guard};
use crate::error::{Error, Result};
use crate::files::LockedDir;
use crate::names::ContextName;
use crate::settings::{Document, Origin, SettingKey, Value, edit, trust, write};
use crate::state::ConfigSource;

/// One change of a context's file: a key such as `guard`, `env.NAME` or `tools.NAME.KEY`, set or removed.
#[derive(Clone, Debug)]
pub struct Change {
    /// The key in the file.
    pub key: SettingKey,
    /// The new value; `None` removes it.
    pub value: Option<Value>,
}

/// What a deletion took away.
#[derive(Clone, Debug)]
pub struct Removed {
    /// The file it stood in.
    pub path: PathBuf,
    /// What had pointed to it.
    pub pointed_to_by: Vec<Origin>,
}

impl Contexts<'_> {
    /// Makes a context out of changes to nothing. `replace` allows one of that name to be overwritten.
    pub fn create(
        &self,
        name: &ContextName,
        changes: &[Change],
        in_project: bool,
        replace: bool,
    ) -> Result<Context> {
        if let Some(existing) = self.find(name)? {
            if !replace {
                return Err(Error::ContextExists {
                    name: name.to_string(),
                    path: existing.path().to_owned(),
                    replaceable: true,
                });
            }
            self.refuse_to_unguard(&existing, "replacing")?;
        }
        let path = self.file_for(name, in_project)?;
        self.rewrite(
            name,
            &path,
            |text, prefix| {
                let text = if prefix.is_empty() { empty_text(&path) } else { text.to_owned() };
                let text = edit::unset(&path, &text, &below(prefix, &[])).ok().flatten().unwrap_or(text);
                // A context may be empty; in a file of many it must still be seen.
                let first = Change {
                    key: SettingKey::new(["guard"]),
                    value: Some(Value::Text(Guard::None.as_str().to_owned())),
                };
                let seed = (!prefix.is_empty() && changes.is_empty()).then_some(&first);
                apply(&path, &text, prefix, changes.iter().chain(seed))
            },
            replace,
        )?;
        self.get_fresh(name, &path)
    }

    /// Changes a context in its own file.
    pub fn change(&self, name: &ContextName, changes: &[Change]) -> Result<Context> {
        let existing = self.get(name)?;
        self.refuse_to_unguard(&existing, "changing")?;
        let path = existing.path().to_owned();
        self.rewrite(name, &path, |text, prefix| apply(&path, text, prefix, changes), true)?;
        self.get_fresh(name, &path)
    }

    /// Puts a whole new text into a context's file, unless it is no longer the one that was edited.
    pub fn put_text(&self, existing: &Context, old: &str, new: &str) -> Result<Context> {
        self.refuse_to_unguard(existing, "changing")?;
        let path = existing.path().to_owned();
        // It must be a context before it goes anywhere.
        self.parse(&existing.name, &path, new, &[])?;
        write::change_text(self.state, &path, |text| {
            if text == old {
                Ok((text != new).then(|| new.to_owned()))
            } else {
                Err(Error::ConcurrentChange { path: path.clone(), kept: None })
            }
        })?;
        self.get_fresh(&existing.name, &path)
    }

    /// Gives a context another name; what pointed to it points to the new name.
    pub fn rename(&self, from: &ContextName, to: &ContextName) -> Result<Context> {
        let existing = self.get(from)?;
        self.refuse_to_unguard(&existing, "renaming")?;
        if let Some(taken) = self.find(to)? {
            return Err(Error::ContextExists {
                name: to.to_string(),
                path: taken.path().to_owned(),
                replaceable: false,
            });
        }
        let path = existing.path().to_owned();
        // An approval is one of this name. To take it back first is safe, whatever happens after.
        self.state.store_for_writing()?.revoke_approvals(from.as_str(), self.state.now_ms())?;
        if let ConfigSource::File(file) = self.state.source() {
            write::change_text(self.state, file, |text| {
                let renamed = edit::rename_table(file, text, "contexts", from.as_str(), to.as_str())?;
                select_in(file, &renamed, from, Some(to)).map(Some)
            })?;
            repoint(self.state, from, Some(to))?;
            return self.get_fresh(to, &path);
        }
        let renamed = path.with_file_name(format!("{to}.toml"));
        let dir = path.parent().unwrap_or(Path::new("."));
        let locked = LockedDir::lock(&self.state.locker()?, dir, 0o700)?;
        if existing.trusted && existing.home == super::Home::Project {
            let row = (trust::key(&renamed), trust::fingerprint(existing.document().text()));
            self.state.store_for_writing()?.trust(&[row], self.state.now_ms())?;
        }
        // It has both names until everything points to the new one, so that nothing ever points to nothing.
        let (old, new) = (PathBuf::from(format!("{from}.toml")), PathBuf::from(format!("{to}.toml")));
        if !locked.link(&old, &new)? {
            return Err(Error::ContextExists { name: to.to_string(), path: renamed, replaceable: false });
        }
        if let Err(error) = repoint(self.state, from, Some(to)) {
            let _ = repoint(self.state, to, Some(from));
            let _ = locked.remove(&new);
            return Err(error);
        }
        locked.remove(&old)?;
        self.get_fresh(to, &renamed)
    }

    /// What has a context selected.
    pub fn pointing_to(&self, name: &ContextName) -> Result<Vec<Origin>> {
        Ok(pointing_to(self.state, name)?.into_iter().map(|(_, origin)| origin).collect())
    }

    /// Deletes a context and takes it out of everything of this user's that points to it.
    pub fn delete(&self, name: &ContextName) -> Result<Removed> {
        let existing = self.get(name)?;
        self.refuse_to_unguard(&existing, "deleting")?;
        let path = existing.path().to_owned();
        let pointed_to_by = self.pointing_to(name)?;
        if let ConfigSource::File(file) = self.state.source() {
            let key = SettingKey::new(["contexts", name.as_str()]);
            write::change_text(self.state, file, |text| {
                let removed = edit::unset(file, text, &key)?.unwrap_or_else(|| text.to_owned());
                select_in(file, &removed, name, None).map(Some)
            })?;
            return Ok(Removed { path, pointed_to_by });
        }
        let dir = path.parent().unwrap_or(Path::new("."));
        let locked = LockedDir::lock(&self.state.locker()?, dir, 0o700)?;
        if locked.read(Path::new(&format!("{name}.toml")))?.is_none() {
            return Err(self.not_found(name, None));
        }
        // The file goes last, so that nothing ever points to nothing.
        if !pointed_to_by.is_empty() {
            repoint(self.state, name, None)?;
        }
        // Whatever it demands now: a successor of that name starts without approvals.
        if self.state.store()?.is_some() {
            self.state.store_for_writing()?.revoke_approvals(name.as_str(), self.state.now_ms())?;
        }
        locked.remove(Path::new(&format!("{name}.toml")))?;
        Ok(Removed { path, pointed_to_by })
    }

    /// The file that a new context goes to.
    fn file_for(&self, name: &ContextName, in_project: bool) -> Result<PathBuf> {
        match self.state.source() {
            ConfigSource::File(file) => Ok(file.clone()),
            ConfigSource::Nothing => {
                Err(Error::Usage("with --no-config there is no place for a context: leave it out".into()))
            }
            ConfigSource::Usual if in_project => Ok(file_in(&write::directory(self.state)?.contexts(), name)),
            ConfigSource::Usual => Ok(file_in(&self.state.dirs().config()?.join("contexts"), name)),
        }
    }

    /// Rewrites the text that a context stands in: its own file, or its table in the `--config` file.
    fn rewrite(
        &self,
        name: &ContextName,
        path: &Path,
        change: impl FnOnce(&str, &[String]) -> Result<String>,
        may_exist: bool,
    ) -> Result<()> {
        let prefix = match self.state.source() {
            ConfigSource::File(_) => vec!["contexts".to_owned(), name.to_string()],
            _ => Vec::new(),
        };
        write::change_text(self.state, path, |text| {
            // Another process may have made it since it was looked for; under the lock that is certain.
            if !may_exist && prefix.is_empty() && path.exists() {
                return Err(Error::ContextExists {
                    name: name.to_string(),
                    path: path.to_owned(),
                    replaceable: true,
                });
            }
            let changed = change(text, &prefix)?;
            self.parse(name, path, &changed, &prefix)?;
            Ok(Some(changed))
        })
    }

    fn parse(&self, name: &ContextName, path: &Path, text: &str, within: &[String]) -> Result<Context> {
        let document = std::rc::Rc::new(Document::parse(path, text.to_owned())?);
        Context::read(self.state.app(), name.clone(), super::Home::User, true, document, within.to_vec())
    }

    /// The context as its file says now; the state itself may have read an older version.
    fn get_fresh(&self, name: &ContextName, path: &Path) -> Result<Context> {
        let document = Document::load(path)?.ok_or_else(|| self.not_found(name, None))?;
        let (home, within) = match self.state.source() {
            ConfigSource::File(_) => (super::Home::File, vec!["contexts".to_owned(), name.to_string()]),
            _ if self.user_dir().is_some_and(|dir| path.starts_with(dir)) => (super::Home::User, Vec::new()),
            _ => (super::Home::Project, Vec::new()),
        };
        let trusted = home != super::Home::Project
            || trust::is_trusted(self.state.store_for_writing().ok().as_ref(), path, document.text())?;
        Context::read(self.state.app(), name.clone(), home, trusted, std::rc::Rc::new(document), within)
    }

    /// Inside a session a guarded context stays as it is, or the guard would be no rail at all.
    pub(super) fn refuse_to_unguard(&self, existing: &Context, what: &str) -> Result<()> {
        if existing.guard == Guard::None {
            return Ok(());
        }
        self.state.refuse_in_session(
            format!("{what} the guarded context {}", crate::text::quoted(existing.name.as_str())),
            "do it outside the session",
        )
    }
}

/// The text of a file of many contexts, with its selection of one moved to another or to none.
fn select_in(path: &Path, text: &str, from: &ContextName, to: Option<&ContextName>) -> Result<String> {
    let document = Document::parse(path, text.to_owned())?;
    let key = SettingKey::new(["context"]);
    if document.root().get("context").and_then(|node| node.as_str()) != Some(from.as_str()) {
        return Ok(text.to_owned());
    }
    match to {
        Some(to) => edit::set(path, text, &key, &Value::Text(to.to_string())),
        None => Ok(edit::unset(path, text, &key)?.unwrap_or_else(|| text.to_owned())),
    }
}

pub(super) fn apply<'c>(
    path: &Path,
    text: &str,
    prefix: &[String],
    changes: impl IntoIterator<Item = &'c Change>,
) -> Result<String> {
    let mut text = text.to_owned();
    for change in changes {
        let key = below(prefix, change.key.segments());
        text = match &change.value {
            Some(value) => edit::set(path, &text, &key, value)?,
            None => edit::unset(path, &text, &key)?.unwrap_or(text),
        };
    }
    Ok(text)
}

fn below(prefix: &[String], segments: &[String]) -> SettingKey {
    SettingKey::new(prefix.iter().chain(segments).cloned())
}
