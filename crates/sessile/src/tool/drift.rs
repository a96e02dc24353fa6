//! Drift: values in a session's copies that a command has moved away from what the context pinned.
//!
//! Only keys that a binding writes into a file can drift. A variable is set anew for every command.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::context::Bindings;
use crate::error::Result;
use crate::files::read_up_to;
use crate::session::Session;
use crate::state::State;
use crate::text::shown;
use crate::tool::bind::filled;
use crate::tool::binding::binding_values;
use crate::tool::plan::Plan;
use crate::tool::profile::{Edit, Profile};
use crate::tool::seed::LARGEST_UNDERSTOOD;
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
    /// What a command that pinned the value again reports.
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

/// The drift of a session that lives. Copies that nobody has touched since the last command are not opened.
pub fn drift(state: &State, session: &Session) -> Result<Vec<Drift>> {
    let room = session.room().dir();
    let plan = Plan::load(room)?;
    let mut drift = Vec::new();
    // Unchanged stamps mean unchanged files, and reading them is the expensive part.
    for bound in plan.bound.iter().filter(|bound| !bound.holds(&bound.bindings)) {
        // The profile may be gone with its project.
        let Ok((profile, _)) = state.tools().get(&bound.tool) else { continue };
        drift.extend(drift_of(&profile, room, &bound.bindings));
    }
    Ok(drift)
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
