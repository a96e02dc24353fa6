//! Backup and restore of the state database.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::history::{record, settle};
use crate::state::State;
use crate::store::{BackupSnapshot, Store};

/// A backup that was checked and can be restored.
pub struct StateBackup {
    store: Store,
    snapshot: BackupSnapshot,
    path: PathBuf,
}

impl StateBackup {
    /// Reads a backup and checks that it can be restored here.
    pub fn read(state: &State, path: &Path) -> Result<Self> {
        let store = state.store_for_writing()?;
        let snapshot = store.open_copy(path)?;
        Ok(StateBackup { store, snapshot, path: path.to_owned() })
    }

    /// Replaces the state database by the backup, and records it. Returns the file that holds the replaced database.
    pub fn restore(mut self, state: &State) -> Result<PathBuf> {
        // What a killed process left half done is brought to an end while the history still knows of it.
        settle(state)?;
        let kept = self.store.restore(&self.snapshot, state.now_ms())?;
        drop(self.store);
        // A session that is back from the dead has no room any more.
        for session in state.sessions()?.list(None, true, usize::MAX)? {
            if !session.room().exists() {
                session.room().create(state.world(), true)?;
            }
        }
        let subject = self.path.display().to_string();
        record(state, "backup restore", &subject, "restore the database that was kept")?;
        Ok(kept)
    }
}

impl State {
    /// Copies the state database into a new file while others write; without a target, beside the database. Returns
    /// the path of the copy.
    pub fn back_up(&self, target: Option<&Path>) -> Result<PathBuf> {
        self.store_for_writing()?.back_up(target, self.now_ms())
    }
}
