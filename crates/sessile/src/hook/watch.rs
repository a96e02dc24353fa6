//! Files that a hooked shell compares with its stamp, instead of starting a process at every prompt.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::call::ConfigSource;
use crate::error::{Error, Result};
use crate::hook::HookedShell;
use crate::state::State;

/// Maximum time between two checks of a shell, in seconds. The session's idle time counts from the last check.
const LONGEST: u64 = 300;

/// Maximum time between two checks with a valid approval, in seconds: it may be revoked or expire.
const LONGEST_APPROVED: u64 = 10;

/// The kernel's clock for files lags behind by up to a tick of 10 ms.
const CLOCK_LAG: Duration = Duration::from_millis(20);

/// Conditions under which nothing has changed for a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// File that is as old as the last look.
    pub stamp: PathBuf,
    /// Files that must not be newer than the stamp.
    pub files: Vec<PathBuf>,
    /// Files that must exist.
    pub present: Vec<PathBuf>,
    /// Files that must not exist.
    pub absent: Vec<PathBuf>,
    /// Value that the variable of the context must have.
    pub context: String,
    /// Seconds since the start of the machine until which that holds.
    pub deadline: u64,
}

impl Watch {
    /// Watch of what a selection depends on: from a time since boot on, for the time that the session and its approval have left.
    pub(super) fn of(
        outside: &State,
        stamp: PathBuf,
        pid: i32,
        room: Option<&Path>,
        is_approved: bool,
        (begun, left): (Duration, Option<Duration>),
    ) -> Result<Self> {
        let dirs = outside.dirs();
        let store = dirs.store()?;
        let log = PathBuf::from(format!("{}-wal", store.display()));
        let mut files = vec![store, log];
        let mut absent = vec![HookedShell::request_path(outside, pid)?];
        match outside.source() {
            ConfigSource::File(file) => files.push(file.clone()),
            ConfigSource::Nothing => {}
            ConfigSource::Usual => {
                files.extend(dirs.user_settings());
                files.push(dirs.system_settings());
                files.extend(dirs.config().ok().map(|dir| dir.join("contexts")));
                if let Some(project) = outside.project() {
                    files.extend([project.local_settings(), project.settings(), project.contexts()]);
                }
                let root = outside.project().map(|project| project.root().to_owned());
                let name = format!(".{}", outside.app().name());
                let above = outside.world().cwd().into_iter().flat_map(Path::ancestors);
                let nearer = above.take_while(|dir| Some(*dir) != root.as_deref());
                absent.extend(nearer.map(|dir| dir.join(&name)));
            }
        }
        if let Ok(Some(context)) = outside.context() {
            files.push(context.path().to_owned());
        }
        // State directories of other users, which do not count, are there already.
        absent.retain(|path| path.symlink_metadata().is_err());
        let mut present: Vec<PathBuf> = files.iter().filter(|path| path.exists()).cloned().collect();
        // The log comes and goes with each writer.
        present.retain(|path| !path.as_os_str().as_encoded_bytes().ends_with(b"-wal"));
        present.extend(room.map(|room| room.join("lock")));
        let longest = Duration::from_secs(if is_approved { LONGEST_APPROVED } else { LONGEST });
        let wait = left.map_or(longest, |left| left.min(longest));
        // A shell reads whole seconds, so in the last one before the end each prompt starts the program.
        let deadline = (begun + wait).as_secs();
        let context = outside.world().variable(&outside.app().variable("CONTEXT"));
        let context = context.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Watch { stamp, files, present, absent, context, deadline })
    }

    /// Sets the stamp to the start of a check, so that later writes are newer.
    pub(super) fn set_stamp(stamp: &Path, begun: jiff::Timestamp) -> Result<()> {
        let begun = Duration::from_millis(begun.as_millisecond().max(0).unsigned_abs());
        let times = std::fs::FileTimes::new().set_modified(UNIX_EPOCH + begun.saturating_sub(CLOCK_LAG));
        let set = std::fs::OpenOptions::new().append(true).open(stamp).and_then(|file| file.set_times(times));
        set.map_err(|error| Error::io("write", stamp, error))
    }
}
