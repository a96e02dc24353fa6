//! Record of a set-up: the inserted texts and their places, to revert them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sessile::files::LockedDir;
use sessile::{Error, State};

use super::change::{SetupChange, SetupPart};

/// Directory of the records, in the state directory.
const DIR: &str = "setup";

/// Changes of one agent's set-up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SetupRecord {
    pub(super) changes: Vec<SetupChange>,
}

impl SetupRecord {
    fn path(state: &State, agent: &str) -> Result<PathBuf, Error> {
        Ok(state.dirs().state()?.join(DIR).join(format!("{agent}.json")))
    }

    /// The record of an agent. One that cannot be read counts as none: the state directory is the user's own.
    pub(super) fn load(state: &State, agent: &str) -> Result<Option<Self>, Error> {
        let text = sessile::files::read(&Self::path(state, agent)?)?;
        Ok(text.and_then(|text| sessile::json::from_str(&text).ok()))
    }

    /// The changes of parts that are chosen, and the others.
    pub(super) fn split(self, is_chosen: impl Fn(SetupPart) -> bool) -> (Self, Self) {
        let (chosen, others) = self.changes.into_iter().partition(|change| is_chosen(change.part));
        (SetupRecord { changes: chosen }, SetupRecord { changes: others })
    }

    /// Adopts directories that another change created and that contain files of this record. Returns whether any
    /// exist.
    pub(super) fn adopt_dirs(&mut self, dirs: &[PathBuf]) -> bool {
        let mut is_changed = false;
        for change in &mut self.changes {
            let above: Vec<PathBuf> =
                dirs.iter().filter(|dir| change.path.starts_with(dir)).cloned().collect();
            let new: Vec<PathBuf> = above.into_iter().filter(|dir| !change.new_dirs.contains(dir)).collect();
            is_changed |= !new.is_empty();
            change.new_dirs.splice(0..0, new);
        }
        is_changed
    }

    /// Keeps the record, or removes it if nothing is in it.
    pub(super) fn save(&self, state: &State, agent: &str) -> Result<(), Error> {
        let path = Self::path(state, agent)?;
        state.dirs().state_for_writing()?;
        let (dir, name) = LockedDir::of_file(&state.locker()?, &path, 0o700)?;
        if self.changes.is_empty() {
            return dir.remove(&name).map(drop);
        }
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        dir.replace(&name, &format!("{text}\n"), 0o600)
    }
}
