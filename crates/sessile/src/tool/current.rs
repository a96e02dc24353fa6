//! Current targets: those that the user's own files and variables select, outside any session.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Result;
use crate::secrets::is_secret;
use crate::state::State;
use crate::tool::bind::filled;
use crate::tool::paths::Originals;
use crate::tool::profile::{Binding, Profile};
use crate::tool::protection::OriginalFiles;
use crate::tool::target::ToolSelection;

/// Most files that a selection is looked for in.
const MOST_FILES: usize = 16;

/// Bindings of a session with the targets that the tools use now, each `TOOL.KEY=VALUE`. Implicit targets and secrets
/// are left out.
pub fn current_bindings(state: &State) -> Result<Vec<String>> {
    let current = CurrentTargets {
        state,
        originals: Originals::of(state.app(), state.world()),
        files: OriginalFiles::of(state),
    };
    let mut all = Vec::new();
    for (profile, _) in state.tools().list()? {
        let found = current.of_tool(&profile);
        all.extend(found.into_iter().map(|(key, value)| format!("{}.{key}={value}", profile.name)));
    }
    Ok(all)
}

struct CurrentTargets<'a> {
    state: &'a State,
    originals: Originals,
    files: OriginalFiles<'a>,
}

impl CurrentTargets<'_> {
    fn of_tool(&self, profile: &Profile) -> Vec<(String, String)> {
        let defaults = profile.bind.iter().filter_map(|(key, one)| Some((key.clone(), one.default.clone()?)));
        let mut said: BTreeMap<String, String> = defaults.collect();
        let mut found: Vec<(String, String)> = Vec::new();
        // What other keys need comes first: their places depend on it.
        let mut keys: Vec<&(String, Binding)> =
            profile.bind.iter().filter(|(_, binding)| !binding.flag).collect();
        keys.sort_by_key(|(_, binding)| (binding.needs.len(), binding.default.is_none()));
        for (key, binding) in keys {
            let has = |needed: &String| found.iter().any(|(key, _)| key == needed);
            if !binding.needs.iter().all(has) {
                continue;
            }
            let value = self.variable(binding).or_else(|| self.selected(profile, key, &said));
            let is_usual = |value: &String| binding.default.as_ref() == Some(value);
            let Some(value) = value.filter(|value| !is_usual(value) && !is_secret(key, value)) else {
                continue;
            };
            said.insert(key.clone(), value.clone());
            found.push((key.clone(), value));
        }
        found
    }

    /// The value that a variable of the user selects.
    fn variable(&self, binding: &Binding) -> Option<String> {
        let mut selecting = binding.variables.iter().filter(|(_, text)| text == "{value}");
        let value = |name: &str| self.originals.get(self.state.world(), name)?.into_string().ok();
        selecting.find_map(|(name, _)| value(name).filter(|value| !value.is_empty()))
    }

    /// The value that the tool's files select. The first of several files that selects something counts.
    fn selected(&self, profile: &Profile, key: &str, said: &BTreeMap<String, String>) -> Option<String> {
        let fill = |text: &str| filled(text, "", said);
        (0..MOST_FILES).find_map(|at| {
            let locate = |file: &str| {
                let files = self.files.files_of(profile, file);
                // A path that does not exist selects nothing.
                files.into_iter().nth(at).unwrap_or_else(|| PathBuf::from("/dev/null/none"))
            };
            ToolSelection { profile, locate: &locate, fill: &fill }.named(key)
        })
    }
}
