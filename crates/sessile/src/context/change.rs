//! Making, changing, renaming and deleting contexts.

use std::path::{Path, PathBuf};

use crate::call::ConfigSource;
use crate::context::catalog::file_in;
use crate::context::guard_weakening::{ContextChange, authorize_changes};
use crate::context::selection::{pointing_to, repointing};
use crate::context::transfer::refuse_secrets;
use crate::context::{Context, Contexts, Guard};
use crate::error::{ContextError, Error, Result, UsageError};
use crate::history::{Effect, change_text, perform, settle, unless_overtaken};
use crate::names::ContextName;
use crate::settings::{Document, Layer, Origin, SettingKey, Value, edit, empty_text, trust};

/// One change of a context's file: a key such as `guard`, `env.NAME` or `tools.NAME.KEY`, set or removed.
#[derive(Clone, Debug)]
pub struct ContextEdit {
    /// The key in the file.
    pub key: SettingKey,
    /// The new value; `None` removes it.
    pub value: Option<Value>,
}

/// Result of a context's deletion.
#[derive(Clone, Debug)]
pub struct ContextDeletion {
    /// The file it stood in.
    pub path: PathBuf,
    /// Selections that pointed to it.
    pub pointed_to_by: Vec<Origin>,
}

impl Contexts<'_> {
    /// Makes a context out of changes to nothing. `replace` allows one of that name to be overwritten.
    pub fn create(
        &self,
        command: &str,
        name: &ContextName,
        changes: &[ContextEdit],
        in_project: bool,
        replace: bool,
    ) -> Result<Context> {
        refuse_secrets(changes)?;
        // Before the context is looked for: a half-done rename could show it under two names or none.
        settle(self.state)?;
        if let Some(existing) = self.find(name)? {
            if !replace {
                return Err(ContextError::Exists {
                    name: name.to_string(),
                    path: existing.path().to_owned(),
                    replaceable: true,
                }
                .into());
            }
            // The new one may stand in another file, and hide this one.
            self.authorize_replacing(&existing, guard_after(changes))?;
        }
        let path = self.file_for(name, in_project)?;
        let prefix = self.prefix(name);
        self.rewrite(command, name, &path, |old| {
            let exists = || {
                Error::Context(ContextError::Exists {
                    name: name.to_string(),
                    path: path.clone(),
                    replaceable: true,
                })
            };
            if prefix.is_empty() {
                // Another process may have made it since it was looked for.
                return if old.is_some() && !replace {
                    Err(exists())
                } else {
                    apply(&path, "", &[], changes)
                };
            }
            let text = old.unwrap_or(empty_text(&path));
            let without = edit::unset(&path, text, &below(&prefix, &[]))?;
            if without.is_some() && !replace {
                return Err(exists());
            }
            let text = without.unwrap_or_else(|| text.to_owned());
            // Among many in one file, an empty context must be seen too.
            let seen = ContextEdit {
                key: SettingKey::new(["guard"]),
                value: Some(Value::Text(Guard::None.as_str().into())),
            };
            apply(&path, &text, &prefix, changes.iter().chain(changes.is_empty().then_some(&seen)))
        })?;
        self.get_fresh(name, &path)
    }

    /// Changes a context in its own file.
    pub fn change(&self, name: &ContextName, changes: &[ContextEdit]) -> Result<Context> {
        refuse_secrets(changes)?;
        settle(self.state)?;
        let existing = self.get(name)?;
        let path = existing.path().to_owned();
        let prefix = self.prefix(name);
        self.rewrite("context edit", name, &path, |old| {
            apply(&path, old.unwrap_or(empty_text(&path)), &prefix, changes)
        })?;
        self.get_fresh(name, &path)
    }

    /// Replaces the text of a context's file, unless it changed since it was read.
    pub fn put_text(&self, existing: &Context, old: &str, new: &str) -> Result<Context> {
        settle(self.state)?;
        let path = existing.path().to_owned();
        // It must be a context before it goes anywhere.
        let parsed = self.parse(&existing.name, &path, new)?;
        self.check_bindings(&parsed, &existing.tools)?;
        if old != new {
            change_text(self.state, "context edit", &path, Some(old), new)?;
        }
        self.get_fresh(&existing.name, &path)
    }

    /// Gives a context another name; what pointed to it points to the new name.
    pub fn rename(&self, from: &ContextName, to: &ContextName) -> Result<Context> {
        settle(self.state)?;
        let existing = self.get(from)?;
        if let Some(taken) = self.find(to)? {
            return Err(ContextError::Exists {
                name: to.to_string(),
                path: taken.path().to_owned(),
                replaceable: false,
            }
            .into());
        }
        let path = existing.path().to_owned();
        let text = existing.document().text().to_owned();
        // A session keeps its context by name for its whole life, so the name must stay.
        let pinned: Vec<String> = pointing_to(self.state, from)?
            .into_iter()
            .filter_map(|(_, origin)| origin.name.filter(|_| origin.layer == Layer::Session))
            .collect();
        if !pinned.is_empty() {
            return Err(ContextError::Pinned { name: from.to_string(), sessions: pinned }.into());
        }
        let pointing = repointing(self.state, from, Some(to))?;
        let (effects, new_path) = if let ConfigSource::File(file) = self.state.source() {
            let renamed = edit::rename_table(file, &text, "contexts", from.as_str(), to.as_str())?;
            let renamed = select_in(file, &renamed, from, Some(to))?;
            let moved = text_effect(&path, Some(text), Some(renamed));
            (std::iter::once(moved).chain(pointing.into_iter().filter(is_pointer)).collect(), path)
        } else {
            // It has both names until everything points to the new one, so that nothing ever points to nothing.
            let new_path = path.with_file_name(format!("{to}.toml"));
            let mut effects = vec![text_effect(&new_path, None, Some(text.clone()))];
            effects.extend(pointing);
            effects.push(text_effect(&path, Some(text), None));
            (effects, new_path)
        };
        let effects: Vec<Effect> = effects;
        perform(self.state, "context rename", &format!("{from} to {to}"), &effects)?;
        self.get_fresh(to, &new_path)
    }

    /// Origins that select a context.
    pub fn pointing_to(&self, name: &ContextName) -> Result<Vec<Origin>> {
        Ok(pointing_to(self.state, name)?.into_iter().map(|(_, origin)| origin).collect())
    }

    /// Deletes a context and takes it out of everything of this user's that points to it.
    pub fn delete(&self, name: &ContextName) -> Result<ContextDeletion> {
        settle(self.state)?;
        let existing = self.get(name)?;
        let path = existing.path().to_owned();
        let pointed_to_by = self.pointing_to(name)?;
        let text = existing.document().text().to_owned();
        let mut effects = repointing(self.state, name, None)?;
        if let ConfigSource::File(file) = self.state.source() {
            let removed =
                edit::unset(file, &text, &below(&self.prefix(name), &[]))?.unwrap_or_else(|| text.clone());
            let removed = select_in(file, &removed, name, None)?;
            effects.retain(is_pointer);
            effects.push(text_effect(&path, Some(text), Some(removed)));
        } else {
            // The file goes last, so that nothing ever points to nothing.
            effects.push(text_effect(&path, Some(text), None));
        }
        perform(self.state, "context delete", name.as_str(), &effects)?;
        Ok(ContextDeletion { path, pointed_to_by })
    }

    /// The file that a new context goes to.
    fn file_for(&self, name: &ContextName, in_project: bool) -> Result<PathBuf> {
        match self.state.source() {
            ConfigSource::File(file) => Ok(file.clone()),
            ConfigSource::Nothing => Err(UsageError::Arguments(
                "with --no-config there is no place for a context: leave it out".into(),
            )
            .into()),
            ConfigSource::Usual if in_project => {
                Ok(file_in(&self.state.writable_project()?.contexts(), name))
            }
            ConfigSource::Usual => Ok(file_in(&self.state.dirs().config()?.join("contexts"), name)),
        }
    }

    /// Table of a context in its file: the root of its own, or a table of the `--config` file.
    fn prefix(&self, name: &ContextName) -> Vec<String> {
        match self.state.source() {
            ConfigSource::File(_) => vec!["contexts".to_owned(), name.to_string()],
            _ => Vec::new(),
        }
    }

    /// Rewrites the file of a context, and records it; retried if another process was quicker.
    fn rewrite(
        &self,
        command: &str,
        name: &ContextName,
        path: &Path,
        change: impl Fn(Option<&str>) -> Result<String>,
    ) -> Result<()> {
        unless_overtaken(|| {
            let old = self.state.read(path)?;
            let new = change(old.as_deref())?;
            let within = self.prefix(name);
            let read = |text: &str| {
                let document = std::rc::Rc::new(self.state.parse(path, text.to_owned())?);
                let (app, within) = (self.state.app(), within.clone());
                Context::read(app, name.clone(), super::ContextLocation::User, true, document, within)
            };
            // The old file may be one that this call repairs.
            let before = old.as_deref().and_then(|old| read(old).ok()).map(|context| context.tools);
            self.check_bindings(&read(&new)?, &before.unwrap_or_default())?;
            // No operation for a change that changes nothing: undo would then do nothing either.
            if old.as_deref() == Some(new.as_str()) {
                return Ok(());
            }
            perform(self.state, command, name.as_str(), &[text_effect(path, old, Some(new))]).map(drop)
        })
    }

    fn parse(&self, name: &ContextName, path: &Path, text: &str) -> Result<Context> {
        let document = std::rc::Rc::new(self.state.parse(path, text.to_owned())?);
        Context::read(
            self.state.app(),
            name.clone(),
            super::ContextLocation::User,
            true,
            document,
            Vec::new(),
        )
    }

    /// The context as its file says now; the state itself may have read an older version.
    fn get_fresh(&self, name: &ContextName, path: &Path) -> Result<Context> {
        let document = self.state.load(path)?.ok_or_else(|| self.not_found(name, None))?;
        let (home, within) = match self.state.source() {
            ConfigSource::File(_) => (super::ContextLocation::File, self.prefix(name)),
            _ if self.user_dir().is_some_and(|dir| path.starts_with(dir)) => {
                (super::ContextLocation::User, Vec::new())
            }
            _ => (super::ContextLocation::Project, Vec::new()),
        };
        let trusted = home != super::ContextLocation::Project
            || trust::is_trusted(
                self.state.app(),
                // The store may have been created by this very change.
                self.state.fresh_store()?.as_ref(),
                path,
                document.text(),
            )?;
        Context::read(self.state.app(), name.clone(), home, trusted, std::rc::Rc::new(document), within)
    }

    /// Fails unless this call may put a context with this guard in the place of another.
    pub(super) fn authorize_replacing(&self, existing: &Context, after: Guard) -> Result<()> {
        authorize_changes(self.state, &[ContextChange::of(existing, Some(after))])
    }

    /// Fails unless this call may delete a context, before a person is asked.
    pub fn check_deletable(&self, existing: &Context) -> Result<()> {
        authorize_changes(self.state, &[ContextChange::of(existing, None)])
    }
}

/// The guard of a context that is made by changes.
fn guard_after(changes: &[ContextEdit]) -> Guard {
    // The last change of a key wins when they are applied.
    let guard = changes.iter().rev().find(|change| change.key == SettingKey::new(["guard"]));
    guard.and_then(|change| Guard::parse(change.value.as_ref()?.as_str()?)).unwrap_or_default()
}

fn is_pointer(effect: &Effect) -> bool {
    matches!(effect, Effect::Pointer { .. })
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

fn text_effect(path: &Path, before: Option<String>, after: Option<String>) -> Effect {
    Effect::Text { path: path.to_owned(), before, after, untrusted: false }
}

pub(crate) fn apply<'c>(
    path: &Path,
    text: &str,
    prefix: &[String],
    changes: impl IntoIterator<Item = &'c ContextEdit>,
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
