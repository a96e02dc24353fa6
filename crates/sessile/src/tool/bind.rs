//! A context's say about a tool, carried out in a room: variables that pin it, and its own files set to it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::Bindings;
use crate::error::{Error, Result, SessionError, ToolError};
use crate::files::{LockedDir, Locker, read_up_to};
use crate::tool::binding::{binding_values, bound_targets, needs_no_entry};
use crate::tool::drift::{TargetAddress, addresses};
use crate::tool::edit::with_toml_text;
use crate::tool::gitconfig;
use crate::tool::profile::{Binding, Edit, EditFormat, ExistenceCheck, Isolation, Profile};
use crate::tool::seed::{LARGEST_UNDERSTOOD, SeedCopy, digest};
use crate::tool::target::{BoundTargets, MissingTarget, STRICT, TargetCopies, ini};
use crate::tool::tree::{Notation, Scalar, TreePath};

/// A binding that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedBinding {
    /// The tool.
    pub tool: String,
    /// Bindings of the context.
    pub bindings: Vec<(String, Value)>,
    /// The variables that pin it.
    pub variables: Vec<(String, String)>,
    /// Variables that would override them.
    pub clears: Vec<String>,
    /// Whether the copies hold only the bound targets.
    #[serde(default)]
    pub restricted: bool,
    /// A key that no variable carries, of a tool that variables alone do not isolate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) uncarried: Option<UncarriedKey>,
    /// Addresses of the bound targets in the copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) addresses: Vec<TargetAddress>,
    /// The files it rests on, as they were.
    stamps: Vec<(PathBuf, Option<Stamp>)>,
}

/// Key of a binding that takes effect only at the level that isolates its tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncarriedKey {
    /// The key.
    pub(crate) key: String,
    /// Whether a moved home isolates the tool.
    pub(crate) home_level: bool,
}

/// A file as it was, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        Some(Stamp {
            inode: found.ino(),
            size: found.size(),
            // The change time: a program can set the modification time back, but not this one.
            changed_s: found.ctime(),
            changed_ns: found.ctime_nsec(),
        })
    }
}

impl AppliedBinding {
    /// Whether it bound the same targets.
    pub(crate) fn has_targets_of(&self, profile: &Profile, bindings: &Bindings) -> bool {
        let value = |bindings: &Bindings, key: &str| bindings.iter().find(|(name, _)| name == key).cloned();
        profile.targets.iter().all(|set| value(&self.bindings, &set.name) == value(bindings, &set.name))
    }

    /// Takes the stamps of the files again, after this program has changed their times.
    pub(crate) fn renew_stamps(&mut self) {
        self.stamps.iter_mut().for_each(|(path, stamp)| *stamp = Stamp::of(path));
    }

    /// Whether the binding is up to date: the context's bindings and the files are unchanged.
    pub(crate) fn holds(&self, bindings: &Bindings) -> bool {
        self.bindings == *bindings && self.stamps.iter().all(|(path, stamp)| Stamp::of(path) == *stamp)
    }
}

/// Application of a context's bindings to a room, with the names for errors.
pub(crate) struct Binder<'a> {
    pub(crate) context: &'a str,
    pub(crate) profile: &'a Profile,
    pub(crate) room: &'a Path,
    /// Reason why the tool's files are not in the room, if they are not.
    pub(crate) shared: Option<&'a str>,
    /// Copies of the tool, for naming originals in errors.
    pub(crate) copies: &'a [SeedCopy],
    pub(crate) locker: &'a Locker,
}

impl Binder<'_> {
    /// Carries out what a context says. Nothing is changed unless all of it can be.
    pub(crate) fn bind(&self, bindings: &Bindings) -> Result<AppliedBinding> {
        let said = self.values(bindings)?;
        let mut variables = Vec::new();
        let mut files = BTreeSet::new();
        let mut edits: Vec<(&str, &Edit, &str)> = Vec::new();
        for (key, binding) in &self.profile.bind {
            let Some(value) = said.get(key.as_str()).filter(|_| bindings.iter().any(|(name, _)| name == key))
            else {
                continue;
            };
            // A flag that is off binds nothing, also where its template has no placeholder.
            if binding.flag && value == "false" {
                continue;
            }
            let fill = |text: &str| filled(text, value, &said);
            variables.extend(binding.variables.iter().map(|(name, text)| (name.clone(), fill(text))));
            // A variable can still pin a shared tool; editing its file would change the user's own.
            if let (false, Some(reason)) = (binding.edit.is_empty(), self.shared) {
                return Err(self.invalid(key, format!("cannot be set for one session: {reason}")));
            }
            if self.shared.is_none() {
                files.extend(self.check_exists(key, binding, value, &said)?);
                edits.extend(binding.edit.iter().map(|edit| (key.as_str(), edit, value.as_str())));
            }
        }
        files.extend(self.edit_all(&edits, &said)?);
        // Taken after the edits, so that they are not mistaken for a change by the session.
        let stamps = files.into_iter().map(|path| (path.clone(), Stamp::of(&path))).collect();
        Ok(AppliedBinding {
            tool: self.profile.name.clone(),
            bindings: bindings.clone(),
            variables,
            clears: self.clears(bindings),
            restricted: false,
            uncarried: self.uncarried(bindings),
            // A shared tool has no copy that could differ.
            addresses: match self.shared {
                Some(_) => Vec::new(),
                None => addresses(self.profile, self.room, bindings),
            },
            stamps,
        })
    }

    /// A bound key that no variable carries, neither its own nor that of another bound key.
    fn uncarried(&self, bindings: &Bindings) -> Option<UncarriedKey> {
        let is_none = self.profile.env_level == Isolation::None;
        if !is_none && !self.profile.has_targets_in_home() {
            return None;
        }
        let is_in_home = |key: &str| self.profile.is_in_home(key);
        let bound =
            || bindings.iter().filter_map(|(key, value)| Some((key, value, self.profile.binding(key)?)));
        let names = |key: &str| {
            let placeholder = format!("{{{key}}}");
            bound()
                .flat_map(|(_, _, binding)| &binding.variables)
                .any(|(_, text)| text.contains(&placeholder))
        };
        let is_off = |value: &Value| *value == Value::Bool(false);
        let (key, ..) = bound().find(|(key, value, binding)| {
            *key != STRICT
                && !is_off(value)
                && binding.variables.is_empty()
                && !names(key)
                && (is_none || is_in_home(key))
        })?;
        Some(UncarriedKey { key: key.clone(), home_level: self.profile.home_level || is_in_home(key) })
    }

    /// Variables that would override the context, including those of keys that it does not bind.
    fn clears(&self, bindings: &Bindings) -> Vec<String> {
        let is_said = |key: &str| bindings.iter().any(|(said, _)| said == key);
        let unsaid = self.profile.bind.iter().filter(|(key, _)| !is_said(key));
        let variables =
            unsaid.flat_map(|(_, binding)| binding.variables.iter().map(|(name, _)| name.clone()));
        self.profile.clears.iter().cloned().chain(variables).collect()
    }

    /// Bound values as text, with defaults.
    fn values(&self, bindings: &Bindings) -> Result<BTreeMap<String, String>> {
        binding_values(self.profile, bindings).map_err(|(key, problem)| self.invalid(&key, problem))
    }

    /// Fails unless every bound target exists; then removes all others from the copies, unless the binding says not to.
    pub(crate) fn restrict(&self, bindings: &Bindings, is_strict: bool) -> Result<()> {
        if self.profile.targets.is_empty() || self.shared.is_some() {
            return Ok(());
        }
        let said = self.values(bindings)?;
        let bound = bound_targets(self.profile, bindings, &said);
        if bound.is_empty() {
            return Ok(());
        }
        let fill = |text: &str| filled(text, "", &said);
        let copies = self.copies_of_targets(&fill);
        let is_known = |key: &str, name: &str| needs_no_entry(self.profile, bindings, key, name);
        let missing = copies.missing(&bound, is_known).map_err(|error| self.in_original(error))?;
        if let Some(MissingTarget { set, name, looked }) = missing {
            return Err(self.not_found(&set, &name, &looked));
        }
        if is_strict { copies.restrict(&bound) } else { Ok(()) }
    }

    /// An error of a copy that cannot be understood, with the path of the file that the user can repair.
    fn in_original(&self, error: Error) -> Error {
        match error {
            Error::Tool(ToolError::InvalidFile { path, line, message }) => {
                let path = self.original(&path).into_iter().next().unwrap_or(path);
                Error::Tool(ToolError::InvalidFile { path, line, message })
            }
            other => other,
        }
    }

    fn copies_of_targets<'a>(&'a self, fill: &'a dyn Fn(&str) -> String) -> TargetCopies<'a> {
        let (sets, room, locker) = (self.profile.targets.as_slice(), self.room, self.locker);
        TargetCopies { sets, room, locker, fill, defaults: &[] }
    }

    /// Fails unless the value is known by one of its signs; returns the files that were looked at.
    fn check_exists(
        &self,
        key: &str,
        binding: &Binding,
        value: &str,
        said: &BTreeMap<String, String>,
    ) -> Result<Vec<PathBuf>> {
        let mut looked = Vec::new();
        for sign in &binding.exists {
            let found = match sign {
                ExistenceCheck::Entry => {
                    let fill = |text: &str| filled(text, value, said);
                    let set = self.profile.targets.iter().filter(|set| set.name == key);
                    let places = set.flat_map(|set| &set.places);
                    looked.extend(places.map(|place| self.room.join(fill(&place.file))));
                    let bound = BoundTargets::from([(key.to_owned(), vec![value.to_owned()])]);
                    self.copies_of_targets(&fill).missing(&bound, |_, _| false)?.is_none()
                }
                ExistenceCheck::Is(known) => known == value,
                ExistenceCheck::Path(path) => {
                    let path = self.room.join(filled(path, value, said));
                    // A name, and not a way out of the room.
                    let found = !value.contains('/') && path.exists();
                    // The name in it may be one that nobody would recognise.
                    looked.extend(path.parent().map(Path::to_owned));
                    found
                }
                ExistenceCheck::Line { file, line } => {
                    let (path, line) = (self.room.join(file), filled(line, value, said));
                    let text = read_up_to(&path, LARGEST_UNDERSTOOD)?.unwrap_or_default();
                    looked.push(path);
                    text.lines().any(|found| found.trim() == line)
                }
            };
            if found {
                return Ok(looked);
            }
        }
        match binding.exists.is_empty() {
            true => Ok(looked),
            false => Err(self.not_found(key, value, &looked)),
        }
    }

    /// Makes the changes to each file at once; returns the files.
    fn edit_all(
        &self,
        edits: &[(&str, &Edit, &str)],
        said: &BTreeMap<String, String>,
    ) -> Result<Vec<PathBuf>> {
        let files: BTreeSet<&str> = edits.iter().map(|(_, edit, _)| edit.file.as_str()).collect();
        let dirs = self.lock_dirs_of(&files)?;
        let mut changed = Vec::new();
        for file in &files {
            let path = self.room.join(file);
            let text = read_up_to(&path, LARGEST_UNDERSTOOD)?.unwrap_or_default();
            let of_file = || edits.iter().filter(|(_, edit, _)| edit.file == *file);
            let notation = of_file().find_map(|(_, edit, _)| edit.format.notation());
            let new = match notation {
                Some(notation) => self.edit_tree(&path, &text, notation, of_file(), said)?,
                None => self.edit_text(&path, &text, of_file(), said)?,
            };
            // A link in the place of the copy leads out of the room; a copy takes its place again.
            let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
            if is_link {
                crate::tool::seed::remove(&path)?;
            }
            if let Some(new) = new.or_else(|| is_link.then_some(text)) {
                changed.push((path, new));
            }
        }
        // All files are written after all were checked: an error in the second must not leave the first one
        // changed.
        for (path, text) in changed {
            if let Some(dir) = path.parent().and_then(|parent| dirs.get(parent)) {
                dir.replace(Path::new(path.file_name().unwrap_or_default()), &text, 0o600)?;
            }
        }
        Ok(files.into_iter().map(|file| self.room.join(file)).collect())
    }

    /// The new text of a file that is a tree; `None` if it says the same as before.
    fn edit_tree<'e>(
        &self,
        path: &Path,
        text: &str,
        notation: Notation,
        edits: impl Iterator<Item = &'e (&'e str, &'e Edit, &'e str)>,
        said: &BTreeMap<String, String>,
    ) -> Result<Option<String>> {
        let mut tree = notation.parse(path, text).map_err(|error| self.in_original(error))?;
        let before = tree.clone();
        for (key, edit, value) in edits {
            let place = |template: &str| TreePath::parse(template, |text| filled(text, value, said));
            if let Some(required) = &edit.require
                && !place(required).exists(&mut tree)
            {
                return Err(self.not_found(key, value, &[path.to_owned()]));
            }
            if let Some(set) = &edit.set {
                let text = match (&edit.from, &edit.value) {
                    (Some(from), _) => place(from).text(&mut tree),
                    (None, Some(template)) => Some(filled(template, value, said)),
                    (None, None) => Some((*value).to_owned()),
                };
                match text {
                    Some(text) => drop(place(set).set(&mut tree, &Scalar::quoted(text))),
                    None => place(set).remove(&mut tree),
                }
            }
            if let (Some(flag), Some(required)) = (&edit.mark, &edit.require) {
                place(required).mark(&mut tree, flag);
            }
        }
        Ok((!tree.has_same_content(&before)).then(|| notation.write(&tree)))
    }

    /// The new text of a file with sections, or of one that is a single value; `None` if it is the same.
    fn edit_text<'e>(
        &self,
        path: &Path,
        text: &str,
        edits: impl Iterator<Item = &'e (&'e str, &'e Edit, &'e str)>,
        said: &BTreeMap<String, String>,
    ) -> Result<Option<String>> {
        let mut new = text.to_owned();
        for (key, edit, value) in edits {
            let fill = |text: &str| filled(text, value, said);
            let wanted = match &edit.source {
                Some(source) => {
                    let source = self.room.join(source);
                    edit.source_value(&source, fill).ok_or_else(|| self.not_found(key, value, &[source]))?
                }
                None => fill(edit.value.as_deref().unwrap_or("{value}")),
            };
            if let (EditFormat::Toml, Some(place)) = (edit.format, &edit.set) {
                let toml = with_toml_text(path, &new, &fill(place), Some(&wanted));
                new = toml.map_err(|error| self.in_original(error))?;
                continue;
            }
            new = match edit.set.as_deref().and_then(|place| place.rsplit_once('.')) {
                Some((title, name)) if edit.format == EditFormat::Gitconfig => {
                    gitconfig::with_value(&new, &fill(title), &fill(name), &wanted)
                }
                Some((title, name)) => ini::with_value(&new, &fill(title), &fill(name), &wanted),
                None => wanted,
            };
        }
        Ok((new != text).then_some(new))
    }

    /// Locks the directories of files in the room, each once: a second lock would wait for the first.
    fn lock_dirs_of(&self, files: &BTreeSet<&str>) -> Result<BTreeMap<PathBuf, LockedDir>> {
        let mut dirs = BTreeSet::new();
        for file in files {
            let path = self.room.join(file);
            // A command of the session may have replaced a directory by a link to the user's own files.
            self.require_inside(&path)?;
            dirs.extend(path.parent().map(Path::to_owned));
        }
        // In the order of their names, so that two processes do not wait for each other.
        let lock = |dir: PathBuf| LockedDir::lock(self.locker, &dir, 0o700).map(|locked| (dir, locked));
        dirs.into_iter().map(lock).collect()
    }

    /// Fails if a directory on the way to a file in the room has become a link.
    fn require_inside(&self, path: &Path) -> Result<()> {
        let above = path.ancestors().skip(1).take_while(|dir| *dir != self.room);
        for dir in above {
            if dir.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                return Err(
                    SessionError::UnsafeRoom { path: dir.to_owned(), reason: "replaced by a link" }.into()
                );
            }
        }
        Ok(())
    }

    fn invalid(&self, key: &str, problem: String) -> Error {
        Error::Tool(ToolError::InvalidBinding {
            context: self.context.to_owned(),
            key: format!("tools.{}.{key}", self.profile.name),
            problem,
        })
    }

    /// Original of a path in the room.
    fn original(&self, path: &Path) -> Vec<PathBuf> {
        let copy = self.copies.iter().find(|copy| path.starts_with(&copy.to));
        let rest = copy.and_then(|copy| path.strip_prefix(&copy.to).ok());
        match (copy, rest) {
            // What the session itself has changed is not as in the original.
            (Some(copy), _) if copy.digest.is_some() && digest(&copy.to) != copy.digest => {
                vec![path.to_owned()]
            }
            (Some(copy), Some(rest)) if !copy.from.is_empty() => copy
                .from
                .iter()
                .map(|from| if rest.as_os_str().is_empty() { from.clone() } else { from.join(rest) })
                .collect(),
            (Some(copy), _) => vec![copy.usual.clone()],
            _ => vec![path.to_owned()],
        }
    }

    fn not_found(&self, key: &str, value: &str, looked: &[PathBuf]) -> Error {
        let looked = looked.iter().flat_map(|path| self.original(path)).collect();
        Error::Tool(ToolError::BindingNotFound {
            context: self.context.to_owned(),
            key: format!("tools.{}.{key}", self.profile.name),
            value: value.to_owned(),
            looked,
        })
    }
}

/// Whether a context leaves a tool's copies restricted to the targets that it binds, which it does unless it says otherwise.
pub(crate) fn is_strict(bindings: &Bindings) -> bool {
    !bindings.iter().any(|(key, value)| key == STRICT && *value == Value::Bool(false))
}

/// A template with the value and its siblings in it.
pub(crate) fn filled(template: &str, value: &str, said: &BTreeMap<String, String>) -> String {
    // One pass: what a value holds is not a placeholder.
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            out.push('{');
            rest = after;
            continue;
        };
        match name {
            "value" => out.push_str(value),
            "value|sha256" => out.push_str(&crate::settings::trust::fingerprint(value)),
            key => out.push_str(said.get(key).map_or("", String::as_str)),
        }
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_not_expanded_as_a_placeholder() {
        let said = BTreeMap::from([("host".to_owned(), "{value}".to_owned())]);
        assert_eq!(filled("{host}.users.{value}", "{host}", &said), "{value}.users.{host}");
        assert_eq!(filled("a{b", "x", &said), "a{b");
    }
}
