//! Scan: the targets in the files of the user's tools.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Result;
use crate::import::FoundTarget;
use crate::state::State;
use crate::tool::{OriginalFiles, Profile, TargetFormat, TargetPlace, TargetSet, filled, target_names_in};

/// Targets of all tools, and the tools whose files cannot be read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Scan {
    /// Targets, in the order of tools and then of their files.
    pub targets: Vec<FoundTarget>,
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
    for (profile, _) in state.tools().list()? {
        // One damaged file must not hide the targets of all other tools.
        let found = targets(&files, &profile).and_then(|mut found| {
            found.extend(targets_of_directory(state, &profile)?);
            Ok(found)
        });
        match found {
            Ok(targets) => scan.targets.extend(targets),
            Err(error) => {
                scan.unreadable
                    .push(UnreadableTool { tool: profile.name.clone(), problem: error.to_string() });
            }
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
    let here = targets_of_directory(state, &profile)?.into_iter().filter(|target| target.key == key);
    values.extend(here.map(|target| target.name));
    values.sort();
    values.dedup();
    Ok(values)
}

/// The values of bindings that the working directory has.
fn targets_of_directory(state: &State, profile: &Profile) -> Result<Vec<FoundTarget>> {
    let Some(cwd) = state.world().cwd() else { return Ok(Vec::new()) };
    let mut found: Vec<FoundTarget> = Vec::new();
    for (key, place) in &profile.imports {
        let path = cwd.join(&place.file);
        // Most directories have none.
        if !path.exists() {
            continue;
        }
        for name in target_names_in(place, &path, &str::to_owned)?.into_iter().flatten() {
            let (tool, key) = (profile.name.clone(), key.clone());
            let target = FoundTarget { tool, key, name: as_bound(place, &name), beside: Vec::new() };
            if !found.contains(&target) {
                found.push(target);
            }
        }
    }
    Ok(found)
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
    FoundTarget { tool: profile.name.clone(), key: set.name.clone(), name, beside }
}

/// Whether a context can bind entries of a set by themselves: what another set refers to comes with that.
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
fn names(
    files: &OriginalFiles<'_>,
    profile: &Profile,
    set: &TargetSet,
    said: &BTreeMap<String, String>,
) -> Result<Vec<String>> {
    let fill = |text: &str| filled(text, "", said);
    let mut names: Vec<String> = Vec::new();
    for place in set.places.iter().filter(|place| place.format != TargetFormat::Sqlite) {
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
