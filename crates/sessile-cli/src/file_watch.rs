//! Watching the files of the state. The kernel reports changes, so that nothing is polled.
//!
//! Other systems than Linux report none: a caller looks again after a time of its own in any case, because a session expires
//! without a change of any file.

use std::path::{Path, PathBuf};

use sessile::State;
use sessile::settings::project::Project;

/// Directories whose files are watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedDirs {
    state: Option<PathBuf>,
    /// Directories of settings and contexts, of the user and of the project. They may be created later.
    settings: Vec<PathBuf>,
}

impl WatchedDirs {
    pub(crate) fn of(state: &State) -> Self {
        let dirs = state.dirs();
        let mut settings: Vec<PathBuf> = Vec::new();
        settings.extend(dirs.config().ok().map(Path::to_owned));
        let missing = || Some(Project::at(state.app(), state.world(), state.world().cwd()?));
        let project = state.project().cloned().or_else(missing);
        settings.extend(project.map(|project| project.dir().to_owned()));
        let contexts: Vec<PathBuf> = settings.iter().map(|dir| dir.join("contexts")).collect();
        settings.extend(contexts);
        WatchedDirs { state: dirs.state().ok().map(Path::to_owned), settings }
    }
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    /// Store, settings, contexts or approval requests.
    State,
    /// A room that is followed, by its directory.
    Room(PathBuf),
}

/// Watch of the state's files, and of the rooms that are followed.
#[derive(Debug)]
pub(crate) struct FileWatch {
    #[cfg(target_os = "linux")]
    watches: std::sync::Arc<linux::Watches>,
    /// Followed rooms with their watches.
    #[cfg(target_os = "linux")]
    rooms: std::collections::HashMap<PathBuf, Vec<i32>>,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use rustix::fs::inotify::{self, ReadFlags, WatchFlags};

    use super::{FileChange, FileWatch, WatchedDirs};

    /// Files of the state directory whose changes count. Readers replace others beside them, and would wake themselves endlessly.
    const STATE_FILES: [&[u8]; 3] = [b"state.db", b"state.db-wal", b"requests.json"];

    /// Changes in a directory of settings that count.
    const SETTINGS: WatchFlags = WatchFlags::CLOSE_WRITE
        .union(WatchFlags::MOVED_TO)
        .union(WatchFlags::MOVED_FROM)
        .union(WatchFlags::DELETE)
        .union(WatchFlags::CREATE);

    /// Purpose of a watch.
    #[derive(Clone, Debug)]
    enum WatchPurpose {
        State,
        Settings,
        /// Directory above one that does not exist yet.
        Above,
        Room(PathBuf),
    }

    /// Watches of the kernel with their purposes.
    #[derive(Debug)]
    pub(super) struct Watches {
        kernel: OwnedFd,
        dirs: WatchedDirs,
        table: Mutex<HashMap<i32, WatchPurpose>>,
    }

    impl Watches {
        fn table(&self) -> MutexGuard<'_, HashMap<i32, WatchPurpose>> {
            self.table.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn add(&self, dir: &Path, flags: WatchFlags, watched: WatchPurpose) -> Option<i32> {
            // The table is locked first, so that the reader finds the purpose of the first event.
            let mut table = self.table();
            let watch = inotify::add_watch(&self.kernel, dir, flags | WatchFlags::MASK_ADD).ok()?;
            let entry = table.entry(watch).or_insert_with(|| watched.clone());
            // One directory can be above several others. Settings count more than what is below them.
            if matches!(entry, WatchPurpose::Above) {
                *entry = watched;
            }
            Some(watch)
        }

        /// Watches the directories of settings, and for each that is missing the nearest one above it.
        fn add_settings(&self) {
            let created = WatchFlags::CREATE | WatchFlags::MOVED_TO;
            // Twice: a directory may be created between the two watches of one pass, and is then not reported.
            for dir in self.dirs.settings.iter().chain(&self.dirs.settings) {
                if self.add(dir, SETTINGS, WatchPurpose::Settings).is_none() {
                    let mut above = dir.ancestors().skip(1);
                    above.find(|above| self.add(above, created, WatchPurpose::Above).is_some());
                }
            }
        }

        /// Whether an entry of a directory is, or leads to, a directory of settings.
        fn leads_to_settings(&self, name: Option<&std::ffi::CStr>) -> bool {
            let name = name.map(std::ffi::CStr::to_bytes);
            let is_named = |part: std::path::Component<'_>| Some(part.as_os_str().as_encoded_bytes()) == name;
            self.dirs.settings.iter().any(|dir| dir.components().any(is_named))
        }

        /// Change that an event means.
        fn change(&self, event: &inotify::Event<'_>) -> Option<FileChange> {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                return Some(FileChange::State);
            }
            let is_gone = event.events().contains(ReadFlags::IGNORED);
            let watched = match is_gone {
                true => self.table().remove(&event.wd())?,
                false => self.table().get(&event.wd()).cloned()?,
            };
            match watched {
                WatchPurpose::Room(_) if is_gone => None,
                WatchPurpose::Room(room) => Some(FileChange::Room(room)),
                WatchPurpose::State => {
                    let name = event.file_name().map(std::ffi::CStr::to_bytes);
                    name.is_some_and(|name| STATE_FILES.contains(&name)).then_some(FileChange::State)
                }
                WatchPurpose::Above if !is_gone && !self.leads_to_settings(event.file_name()) => None,
                WatchPurpose::Above | WatchPurpose::Settings => {
                    if is_gone || event.events().contains(ReadFlags::ISDIR) {
                        self.add_settings();
                    }
                    Some(FileChange::State)
                }
            }
        }
    }

    impl FileWatch {
        /// Calls `report` after each change. `None` while the state directory does not exist.
        pub(crate) fn start(
            dirs: &WatchedDirs,
            mut report: impl FnMut(FileChange) + Send + 'static,
        ) -> Option<Self> {
            let kernel = inotify::init(inotify::CreateFlags::CLOEXEC).ok()?;
            let watches = Watches { kernel, dirs: dirs.clone(), table: Mutex::default() };
            watches.add(
                dirs.state.as_ref()?,
                WatchFlags::MODIFY | WatchFlags::MOVED_TO,
                WatchPurpose::State,
            )?;
            watches.add_settings();
            let watches = Arc::new(watches);
            let own = Arc::clone(&watches);
            let watcher = std::thread::Builder::new().name("files".to_owned()).spawn(move || {
                let mut buffer = vec![std::mem::MaybeUninit::uninit(); 16 * 1024];
                let mut events = inotify::Reader::new(&own.kernel, &mut buffer);
                while let Ok(event) = events.next() {
                    if let Some(change) = own.change(&event) {
                        report(change);
                    }
                }
            });
            watcher.ok()?;
            Some(FileWatch { watches, rooms: HashMap::new() })
        }

        /// Follows what starts and ends in these rooms, and no longer in others. Returns the rooms that were not followed before.
        pub(crate) fn follow_rooms(&mut self, rooms: &[PathBuf]) -> Vec<PathBuf> {
            let wanted: HashSet<&PathBuf> = rooms.iter().collect();
            let watches = &self.watches;
            self.rooms.retain(|room, of_room| {
                let is_wanted = wanted.contains(room);
                if !is_wanted {
                    for watch in of_room {
                        // The kernel has removed the watch of a directory that is gone.
                        let _ = inotify::remove_watch(&watches.kernel, *watch);
                    }
                }
                is_wanted
            });
            let new: Vec<PathBuf> =
                rooms.iter().filter(|room| !self.rooms.contains_key(*room)).cloned().collect();
            for room in &new {
                self.rooms.insert(room.clone(), Vec::new());
                self.renew_room(room);
            }
            new
        }

        /// Watches the directory of records of a room: the first command creates it. Later commands reuse a record.
        pub(crate) fn renew_room(&mut self, room: &Path) {
            let Some(of_room) = self.rooms.get_mut(room).filter(|of_room| of_room.len() < 2) else { return };
            let records = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MODIFY | WatchFlags::MOVED_TO;
            let add = |dir: &Path, flags| self.watches.add(dir, flags, WatchPurpose::Room(room.to_owned()));
            of_room.clear();
            // The room first: it reports a directory of records that is created meanwhile.
            of_room.extend(add(room, WatchFlags::MODIFY | WatchFlags::CREATE));
            of_room.extend(add(&room.join("running"), records));
        }

        /// Number of rooms that are watched.
        pub(crate) fn count(&self) -> usize {
            self.rooms.values().filter(|of_room| !of_room.is_empty()).count()
        }

        /// Whether a room is watched.
        pub(crate) fn follows(&self, room: &Path) -> bool {
            self.rooms.get(room).is_some_and(|of_room| !of_room.is_empty())
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl FileWatch {
    /// This system reports no changes.
    pub(crate) fn start(
        _dirs: &WatchedDirs,
        _report: impl FnMut(FileChange) + Send + 'static,
    ) -> Option<Self> {
        None
    }

    /// This system reports no changes.
    pub(crate) fn follow_rooms(&mut self, _rooms: &[PathBuf]) -> Vec<PathBuf> {
        Vec::new()
    }

    /// This system reports no changes.
    pub(crate) fn renew_room(&mut self, _room: &Path) {}

    /// This system reports no changes.
    pub(crate) fn count(&self) -> usize {
        0
    }

    /// This system reports no changes.
    pub(crate) fn follows(&self, _room: &Path) -> bool {
        false
    }
}
