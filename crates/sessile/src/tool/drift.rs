//! Drift: values in a session's copies that a command has moved away from what the context pinned.
//!
//! A key that a binding writes into a file can drift, and so can the entry that a key selects: it has another address under
//! the same name. Variables are set for every command.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::context::Bindings;
use crate::error::Result;
use crate::files::read_up_to;
use crate::secrets::looks_secret;
use crate::session::Session;
use crate::settings::trust::fingerprint;
use crate::state::State;
use crate::text::shown;
use crate::tool::bind::{AppliedBinding, filled};
use crate::tool::binding::{binding_values, bound_targets};
use crate::tool::plan::Plan;
use crate::tool::profile::{Edit, Profile};
use crate::tool::seed::LARGEST_UNDERSTOOD;
use crate::tool::target::{IdentityField, TargetPlace, identify};
use crate::tool::tree::{Tree, TreePath};

/// A pinned value that a tool's copy no longer has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The tool.
    pub tool: String,
    /// Key of the binding.
    pub key: String,
    /// Value that the context pinned.
    pub pinned: String,
    /// Value in the copy; `None` if the copy has none, or cannot be read.
    pub current: Option<String>,
}

impl Drift {
    /// Report of a command that pinned the value again.
    pub(super) fn repinned(&self) -> String {
        let Drift { tool, key, pinned, current } = self;
        let current = current.as_deref().unwrap_or("not set");
        format!("{tool} {key} was {}; pinned to {} again", shown(current), shown(pinned))
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Drift { tool, key, pinned, current } = self;
        let current = current.as_deref().unwrap_or("not set");
        write!(f, "{} {} is {}, pinned to {}", shown(tool), shown(key), shown(current), shown(pinned))
    }
}

/// Drift of a live session. Copies that are unchanged since the last command are not opened.
pub fn drift(state: &State, session: &Session) -> Result<Vec<Drift>> {
    let room = session.room().dir();
    let plan = Plan::load(room)?;
    let mut drift = Vec::new();
    // Unchanged stamps mean unchanged files, and reading them is the expensive part.
    for bound in plan.bound.iter().filter(|bound| !bound.holds(&bound.bindings)) {
        // The profile may be gone with its project.
        let Ok((profile, _)) = state.tools().get(&bound.tool) else { continue };
        drift.extend(moved_targets(&profile, room, bound));
        drift.extend(drift_of(&profile, room, &bound.bindings));
    }
    Ok(drift)
}

/// Address of a bound target in a session's copies, at the time when it was bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TargetAddress {
    key: String,
    name: String,
    /// Fingerprint of the values, because a file can hold anything.
    print: String,
}

/// The addresses of the targets that bindings name: the first field of each identity. The other fields may be a login, which a
/// session may renew.
pub(super) fn addresses(profile: &Profile, room: &Path, bindings: &Bindings) -> Vec<TargetAddress> {
    let found = current_addresses(profile, room, bindings).into_iter();
    found.map(|(address, _)| address).collect()
}

/// The same, each with the values.
fn current_addresses(
    profile: &Profile,
    room: &Path,
    bindings: &Bindings,
) -> Vec<(TargetAddress, Vec<String>)> {
    let Ok(said) = binding_values(profile, bindings) else { return Vec::new() };
    let fill = |text: &str| filled(text, "", &said);
    let locate = |place: &TargetPlace| {
        let path = room.join(fill(&place.file));
        if path.exists() { vec![path] } else { Vec::new() }
    };
    let mut found = Vec::new();
    for (key, names) in bound_targets(profile, bindings, &said) {
        let Some(set) = profile.targets.iter().find(|set| set.name == key) else { continue };
        let first = set.identity.iter().filter_map(|fields| fields.first());
        let first: Vec<&str> = first.map(|field| IdentityField::parse(field).name).collect();
        let is_address = |field: &str| {
            first.contains(&field) && !looks_secret(field.rsplit(['.', ':']).next().unwrap_or(field))
        };
        for name in names {
            // A file that cannot be understood is reported by the binding itself.
            let Ok(identity) = identify(&profile.targets, (&key, &name), &fill, &locate) else {
                continue;
            };
            let values: Vec<String> = identity
                .fields
                .into_iter()
                .filter(|(field, _)| is_address(field))
                .flat_map(|(_, values)| values)
                .collect();
            let print = fingerprint(&values.join("\0"));
            found.push((TargetAddress { key: key.clone(), name, print }, values));
        }
    }
    found
}

/// Bound targets that have another address than when they were bound.
pub(super) fn moved_targets(profile: &Profile, room: &Path, bound: &AppliedBinding) -> Vec<Drift> {
    // Only an address that was there can move.
    let none = fingerprint("");
    let before = bound.addresses.iter().filter(|address| address.print != none);
    let before: Vec<&TargetAddress> = before.collect();
    if before.is_empty() {
        return Vec::new();
    }
    let now = current_addresses(profile, room, &bound.bindings);
    let moved = before.into_iter().filter_map(|before| {
        let is_same = |address: &TargetAddress| address.key == before.key && address.name == before.name;
        let (address, values) = now.iter().find(|(address, _)| is_same(address))?;
        // A missing target is the binding's to report.
        (address.print != before.print && !values.is_empty()).then(|| Drift {
            tool: profile.name.clone(),
            key: before.key.clone(),
            pinned: before.name.clone(),
            current: Some(values.join(" ")),
        })
    });
    moved.collect()
}

/// The drift of one tool's copies in a room.
pub(super) fn drift_of(profile: &Profile, room: &Path, bindings: &Bindings) -> Vec<Drift> {
    let Ok(said) = binding_values(profile, bindings) else { return Vec::new() };
    let mut copies: BTreeMap<&str, Option<Tree>> = BTreeMap::new();
    let mut drift = Vec::new();
    for (key, binding) in &profile.bind {
        let Some(value) = said.get(key).filter(|_| bindings.iter().any(|(name, _)| name == key)) else {
            continue;
        };
        for edit in &binding.edit {
            let copy = copies.entry(edit.file.as_str()).or_insert_with(|| load(room, edit));
            let Some(current) = drifted(room, edit, copy.as_mut(), value, &said) else { continue };
            let (tool, key, pinned) = (profile.name.clone(), key.clone(), value.clone());
            drift.push(Drift { tool, key, pinned, current });
            // One line for a key, however many places it is written to.
            break;
        }
    }
    drift
}

fn load(room: &Path, edit: &Edit) -> Option<Tree> {
    let path = room.join(&edit.file);
    let text = read_up_to(&path, LARGEST_UNDERSTOOD).ok()??;
    edit.format.read(&path, &text).ok()
}

/// The value in a copy, if it is not the pinned one.
fn drifted(
    room: &Path,
    edit: &Edit,
    copy: Option<&mut Tree>,
    value: &str,
    said: &BTreeMap<String, String>,
) -> Option<Option<String>> {
    let Some(copy) = copy else { return Some(None) };
    let fill = |text: &str| filled(text, value, said);
    let place = |template: &str| TreePath::parse(template, fill);
    if edit.require.as_deref().is_some_and(|required| !place(required).exists(copy)) {
        return Some(None);
    }
    let set = edit.place()?;
    let source = room.join(edit.source.as_deref().unwrap_or_default());
    let pinned = match (&edit.from, &edit.value) {
        _ if edit.source.is_some() => edit.source_value(&source, fill),
        (Some(from), _) => place(from).text(copy),
        (None, Some(template)) => Some(filled(template, value, said)),
        (None, None) => Some(value.to_owned()),
    };
    let current = place(set).text(copy).filter(|text| !text.is_empty());
    (current != pinned).then(|| match edit.source {
        Some(_) => edit.source_name(&source, &current?),
        None => current,
    })
}
