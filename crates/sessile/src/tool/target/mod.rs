//! Targets: the entries of a tool's files that a context can bind, such as kube contexts, profiles and accounts.
//!
//! A profile describes them as sets of named entries. A set is stored in one or more places (files, directories, tables);
//! its entries may refer to entries of other sets, as a kube context does to its cluster and its user. [`restrict`](TargetCopies::restrict) leaves
//! only the bound entries, and what they refer to, in a session's copies. [`withhold`](TargetCopies::withhold) removes a protected one, by its name and by
//! its identity.
//!
//! Not for: selecting a target. The profile's bindings do that.

mod columns;
mod entries;
mod identity;
pub(super) mod ini;
mod keys;
mod selection;
mod withhold;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Result;
use crate::files::Locker;
use crate::settings::trust::fingerprint;
use crate::tool::profile::ReachVariables;
use crate::tool::target::entries::{Entry, EntryFile};
use crate::tool::target::identity::LoadedSets;

pub use selection::TargetSelection;

pub(crate) use identity::{IdentityField, normalized_value, value_identity, without_login};
#[cfg(any(test, fuzzing))]
pub(crate) use ini::check_edits;
pub(crate) use selection::ToolSelection;
pub(crate) use withhold::{WithheldEntry, holds_target, is_same_name};

/// A set of named entries. If a binding has its name, the entries are what that binding names.
#[derive(Clone, Debug, Serialize)]
pub struct TargetSet {
    /// Name: that of a binding, or the one that references use.
    pub name: String,
    /// Where its entries are stored; an entry may have a part in each.
    pub places: Vec<TargetPlace>,
    /// Alternatives of fields that make two entries the same target. `SET:FIELD` is a field of a referred entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identity: Vec<Vec<String>>,
    /// The same for sharing, where it takes more: alternatives of fields that make an entry which an unguarded context binds
    /// exactly the target of a guarded one. Without them those of the identity count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Vec<String>>,
    /// Selection of the tool itself, where no binding edits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<TargetSelection>,
    /// Variables that reach an entry beside those of its binding.
    #[serde(rename = "reach")]
    pub variables: ReachVariables,
}

impl TargetSet {
    /// Whether names of its entries are URLs.
    pub(crate) fn has_urls(&self) -> bool {
        self.places.iter().any(|place| place.url)
    }
}

/// A place where the entries of a set are stored.
#[derive(Clone, Debug, Serialize)]
pub struct TargetPlace {
    /// The file or directory, in the room.
    pub file: String,
    /// Format of the file.
    pub format: TargetFormat,
    /// What the entries are called there: the path of a list or map, names of sections or files with `{}` for the name, a
    /// table and its column, the fields that columns are compared with, or the beginning of a line. `[FIELD]` after a map or a section names its entries by a field;
    /// alone it makes the file one entry.
    pub entries: Vec<String>,
    /// The file in the directory of an entry that describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<EntryContent>,
    /// Whether names are URLs, which count without their scheme and last slash.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub url: bool,
    /// References to entries of other sets: the set, and the field that names the entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<(String, String)>,
    /// Names of entries that all others inherit from. They stay, without the fields that every bound entry sets itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// Fields that an entry loses instead of being removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// Name of the one entry that the value at the path is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Fields with URLs that lose their login instead of the entry being removed; `{}` is the name. An entry of lines
    /// without a login is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logins: Vec<String>,
    /// Field that a value which is not a table counts as; without it such values are settings of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plain: Option<String>,
    /// Whether the tool reads the keys of its fields in any case.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignores_case: bool,
    /// Whether the file is another tool's, which the import leaves to that tool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
}

impl TargetPlace {
    /// Whether its entries refer to entries of a set.
    fn refers_to(&self, set: &str) -> bool {
        self.refs.iter().any(|(name, _)| name == set)
    }
}

/// How the directory of an entry describes it.
#[derive(Clone, Debug, Serialize)]
pub struct EntryContent {
    /// The file in it; none if the entry is itself a file.
    pub file: Option<String>,
    /// What that file is written in.
    pub format: TargetFormat,
    /// The field with the entry's name, if the directory has another name.
    pub name: Option<String>,
}

/// What a place with entries is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetFormat {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// Sections in brackets.
    Ini,
    /// TOML.
    Toml,
    /// A directory with an entry for each.
    Dir,
    /// A file that is one entry, and does not say which target it is for.
    File,
    /// A table of an SQLite file.
    Sqlite,
    /// Lines that begin with a name.
    Lines,
    /// Lines with a key and a value, in every spelling of the key.
    Keys,
    /// Lines of columns, each for the entries that refer to the set and agree with it.
    Columns,
}

impl TargetFormat {
    /// A format by its name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "yaml" => TargetFormat::Yaml,
            "json" => TargetFormat::Json,
            "ini" => TargetFormat::Ini,
            "toml" => TargetFormat::Toml,
            "dir" => TargetFormat::Dir,
            "file" => TargetFormat::File,
            "sqlite" => TargetFormat::Sqlite,
            "lines" => TargetFormat::Lines,
            "keys" => TargetFormat::Keys,
            "columns" => TargetFormat::Columns,
            _ => return None,
        })
    }
}

/// The key of a binding that turns the restriction of a tool's copies off.
pub(crate) const STRICT: &str = "strict";

/// The targets that a context binds, by set.
pub(crate) type BoundTargets = BTreeMap<String, Vec<String>>;

/// A bound target that no place has.
#[derive(Debug)]
pub(crate) struct MissingTarget {
    pub(crate) set: String,
    pub(crate) name: String,
    pub(crate) looked: Vec<PathBuf>,
}

/// One tool's copies in a room.
pub(crate) struct TargetCopies<'a> {
    pub(crate) sets: &'a [TargetSet],
    pub(crate) room: &'a Path,
    pub(crate) locker: &'a Locker,
    /// Fills the placeholders of bindings in paths.
    pub(crate) fill: &'a dyn Fn(&str) -> String,
    /// Further copies: what a path in the room is copied from, and where else in the room it is.
    pub(crate) defaults: &'a [(PathBuf, PathBuf)],
}

/// The names of the entries of a place in a file; an entry may have several.
pub(crate) fn target_names_in(
    place: &TargetPlace,
    path: &Path,
    fill: &dyn Fn(&str) -> String,
) -> Result<Vec<Vec<String>>> {
    let entries = EntryFile { place, path: path.to_owned(), fill }.load()?;
    Ok(entries.into_iter().map(|entry| entry.names).collect())
}

/// An entry that the import reads.
#[derive(Clone)]
pub(crate) struct ImportEntry(Entry);

impl ImportEntry {
    /// Name; the first one is the one that people use.
    pub(crate) fn name(&self) -> &str {
        self.0.names.first().map_or("", String::as_str)
    }

    /// The text of a field; `{}` is the name.
    pub(crate) fn field(&mut self, path: &str) -> Option<String> {
        if path == "{}" {
            return Some(self.name().to_owned());
        }
        let is_null = self.0.subtree(path).is_some_and(|tree| tree.is_nothing());
        if is_null { None } else { self.0.field(path) }
    }

    /// Replaces its fields by those of a file with sections.
    pub(crate) fn describe(&mut self, fields: crate::tool::tree::Tree) {
        self.0.describe(fields);
    }
}

/// The entries of a place in a file.
pub(crate) fn import_entries(
    place: &TargetPlace,
    path: &Path,
    fill: &dyn Fn(&str) -> String,
) -> Result<Vec<ImportEntry>> {
    let entries = EntryFile { place, path: path.to_owned(), fill }.load()?;
    Ok(entries.into_iter().map(ImportEntry).collect())
}

/// Values of fields, by the fields' names.
pub(crate) type FieldValues = Vec<(String, Vec<String>)>;

/// What identifies an entry.
#[derive(Default)]
pub(crate) struct TargetIdentity {
    /// Identities: an entry that has one of them reaches the same target.
    pub(crate) identities: Vec<String>,
    /// Identities of entries for exactly the same target.
    pub(crate) exact: Vec<String>,
    /// Values of the fields that identify it.
    pub(crate) fields: FieldValues,
}

/// What identifies an entry of a set in the files that `locate` finds for a place.
pub(crate) fn identify(
    sets: &[TargetSet],
    (key, name): (&str, &str),
    fill: &dyn Fn(&str) -> String,
    locate: &dyn Fn(&TargetPlace) -> Vec<PathBuf>,
) -> Result<TargetIdentity> {
    let Some(set) = sets.iter().find(|set| set.name == key) else { return Ok(TargetIdentity::default()) };
    // Databases hold nothing that identifies a target, and opening one may change its files.
    let locate = |place: &TargetPlace| {
        Ok(if place.format == TargetFormat::Sqlite { Vec::new() } else { locate(place) })
    };
    let mut loaded = LoadedSets::load(sets, fill, &locate)?;
    Ok(TargetIdentity {
        identities: loaded.identities(set, name),
        exact: loaded.exact_identities(set, name),
        fields: loaded.fields(set, name),
    })
}

impl TargetCopies<'_> {
    /// Removes every entry that is not bound, and that no bound one refers to, from the sets that are bound or referred to.
    pub(crate) fn restrict(&self, bound: &BoundTargets) -> Result<()> {
        let keep = self.closure(bound)?;
        for set in self.sets {
            let Some(names) = keep.get(&set.name) else { continue };
            for place in &set.places {
                if place.format == TargetFormat::Columns {
                    let mut kept = self.kept_referrers(&set.name, &keep)?;
                    let is_kept = |columns: &[Option<String>]| {
                        kept.iter_mut().any(|entry| columns::is_for(columns, &place.entries, entry))
                    };
                    self.open(place).retain_lines(is_kept, self.locker)?;
                    continue;
                }
                let is_kept = |entry: &Entry| entry.names.iter().any(|name| is_named(place, names, name));
                self.open(place).retain(&is_kept, self.locker)?;
                self.open(place).trim_defaults(self.locker)?;
            }
        }
        Ok(())
    }

    /// The entries that stay and refer to a set.
    fn kept_referrers(&self, set: &str, keep: &BTreeMap<String, BTreeSet<String>>) -> Result<Vec<Entry>> {
        let mut kept = Vec::new();
        for other in self.sets {
            let Some(names) = keep.get(&other.name) else { continue };
            for place in other.places.iter().filter(|place| place.refers_to(set)) {
                let entries = self.open(place).load()?.into_iter();
                kept.extend(
                    entries.filter(|entry| entry.names.iter().any(|name| is_named(place, names, name))),
                );
            }
        }
        Ok(kept)
    }

    /// A bound target that no place of its set has. `is_known` says of names that exist without an entry.
    pub(crate) fn missing(
        &self,
        bound: &BoundTargets,
        is_known: impl Fn(&str, &str) -> bool,
    ) -> Result<Option<MissingTarget>> {
        for (key, names) in bound {
            let Some(set) = self.sets.iter().find(|set| set.name == *key) else { continue };
            let found = self.names(set)?;
            for name in names.iter().filter(|name| !is_known(key, name)) {
                let is_here = set.places.iter().any(|place| {
                    let name = normalized(place, name);
                    found.contains(&name) || found.iter().any(|dir| is_hash_of(place, dir, &name))
                });
                if !is_here {
                    let looked = set.places.iter().map(|place| self.room.join(&place.file)).collect();
                    return Ok(Some(MissingTarget { set: key.clone(), name: name.clone(), looked }));
                }
            }
        }
        Ok(None)
    }

    /// The names of a set's entries, in all places.
    fn names(&self, set: &TargetSet) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for place in &set.places {
            for entry in self.open(place).load()? {
                names.extend(entry.names.iter().map(|name| normalized(place, name)));
            }
        }
        Ok(names)
    }

    /// What stays, by set: the bound entries, and whatever they refer to in the end. A set that is not in it stays whole.
    fn closure(&self, bound: &BoundTargets) -> Result<BTreeMap<String, BTreeSet<String>>> {
        let mut keep: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut open: Vec<(String, String)> = Vec::new();
        for set in self.sets {
            let Some(names) = bound.get(&set.name) else { continue };
            keep.entry(set.name.clone()).or_default();
            open.extend(names.iter().map(|name| (set.name.clone(), name.clone())));
        }
        // A set that a bound one can refer to holds only what is referred to.
        loop {
            let reached: Vec<String> = self
                .sets
                .iter()
                .filter(|set| keep.contains_key(&set.name))
                .flat_map(|set| {
                    set.places.iter().flat_map(|place| place.refs.iter().map(|(set, _)| set.clone()))
                })
                .filter(|name| !keep.contains_key(name))
                .collect();
            if reached.is_empty() {
                break;
            }
            keep.extend(reached.into_iter().map(|name| (name, BTreeSet::new())));
        }
        let mut loaded = Vec::new();
        for set in self.sets.iter().filter(|set| keep.contains_key(&set.name)) {
            for place in &set.places {
                loaded.push((set.name.as_str(), place, self.open(place).load()?));
            }
        }
        // References can form chains and cycles, so names that are kept already are not opened again.
        while let Some((set, name)) = open.pop() {
            for (_, place, entries) in loaded.iter_mut().filter(|(name, ..)| *name == set) {
                let name = normalized(place, &name);
                keep.entry(set.clone()).or_default().insert(name.clone());
                for entry in entries.iter_mut() {
                    let is_meant = |one: &String| {
                        let one = normalized(place, one);
                        one == name || is_hash_of(place, &one, &name)
                    };
                    if !entry.names.iter().any(is_meant) {
                        continue;
                    }
                    for (other, referred) in entry.references(place) {
                        if !keep.get(&other).is_some_and(|names| names.contains(&referred)) {
                            open.push((other, referred));
                        }
                    }
                }
            }
        }
        Ok(keep)
    }

    fn open<'p>(&'p self, place: &'p TargetPlace) -> EntryFile<'p> {
        EntryFile { place, path: self.room.join((self.fill)(&place.file)), fill: self.fill }
    }
}

/// The names of a set's entries.
pub(crate) struct TargetNames<'s> {
    set: &'s TargetSet,
    pub(crate) names: BTreeSet<String>,
}

impl TargetNames<'_> {
    /// Whether an entry has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.set.places.iter().any(|place| self.names.contains(&normalized(place, name)))
    }
}

/// The names of a set's entries in the files that `locate` finds for each place. `None` if one cannot be read, or only by a
/// database that would write beside it.
pub(crate) fn names_in<'s>(
    set: &'s TargetSet,
    fill: &dyn Fn(&str) -> String,
    locate: &dyn Fn(&str) -> Vec<PathBuf>,
) -> Option<TargetNames<'s>> {
    let mut names = BTreeSet::new();
    for place in &set.places {
        if place.format == TargetFormat::Sqlite {
            return None;
        }
        for path in locate(&fill(&place.file)) {
            for entry in (EntryFile { place, path, fill }).load().ok()? {
                // The name of a directory is often a hash, which no command uses.
                let used = if place.format == TargetFormat::Dir { 1 } else { usize::MAX };
                names.extend(entry.names.iter().take(used).map(|name| normalized(place, name)));
            }
        }
    }
    Some(TargetNames { set, names })
}

/// Whether an entry of this name stays, because one of the names that stay needs it.
fn is_named(place: &TargetPlace, names: &BTreeSet<String>, name: &str) -> bool {
    if place.keep.iter().any(|kept| kept == name) {
        return true;
    }
    let name = normalized(place, name);
    let is_above = |kept: &String| kept.strip_prefix(&name).is_some_and(|rest| rest.starts_with('/'));
    let is_hashed = || names.iter().any(|kept| is_hash_of(place, &name, kept));
    // What is said of a URL holds for those below it.
    names.contains(&name) || is_hashed() || (place.url && names.iter().any(is_above))
}

/// Whether the directory of an entry is named after the hash of a name. Tools find an entry by it, whatever its file says.
fn is_hash_of(place: &TargetPlace, dir: &str, name: &str) -> bool {
    let is_named_inside = place.content.as_ref().is_some_and(|content| content.name.is_some());
    place.format == TargetFormat::Dir && is_named_inside && dir == fingerprint(name)
}

/// A name as it is compared: a URL without its scheme, its login, the port of its scheme and its last slash.
fn normalized(place: &TargetPlace, name: &str) -> String {
    if !place.url {
        return name.to_owned();
    }
    let rest = name.split_once("://").map_or(name, |(_, rest)| rest);
    let rest = rest.trim_start_matches("//");
    // Hosts are case-insensitive (RFC 3986, 3.2.2).
    let name = normalized_value(&format!("https://{rest}")).to_ascii_lowercase();
    let (host, path) = name.find('/').map_or((name.as_str(), ""), |at| name.split_at(at));
    // Most names have no scheme, so the port of either counts as none.
    let host = [":443", ":80"].iter().find_map(|port| host.strip_suffix(port)).unwrap_or(host);
    format!("{host}{path}")
}
