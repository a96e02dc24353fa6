//! The state directory beside a `--config` file: the lock of the calls that write to it, and its removal.
//!
//! `FILE.state/` is removed with its last session, if nothing else is left in it. A call that writes holds a shared
//! kernel lock on a file in the directory until it ends. The call that removes the directory takes that lock
//! exclusively, so no call writes to an unlinked store. A call that waited for the lock creates the directory again
//! if the file is missing.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::files::NO_FOLLOW;
use crate::state::State;

/// File that calls lock.
const CALLS: &str = "calls";

/// Files of a state directory that hold nothing once its store is vacant. The store is removed before the lock.
const OWN_FILES: [&str; 4] = ["state.db-shm", "state.db-wal", "state.db", CALLS];
/// Directories that hold nothing then, if they are empty.
const OWN_DIRS: [&str; 2] = ["rooms", crate::conversation::DELIVERIES];

/// Lock of a call on the state directory beside a file. Copies of the call share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallLock {
    held: Arc<OnceLock<File>>,
}

impl CallLock {
    /// Takes the lock, shared. Returns `false` if the directory was removed meanwhile.
    pub(crate) fn share(&self, dir: &Path) -> Result<bool> {
        if self.held.get().is_some() {
            return Ok(true);
        }
        let path = dir.join(CALLS);
        let fail = |error| Error::io("lock", &path, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_FOLLOW);
        let file = match options.open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(fail)?,
        };
        file.lock_shared().map_err(fail)?;
        let held = file.metadata().map_err(fail)?;
        let is_held = |found: std::fs::Metadata| found.ino() == held.ino() && found.dev() == held.dev();
        Ok(path.symlink_metadata().is_ok_and(is_held) && self.held.set(file).is_ok())
    }

    /// Takes the lock for this call alone. Returns `false` if another call has it, and gives up the shared lock.
    #[expect(clippy::disallowed_methods, reason = "the directory stays if another call holds the lock")]
    fn try_alone(&self) -> bool {
        // The last of several calls that end at once must find the others' locks gone.
        self.held.get().is_some_and(|file| file.unlock().is_ok() && file.try_lock().is_ok())
    }
}

impl State {
    /// Removes the state directory beside a `--config` file if its last session has ended and nothing else is left in it. The last
    /// step of a call: the state is not used afterwards.
    pub fn remove_vacant_state(&self) -> Result<()> {
        let Some(lock) = self.dirs().call_lock() else { return Ok(()) };
        let dir = self.dirs().state()?;
        if !has_only_own(dir) || !lock.try_alone() {
            return Ok(());
        }
        // Opened under the lock: a call that ended a moment ago may have started a session.
        match self.fresh_store()? {
            Some(store) if store.is_vacant()? && has_only_own(dir) => remove(dir),
            _ => Ok(()),
        }
    }
}

/// Whether a state directory holds a store and nothing beside it.
fn has_only_own(dir: &Path) -> bool {
    let is_own = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let is_empty = || std::fs::read_dir(entry.path()).is_ok_and(|mut rooms| rooms.next().is_none());
        OWN_FILES.iter().any(|own| name == *own) || (OWN_DIRS.iter().any(|own| name == *own) && is_empty())
    };
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(is_own)))
}

#[expect(clippy::disallowed_methods, reason = "the directory has no more data, so its removal needs no sync")]
fn remove(dir: &Path) -> Result<()> {
    for name in OWN_DIRS {
        let _ = std::fs::remove_dir(dir.join(name));
    }
    for name in OWN_FILES {
        let _ = std::fs::remove_file(dir.join(name));
    }
    std::fs::remove_dir(dir).map_err(|error| Error::io("remove", dir, error))
}
