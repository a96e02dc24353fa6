//! Making, changing, renaming and deleting contexts.

use std::borrow::Cow;
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
use crate::text::quoted;
use crate::tool::guarded_targets;

/// One change of a context's file: a key such as `guard`, `env.NAME` or `tools.NAME.KEY`, set or removed.
#[derive(Clone, Debug)]
pub struct ContextEdit {
    /// The key in the file.
    pub key: SettingKey,
    /// The new value; `None` removes it.
    pub value: Option<Value>,
}

/// One context of a change that writes several.
#[derive(Clone, Debug)]
pub(crate) struct ContextWrite<'a> {
    /// Name.
    pub(crate) name: &'a ContextName,
    /// Edits of its file.
    pub(crate) edits: Vec<ContextEdit>,
    /// Base of the edits.
    pub(crate) mode: WriteMode,
}

/// Base of a context's edits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WriteMode {
    /// A new context, in a file of the user or of the project. `replace` allows one of that name to be overwritten.
    Create { in_project: bool, replace: bool },
    /// The context as it is.
    Extend,
}

/// Result of a context's deletion.
#[derive(Clone, Debug)]
pub struct ContextDeletion {
    /// File of the context.
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
        let edits = changes.to_vec();
        self.write_one(command, ContextWrite { name, edits, mode: WriteMode::Create { in_project, replace } })
    }

    /// Changes a context in its own file.
    pub fn change(&self, name: &ContextName, changes: &[ContextEdit]) -> Result<Context> {
        let edits = changes.to_vec();
        self.write_one("context edit", ContextWrite { name, edits, mode: WriteMode::Extend })
    }

    fn write_one(&self, command: &str, write: ContextWrite<'_>) -> Result<Context> {
        let name = write.name;
        let written = self.write_all(command, &[write])?;
        written.into_iter().next().ok_or_else(|| self.not_found(name, None))
    }

    /// Creates and changes contexts as one change, which is retried if another process was quicker: all of them or none.
    pub(crate) fn write_all(&self, command: &str, writes: &[ContextWrite<'_>]) -> Result<Vec<Context>> {
        for write in writes {
            refuse_secrets(&write.edits)?;
        }
        // Before the contexts are looked for: a half-done rename could show one under two names or none.
        settle(self.state)?;
        let paths: Vec<PathBuf> = writes.iter().map(|write| self.path_of(write)).collect::<Result<_>>()?;
        let subject = writes.iter().map(|write| write.name.as_str()).collect::<Vec<_>>().join(", ");
        unless_overtaken(|| {
            // By file: in a `--config` file all contexts stand together.
            let mut files: Vec<(&PathBuf, Option<String>, String)> = Vec::new();
            for (write, path) in writes.iter().zip(&paths) {
                let seen = files.iter().position(|(seen, ..)| *seen == path);
                let old = match seen {
                    Some(index) => Some(files[index].2.clone()),
                    None => self.state.read(path)?,
                };
                let new = self.text_after(write, path, old.as_deref())?;
                match seen {
                    Some(index) => files[index].2 = new,
                    None => files.push((path, old, new)),
                }
            }
            // No operation for a change that changes nothing: undo would then do nothing either.
            let changed = files.into_iter().filter(|(_, old, new)| old.as_deref() != Some(new.as_str()));
            let effects: Vec<Effect> =
                changed.map(|(path, old, new)| text_effect(path, old, Some(new))).collect();
            if effects.is_empty() {
                return Ok(());
            }
            perform(self.state, command, &subject, &effects).map(drop)
        })?;
        writes.iter().zip(&paths).map(|(write, path)| self.get_fresh(write.name, path)).collect()
    }

    /// The file that a context is written to, if this call may write it.
    fn path_of(&self, write: &ContextWrite<'_>) -> Result<PathBuf> {
        let WriteMode::Create { in_project, replace } = write.mode else {
            return Ok(self.get(write.name)?.path().to_owned());
        };
        if let Some(existing) = self.find(write.name)? {
            if !replace {
                return Err(exists(write.name, existing.path()));
            }
            // The new one may stand in another file, and hide this one.
            self.authorize_replacing(&existing, guard_after(&write.edits))?;
        }
        self.file_for(write.name, in_project)
    }

    /// The text of a file with a context written, checked as a context.
    fn text_after(&self, write: &ContextWrite<'_>, path: &Path, old: Option<&str>) -> Result<String> {
        let prefix = self.prefix(write.name);
        let new = match write.mode {
            WriteMode::Extend => apply(path, old.unwrap_or(empty_text(path)), &prefix, &write.edits)?,
            // Another process may have made it since it was looked for.
            WriteMode::Create { replace: false, .. } if prefix.is_empty() && old.is_some() => {
                return Err(exists(write.name, path));
            }
            // An empty file may be one that an editor is about to write, and every reader would wait for that.
            WriteMode::Create { .. } if prefix.is_empty() => {
                apply(path, "", &[], or_default_guard(&write.edits).iter())?
            }
            WriteMode::Create { replace, .. } => {
                let text = old.unwrap_or(empty_text(path));
                let without = edit::unset(path, text, &below(&prefix, &[]))?;
                if without.is_some() && !replace {
                    return Err(exists(write.name, path));
                }
                let text = without.unwrap_or_else(|| text.to_owned());
                // Among many in one file, an empty context must be seen too.
                apply(path, &text, &prefix, or_default_guard(&write.edits).iter())?
            }
        };
        let read = |text: &str| {
            let document = std::rc::Rc::new(self.state.parse(path, text.to_owned())?);
            let (app, within, name) = (self.state.app(), prefix.clone(), write.name.clone());
            Context::read(app, name, super::ContextLocation::User, true, document, within)
        };
        // The old file may be one that this call repairs.
        let before = old.and_then(|old| read(old).ok()).map(|context| context.tools);
        self.check_bindings(&read(&new)?, &before.unwrap_or_default())?;
        Ok(new)
    }

    /// Warns about the targets of guarded contexts among these that unguarded contexts bind too, and so do not protect.
    pub(crate) fn warn_of_shared_targets(&self, contexts: &[Context]) -> Result<()> {
        for target in guarded_targets(self.state)? {
            let named = |name: &String| contexts.iter().any(|context| context.name.as_str() == name);
            if target.shared_with.is_empty() || !target.contexts.iter().chain(&target.shared_with).any(named)
            {
                continue;
            }
            let (contexts, others) = (target.contexts.join(", "), target.shared_with.join(", "));
            let what = format!("{} {} {}", target.tool, target.key, quoted(&target.name));
            self.state.warn(
                format!("{what} of context {contexts} is not protected: unguarded context {others} binds the same target"),
                None,
            );
        }
        Ok(())
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

    /// Renames a context and updates the selections that point to it.
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
                "contexts cannot be written with --no-config; remove the flag".into(),
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

    /// Checks before the prompt that this call may delete a context.
    pub fn check_deletable(&self, existing: &Context) -> Result<()> {
        authorize_changes(self.state, &[ContextChange::of(existing, None)])
    }
}

fn exists(name: &ContextName, path: &Path) -> Error {
    ContextError::Exists { name: name.to_string(), path: path.to_owned(), replaceable: true }.into()
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

/// The edits of a new context; one without edits gets its guard written, so that its text is not empty.
fn or_default_guard(edits: &[ContextEdit]) -> Cow<'_, [ContextEdit]> {
    if !edits.is_empty() {
        return Cow::Borrowed(edits);
    }
    let value = Some(Value::Text(Guard::None.as_str().into()));
    Cow::Owned(vec![ContextEdit { key: SettingKey::new(["guard"]), value }])
}

fn below(prefix: &[String], segments: &[String]) -> SettingKey {
    SettingKey::new(prefix.iter().chain(segments).cloned())
}
