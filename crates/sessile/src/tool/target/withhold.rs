//! Removing protected targets from a session's copies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, SessionError, ToolError};
use crate::tool::seed::remove;
use crate::tool::target::entries::{Entry, EntryFile};
use crate::tool::target::identity::{IdentityField, LoadedPlace, LoadedSets};
use crate::tool::target::{
    TargetCopies, TargetFormat, TargetPlace, TargetSet, columns, is_hash_of, normalized,
};

/// A target that must not be in the copies.
pub(crate) struct WithheldEntry<'a> {
    pub(crate) set: &'a str,
    pub(crate) name: &'a str,
    pub(crate) identities: &'a [String],
    /// Whether a field that identifies it has this value.
    pub(crate) has_field: &'a dyn Fn(&str, &str) -> bool,
}

impl TargetCopies<'_> {
    /// Removes a target from the copies, under whatever name its identity has there, with the entries that only it
    /// referred to. Returns the names of the removed targets. A file that cannot be understood is removed whole.
    pub(crate) fn withhold(&self, target: &WithheldEntry<'_>) -> Result<Vec<String>> {
        let Some(set) = self.sets.iter().find(|set| set.name == target.set) else { return Ok(Vec::new()) };
        // Before anything is read: a link could lead the removal to the user's own files.
        self.require_real_places()?;
        let locate = |place: &TargetPlace| Ok(self.files(place));
        let mut loaded = loop {
            match LoadedSets::load(self.sets, self.fill, &locate) {
                // A file that cannot be parsed cannot be searched, and could still hold the target.
                Err(Error::Tool(ToolError::InvalidFile { path, .. })) if path.exists() => remove(&path)?,
                loaded => break loaded?,
            }
        };
        let names = matching(&mut loaded, set, target);
        let mut removed: BTreeSet<(String, String)> =
            names.iter().map(|name| (set.name.clone(), name.clone())).collect();
        self.add_orphans(&mut loaded, &mut removed);
        add_strays(&mut loaded, set, target, &mut removed);
        self.withhold_lines(&loaded, &removed)?;
        for loaded in &loaded.places {
            let is_removed = |entry: &Entry| {
                let is_listed = |name: &String| {
                    removed.contains(&(loaded.set.to_owned(), normalized(loaded.place, name)))
                };
                // An entry without a name may be the target's.
                let is_any = entry.names.is_empty() && loaded.set == set.name;
                is_any || entry.names.iter().any(is_listed)
            };
            // A file without such an entry is not rewritten: its stamp stays.
            if loaded.entries.iter().any(is_removed) {
                let file = EntryFile { place: loaded.place, path: loaded.path.clone(), fill: self.fill };
                file.retain(&|entry| !is_removed(entry), self.locker)?;
            }
        }
        Ok(names)
    }

    /// Removes the lines of columns that are for removed entries, and for no other.
    fn withhold_lines(&self, loaded: &LoadedSets<'_>, removed: &BTreeSet<(String, String)>) -> Result<()> {
        let of_columns = loaded.places.iter().filter(|loaded| loaded.place.format == TargetFormat::Columns);
        for LoadedPlace { set, place, path, .. } in of_columns {
            let (mut gone, mut rest) = (Vec::new(), Vec::new());
            for other in loaded.places.iter().filter(|other| other.place.refers_to(set)) {
                for entry in &other.entries {
                    let is_removed = entry
                        .names
                        .iter()
                        .any(|name| removed.contains(&(other.set.to_owned(), normalized(other.place, name))));
                    if is_removed { &mut gone } else { &mut rest }.push(entry.clone());
                }
            }
            let is_for = |columns: &[Option<String>], entries: &mut [Entry]| {
                entries.iter_mut().any(|entry| columns::is_for(columns, &place.entries, entry))
            };
            let is_kept =
                |columns: &[Option<String>]| !is_for(columns, &mut gone) || is_for(columns, &mut rest);
            EntryFile { place, path: path.clone(), fill: self.fill }.retain_lines(is_kept, self.locker)?;
        }
        Ok(())
    }

    /// Whether a selection means a target, in another spelling of its name.
    pub(crate) fn is_named(&self, target: &WithheldEntry<'_>, selected: &str) -> bool {
        let mut places = self.sets.iter().filter(|set| set.name == target.set).flat_map(|set| &set.places);
        places.any(|place| is_same_name(place, selected, target.name))
    }

    /// Adds the entries that removed ones refer to and no other entry does. A set that refers to itself keeps its own:
    /// the source of a profile is a target of its own.
    fn add_orphans(&self, loaded: &mut LoadedSets<'_>, removed: &mut BTreeSet<(String, String)>) {
        let mut open: Vec<(String, String)> = removed.iter().cloned().collect();
        while let Some((set, name)) = open.pop() {
            let others = self.sets.iter().map(|other| other.name.as_str()).filter(|other| **other != *set);
            for other in others {
                for referred in loaded.references(&set, &name, other) {
                    let entry = (other.to_owned(), referred);
                    // A user or cluster that another context uses must stay, or that context would break.
                    if !removed.contains(&entry) && !is_referred(loaded, removed, &entry) {
                        removed.insert(entry.clone());
                        open.push(entry);
                    }
                }
            }
        }
    }

    /// Files of a place in the room that exist.
    fn files(&self, place: &TargetPlace) -> Vec<PathBuf> {
        let filled = (self.fill)(&place.file);
        let defaults = self.defaults.iter().filter_map(|(copy, default)| {
            let rest = Path::new(&filled).strip_prefix(copy).ok()?;
            Some(if rest.as_os_str().is_empty() { default.clone() } else { default.join(rest) })
        });
        let all = [self.room.join(&filled)].into_iter().chain(defaults);
        // Without following links: a link in the place of a copy has to be noticed.
        all.filter(|path| path.symlink_metadata().is_ok()).collect()
    }

    /// Fails if a directory on the way to a place has become a link, and removes a link in the place of a directory or a
    /// database: a change must not reach what it leads to.
    fn require_real_places(&self) -> Result<()> {
        let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        for place in self.sets.iter().flat_map(|set| &set.places) {
            for path in self.files(place) {
                let above = path.ancestors().skip(1).take_while(|dir| *dir != self.room);
                if let Some(dir) = above.into_iter().find(|dir| is_link(dir)) {
                    let (path, reason) = (dir.to_owned(), "it was replaced by a link");
                    return Err(SessionError::UnsafeRoom { path, reason }.into());
                }
                // Files are replaced by a rename, which puts a file in the place of the link. These are
                // changed in place.
                if is_link(&path) && matches!(place.format, TargetFormat::Dir | TargetFormat::Sqlite) {
                    remove(&path)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a file of the user, which these places describe, has an entry of a target, or one that may be.
pub(crate) fn holds_target(
    sets: &[TargetSet],
    target: &WithheldEntry<'_>,
    fill: &dyn Fn(&str) -> String,
    (path, is_place): (&Path, &dyn Fn(&TargetPlace) -> bool),
) -> bool {
    let Some(set) = sets.iter().find(|set| set.name == target.set) else { return false };
    let locate = |place: &TargetPlace| {
        let is_file = place.format != TargetFormat::Sqlite && place.format != TargetFormat::Dir;
        Ok(if is_file && is_place(place) { vec![path.to_owned()] } else { Vec::new() })
    };
    // A file that cannot be understood may hold it.
    let Ok(mut loaded) = LoadedSets::load(sets, fill, &locate) else { return true };
    let names = matching(&mut loaded, set, target);
    loaded.places.iter_mut().filter(|loaded| loaded.set == set.name).any(|loaded| {
        let place = loaded.place;
        let is_meant = |entry: &Entry| {
            entry.names.is_empty() || entry.names.iter().any(|name| names.contains(&normalized(place, name)))
        };
        // Of some entries only the secrets would go.
        let has_more = |entry: &mut Entry| {
            let is_whole = place.drop.is_empty() && place.logins.is_empty();
            is_whole
                || place.drop.iter().any(|field| entry.subtree(field).is_some())
                || entry.has_login(place)
        };
        loaded.entries.iter_mut().any(|entry| is_meant(entry) && has_more(entry))
    })
}

/// Adds the entries with the fields of the target that nothing refers to: the session may have removed what did.
fn add_strays(
    loaded: &mut LoadedSets<'_>,
    set: &TargetSet,
    target: &WithheldEntry<'_>,
    removed: &mut BTreeSet<(String, String)>,
) {
    let mut groups: BTreeSet<(&str, Vec<&str>)> = BTreeSet::new();
    for alternative in &set.identity {
        let mut by_set: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for field in alternative {
            if let Some((other, _)) = IdentityField::parse(field).name.split_once(':') {
                by_set.entry(other).or_default().push(field);
            }
        }
        groups.extend(by_set);
    }
    for (other, fields) in groups {
        let fields: Vec<IdentityField<'_>> = fields.into_iter().map(IdentityField::parse).collect();
        let mut strays: Vec<(String, String)> = Vec::new();
        for loaded in loaded.places.iter_mut().filter(|loaded| loaded.set == other) {
            let (place, path) = (loaded.place, &loaded.path);
            for entry in &mut loaded.entries {
                // A field that the entry lacks does not make it another target.
                let is_alike = fields.iter().all(|field| match entry.value(&field.name[other.len() + 1..]) {
                    Some(value) => {
                        let mut values = field.resolved(value, path).into_iter();
                        values.any(|value| (target.has_field)(field.name, &value))
                    }
                    None => field.is_optional(),
                });
                let has_any = || fields.iter().any(|field| !field.is_optional());
                if is_alike && has_any() {
                    strays.extend(entry.names.iter().map(|name| (other.to_owned(), normalized(place, name))));
                }
            }
        }
        strays.retain(|stray| !removed.contains(stray) && !is_referred(loaded, removed, stray));
        removed.extend(strays);
    }
}

/// Names of the entries that are the target, by name or by identity.
fn matching(loaded: &mut LoadedSets<'_>, set: &TargetSet, target: &WithheldEntry<'_>) -> Vec<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut others: Vec<(String, Vec<String>)> = Vec::new();
    for loaded in loaded.places.iter().filter(|loaded| loaded.set == set.name) {
        let place = loaded.place;
        for entry in &loaded.entries {
            let all: Vec<String> = entry.names.iter().map(|name| normalized(place, name)).collect();
            match entry.names.iter().any(|name| is_same_name(place, name, target.name)) {
                true => names.extend(all),
                false => others.extend(entry.names.first().map(|name| (name.clone(), all))),
            }
        }
    }
    for (name, all) in others {
        if loaded.identities(set, &name).iter().any(|key| target.identities.contains(key)) {
            names.extend(all);
        }
    }
    names.into_iter().collect()
}

/// Whether an entry's name is a target's. A URL stands for those below it.
pub(crate) fn is_same_name(place: &TargetPlace, name: &str, target: &str) -> bool {
    let (name, target) = (normalized(place, name), normalized(place, target));
    name == target
        || is_hash_of(place, &name, &target)
        || (place.url && name.strip_prefix(&target).is_some_and(|rest| rest.starts_with('/')))
}

/// Whether an entry that is not removed refers to this one.
fn is_referred(
    loaded: &mut LoadedSets<'_>,
    removed: &BTreeSet<(String, String)>,
    (set, name): &(String, String),
) -> bool {
    loaded.places.iter_mut().any(|loaded| {
        let (place, own) = (loaded.place, loaded.set);
        let is_removed = |entry: &Entry| {
            entry.names.iter().any(|one| removed.contains(&(own.to_owned(), normalized(place, one))))
        };
        loaded.entries.iter_mut().filter(|entry| !is_removed(entry)).any(|entry| {
            entry.references(place).iter().any(|(other, referred)| other == set && referred == name)
        })
    })
}
