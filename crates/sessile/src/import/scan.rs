//! Scan: the targets in the files of the user's tools.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Result;
use crate::import::places::ImportPlaces;
use crate::import::{FoundAgent, FoundConversation, FoundCredential, FoundTarget, FoundVariables, found};
use crate::state::State;
use crate::tool::{
    ImportedThing, OriginalFiles, Profile, TargetFormat, TargetPlace, TargetSet, filled, target_names_in,
};

/// Targets of all tools, and the tools whose files cannot be read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Scan {
    /// Targets, in the order of tools and then of their files.
    pub targets: Vec<FoundTarget>,
    /// Agents that tools know by name.
    pub agents: Vec<FoundAgent>,
    /// Conversations that tools remember.
    pub conversations: Vec<FoundConversation>,
    /// Secrets in clear text.
    pub credentials: Vec<FoundCredential>,
    /// Variables of the working directory.
    pub variables: Vec<FoundVariables>,
    /// Tools that could not be read.
    pub unreadable: Vec<UnreadableTool>,
}

/// A tool whose files cannot be read.
#[derive(Clone, Debug, Serialize)]
pub struct UnreadableTool {
    /// Tool.
    pub tool: String,
    /// Problem, with the file.
    pub problem: String,
}

/// Reads the files of every known tool that has targets.
pub fn scan(state: &State) -> Result<Scan> {
    let files = OriginalFiles::of(state);
    let mut scan = Scan::default();
    let profiles: Vec<Profile> = state.tools().list()?.into_iter().map(|(profile, _)| profile).collect();
    for profile in &profiles {
        // One damaged file must not hide the targets of all other tools.
        let found = targets(&files, profile).and_then(|found| {
            scan.targets.extend(found);
            found::read(state, &profiles, profile, &mut scan)
        });
        if let Err(error) = found {
            scan.unreadable.push(UnreadableTool { tool: profile.name.clone(), problem: error.to_string() });
        }
    }
    Ok(scan)
}

/// The values that a binding can have: the targets in the user's files, or `true` and `false`.
pub fn binding_values(state: &State, tool: &str, key: &str) -> Result<Vec<String>> {
    let (profile, _) = state.tools().get(tool)?;
    if profile.binding(key).is_some_and(|binding| binding.flag) {
        return Ok(["true", "false"].map(str::to_owned).into());
    }
    let files = OriginalFiles::of(state);
    let mut values = Vec::new();
    for set in profile.targets.iter().filter(|set| set.name == key) {
        match container(&profile, set) {
            None => values.extend(names(&files, &profile, set, &BTreeMap::new())?),
            Some(outer) => {
                for name in names(&files, &profile, outer, &BTreeMap::new())? {
                    let said = BTreeMap::from([(outer.name.clone(), name)]);
                    values.extend(names(&files, &profile, set, &said)?);
                }
            }
        }
    }
    let places = ImportPlaces::of(state);
    for place in profile.imports.iter().filter(|place| place.what == ImportedThing::Target(key.to_owned())) {
        for mut found in places.entries(&profile, place)? {
            let value = places.part(place, &mut found, key);
            values.push(as_bound(&place.place, &value.unwrap_or_else(|| found.entry.name().to_owned())));
        }
    }
    values.sort();
    values.dedup();
    Ok(values)
}

fn targets(files: &OriginalFiles<'_>, profile: &Profile) -> Result<Vec<FoundTarget>> {
    let mut found = Vec::new();
    for set in profile.targets.iter().filter(|set| is_proposed(profile, set)) {
        let Some(container) = container(profile, set) else {
            // Hosts whose accounts are targets are proposed with these.
            if !profile
                .targets
                .iter()
                .any(|inner| inner.name != set.name && container_is(profile, inner, set))
            {
                found.extend(
                    names(files, profile, set, &BTreeMap::new())?
                        .into_iter()
                        .map(|name| target(profile, set, name, Vec::new())),
                );
            }
            continue;
        };
        for outer in names(files, profile, container, &BTreeMap::new())? {
            let said = BTreeMap::from([(container.name.clone(), outer.clone())]);
            let is_default = profile
                .binding(&container.name)
                .is_some_and(|binding| binding.default.as_ref() == Some(&outer));
            let beside: Vec<(String, String)> =
                if is_default { Vec::new() } else { vec![(container.name.clone(), outer.clone())] };
            let inner = names(files, profile, set, &said)?;
            if inner.is_empty() {
                found.push(target(profile, container, outer, Vec::new()));
            }
            found.extend(inner.into_iter().map(|name| target(profile, set, name, beside.clone())));
        }
    }
    Ok(found)
}

fn target(profile: &Profile, set: &TargetSet, name: String, beside: Vec<(String, String)>) -> FoundTarget {
    let is_default =
        set.selected.as_ref().is_some_and(|selected| selected.default.as_deref() == Some(name.as_str()));
    FoundTarget { beside, is_default, ..FoundTarget::new(&profile.name, &set.name, name) }
}

/// Whether a context can bind entries of a set directly, and not only through another set that refers to them.
fn is_proposed(profile: &Profile, set: &TargetSet) -> bool {
    let refers = |other: &TargetSet| {
        other.name != set.name
            && other.places.iter().any(|place| place.refs.iter().any(|(name, _)| *name == set.name))
    };
    // Opening a database of a tool can change its files, and a scan changes nothing.
    let is_readable = |place: &TargetPlace| place.format != TargetFormat::Sqlite;
    profile.binding(&set.name).is_some()
        && set.places.iter().any(is_readable)
        && !profile.targets.iter().any(refers)
}

/// The set whose entries hold those of this one, as hosts hold accounts.
fn container<'p>(profile: &'p Profile, set: &TargetSet) -> Option<&'p TargetSet> {
    profile.targets.iter().find(|outer| outer.name != set.name && container_is(profile, set, outer))
}

fn container_is(profile: &Profile, set: &TargetSet, outer: &TargetSet) -> bool {
    let placeholder = format!("{{{}}}", outer.name);
    profile.binding(&outer.name).is_some()
        && set.places.iter().any(|place| {
            place.file.contains(&placeholder) || place.entries.iter().any(|path| path.contains(&placeholder))
        })
}

/// The names of a set's entries in the user's files, each as a binding takes it.
pub(super) fn names(
    files: &OriginalFiles<'_>,
    profile: &Profile,
    set: &TargetSet,
    said: &BTreeMap<String, String>,
) -> Result<Vec<String>> {
    let fill = |text: &str| filled(text, "", said);
    let mut names: Vec<String> = Vec::new();
    let is_own = |place: &&TargetPlace| place.format != TargetFormat::Sqlite && !place.foreign;
    for place in set.places.iter().filter(is_own) {
        for path in files.files_of(profile, &fill(&place.file)) {
            for entry in target_names_in(place, &path, &fill)? {
                // Some entries have an id and a name; people know the name.
                let name = entry.iter().find(|name| !is_id(name)).or(entry.first());
                let name = name.filter(|name| !name.is_empty()).map(|name| as_bound(place, name));
                names.extend(name.filter(|name| !names.contains(name)));
            }
        }
    }
    Ok(names)
}

/// A name as a binding takes it: entries for URLs are written without a scheme.
fn as_bound(place: &TargetPlace, name: &str) -> String {
    if place.url && !name.contains("://") {
        format!("https://{}/", name.trim_end_matches('/'))
    } else {
        name.to_owned()
    }
}

fn is_id(name: &str) -> bool {
    // The length of a UUID without its dashes.
    name.len() >= 32 && name.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}
