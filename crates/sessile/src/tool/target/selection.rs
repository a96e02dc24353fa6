//! Selections of tools: the target that a tool's own files select.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toml_edit::DocumentMut;

use crate::error::Result;
use crate::files::{LockedDir, Locker, read_up_to};
use crate::tool::edit::with_toml_text;
use crate::tool::profile::{Edit, EditFormat, Profile};
use crate::tool::seed::LARGEST_UNDERSTOOD;
use crate::tool::target::{TargetFormat, ini, keys, without_login};
use crate::tool::tree::{Scalar, Tree, TreePath};

/// Place of a selection that no binding edits.
#[derive(Clone, Debug, Serialize)]
pub struct TargetSelection {
    /// File in the room.
    pub file: Option<String>,
    /// Further files, which count if it selects nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// Format of the file; `lines` for a file that holds only the name.
    pub format: TargetFormat,
    /// Path of the field that names the target.
    pub key: String,
    /// Target that is selected where nothing names one.
    pub default: Option<String>,
}

impl TargetSelection {
    /// Its files, the strongest first.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.file.iter().chain(&self.more).map(String::as_str)
    }
}

/// Selections of one tool, in a room or in the user's files.
pub(crate) struct ToolSelection<'a> {
    pub(crate) profile: &'a Profile,
    /// The place of a file of the room.
    pub(crate) locate: &'a dyn Fn(&str) -> PathBuf,
    pub(crate) fill: &'a dyn Fn(&str) -> String,
}

impl ToolSelection<'_> {
    /// The target of a set that the copies select.
    pub(crate) fn selected(&self, key: &str) -> Option<String> {
        // The tool uses its default where nothing is selected, so a protected default counts as selected.
        self.named(key).or_else(|| self.place(key)?.default.clone())
    }

    /// The same, without what is selected where nothing names one.
    pub(crate) fn named(&self, key: &str) -> Option<String> {
        let by_binding = || {
            let edits = self.profile.binding(key)?.edit.iter();
            // Edits with another value set something that belongs to the target, not its name.
            let names_target =
                |edit: &&Edit| edit.value.is_none() && (edit.from.is_none() || edit.source.is_some());
            edits.filter(names_target).find_map(|edit| {
                let mut tree = self.tree(&edit.file, edit.format)?;
                let text = match (edit.place(), &edit.require, &edit.mark) {
                    (Some(place), _, _) => self.tree_path(key, place).text(&mut tree),
                    (None, Some(list), Some(flag)) => marked(list, flag, &mut tree),
                    _ => None,
                }?;
                match &edit.source {
                    Some(source) => edit.source_name(&self.path(source), &text),
                    None => Some(text),
                }
            })
        };
        let name = by_binding().or_else(|| self.by_field(key));
        // A selection is shown, and the login in an address is a secret.
        name.map(|name| without_login(name.trim())).filter(|name| !name.is_empty())
    }

    /// Empties a selection that a binding could set, and removes what belongs to it.
    pub(crate) fn deselect(&self, key: &str, locker: &Locker) -> Result<()> {
        let edits = self.profile.binding(key).map(|binding| binding.edit.as_slice()).unwrap_or_default();
        for edit in edits {
            let Some(place) = edit.place() else { continue };
            let Some(notation) = edit.format.notation() else {
                self.deselect_in_text(edit, place, locker)?;
                continue;
            };
            let Some(mut tree) = self.tree(&edit.file, edit.format) else { continue };
            let before = tree.clone();
            let place = self.tree_path(key, place);
            match edit.from.is_some() {
                true => place.remove(&mut tree),
                // Some tools need the field, and an empty one selects nothing.
                false if place.exists(&mut tree) => drop(place.set(&mut tree, &Scalar::quoted(""))),
                false => {}
            }
            // An unchanged file keeps its stamp, and the plan stays valid.
            if tree != before {
                self.write(&edit.file, &notation.write(&tree), locker)?;
            }
        }
        Ok(())
    }

    /// Removes what a binding would copy from an entry, where it is that of a target with these fields: a tool may keep the key of
    /// one target beside the name of another.
    pub(crate) fn remove_copied(
        &self,
        key: &str,
        is_of_target: &dyn Fn(&str, &str) -> bool,
        locker: &Locker,
    ) -> Result<()> {
        let edits = self.profile.binding(key).map(|binding| binding.edit.as_slice()).unwrap_or_default();
        for edit in edits.iter().filter(|edit| edit.source.is_none()) {
            let field = edit.from.as_deref().and_then(|from| from.split_once("{value}."));
            let (Some((_, field)), Some(place)) = (field, edit.place()) else { continue };
            let Some(notation) = edit.format.notation() else { continue };
            let Some(mut tree) = self.tree(&edit.file, edit.format) else { continue };
            let place = TreePath::parse(place, self.fill);
            if place.text(&mut tree).is_some_and(|value| is_of_target(field, &value)) {
                place.remove(&mut tree);
                self.write(&edit.file, &notation.write(&tree), locker)?;
            }
        }
        Ok(())
    }

    fn deselect_in_text(&self, edit: &Edit, place: &str, locker: &Locker) -> Result<()> {
        let Some(text) = self.text(&edit.file) else { return Ok(()) };
        if edit.format == EditFormat::Toml {
            // A file that cannot be understood was removed with the targets in it.
            let path = self.path(&edit.file);
            return match with_toml_text(&path, &text, &(self.fill)(place), None) {
                Ok(new) if new != text => self.write(&edit.file, &new, locker),
                _ => Ok(()),
            };
        }
        let new = match place.rsplit_once('.').filter(|_| edit.format != EditFormat::Text) {
            Some((title, key)) => {
                let (title, key) = ((self.fill)(title), (self.fill)(key));
                ini::without_keys(&text, |found| found == title, |found| found.eq_ignore_ascii_case(&key))
            }
            None => String::new(),
        };
        if new == text { Ok(()) } else { self.write(&edit.file, &new, locker) }
    }

    fn write(&self, file: &str, text: &str, locker: &Locker) -> Result<()> {
        let path = self.path(file);
        let (parent, name) = (path.parent(), path.file_name().unwrap_or_default());
        let dir = LockedDir::lock(locker, parent.unwrap_or(Path::new("")), 0o700)?;
        dir.replace_for_now(Path::new(name), text, 0o600)
    }

    /// Files that the selection of a set depends on.
    pub(crate) fn files(&self, key: &str) -> Vec<PathBuf> {
        let edited = self.profile.binding(key).into_iter().flat_map(|binding| &binding.edit);
        let own = self.place(key).into_iter().flat_map(TargetSelection::files);
        edited.map(|edit| edit.file.as_str()).chain(own).map(|file| self.path(file)).collect()
    }

    fn place(&self, key: &str) -> Option<&TargetSelection> {
        self.profile.targets.iter().find(|set| set.name == key)?.selected.as_ref()
    }

    fn by_field(&self, key: &str) -> Option<String> {
        let place = self.place(key)?;
        place.files().find_map(|file| self.in_file(key, place, file))
    }

    /// A path in a file of the tool, whose keys count as in the places of a set.
    fn tree_path(&self, key: &str, path: &str) -> TreePath {
        let mut places =
            self.profile.targets.iter().filter(|set| set.name == key).flat_map(|set| &set.places);
        TreePath::parse(path, self.fill).ignoring_case(places.any(|place| place.ignores_case))
    }

    fn in_file(&self, key: &str, place: &TargetSelection, file: &str) -> Option<String> {
        let read = |format| self.tree_path(key, &place.key).text(&mut self.tree(file, format)?);
        match place.format {
            TargetFormat::Yaml => read(EditFormat::Yaml),
            TargetFormat::Json => read(EditFormat::Json),
            TargetFormat::Ini => read(EditFormat::Ini),
            // The last one counts.
            TargetFormat::Keys => {
                let text = self.text(file)?;
                let settings = keys::lines(&text).filter_map(keys::setting);
                let last = settings.filter(|one| !one.is_open && one.key == place.key).last();
                // What a variable says by then is unknown.
                last.map(|one| one.value).filter(|value| !value.contains("${"))
            }
            TargetFormat::Toml => {
                let document: DocumentMut = self.text(file)?.parse().ok()?;
                document.get(&place.key)?.as_str().map(str::to_owned)
            }
            _ => self.text(file),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        (self.locate)(&(self.fill)(file))
    }

    /// The text of a file; a file that cannot be read selects nothing.
    fn text(&self, file: &str) -> Option<String> {
        read_up_to(&self.path(file), LARGEST_UNDERSTOOD).ok().flatten()
    }

    fn tree(&self, file: &str, format: EditFormat) -> Option<Tree> {
        format.read(&self.path(file), &self.text(file)?).ok()
    }
}

/// The first name of the element of a list that has a flag: `subscriptions[id|name={value}]`.
fn marked(template: &str, flag: &str, tree: &mut Tree) -> Option<String> {
    let (list, keys) = template.split_once('[')?;
    let key = keys.split(['|', '=']).next()?;
    let place = TreePath::parse(list, str::to_owned);
    let Tree::List(elements) = place.find_mut(tree).into_iter().next()? else { return None };
    let field = |element: &mut Tree, name: &str| TreePath::parse(name, str::to_owned).text(element);
    let element = elements
        .iter_mut()
        .find_map(|element| (field(element, flag).as_deref() == Some("true")).then(|| field(element, key)));
    element.flatten()
}
