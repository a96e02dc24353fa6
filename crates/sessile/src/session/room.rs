//! A session's room: its private directory, and the kernel lock that says whether something runs in it.
//!
//! A process in a session holds a shared lock on the room's `lock` file through an inherited descriptor, and has a
//! record in `running/`. Removing the room requires the exclusive lock, so it fails while anything runs. The content of
//! `lock` is the time of the last use on both clocks, so that using a session writes no row.
//!
//! | entry | content |
//! |---|---|
//! | `lock`, `running/` | as above |
//! | `watch` | locked by the process that watches the room while something runs in it (`session::watch`) |
//! | `plan.json` | tools with their variables; bindings with stamps of the files they depend on (`tool::plan`) |
//! | `copies.json` | copies with their sources, and digests of both; never read on the path of a command |
//! | directories of tools | the copies, at the place that a profile's `to` names |
//! | `xdg/config/` | links to the user's settings with copies among them, for tools that only `XDG_CONFIG_HOME` moves |
//! | `home/` | the same for the home directory, at isolation level `home` |
//! | `work.json` | directories that the session added to working directories, so that they are removed with it |
//! | `shell/` | start-up files of shells (`run::shell`) |
//! | `deliveries/` | locked while a message is delivered to an agent (`conversation::delivery`) |
//! | a link | to the directory of sockets, whose path must be short; it is removed with the room |

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::error::{Error, Result, SessionError};
use crate::files::{NO_FOLLOW, check_private, check_private_path, create_dir};
use crate::process::ProcessId;
use crate::session::SessionId;
use crate::session::sockets;
use crate::world::World;

/// One in so many commands looks for records of those that have ended.
// By pid, which needs no counter; looking at every record in each command would cost more than it saves.
const PRUNE_EVERY: i32 = 32;

/// A session's private directory.
#[derive(Clone, Debug)]
pub struct Room {
    dir: PathBuf,
}

/// Process that runs in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningProcess {
    /// The process.
    pub process: ProcessId,
    /// The program's name; arguments may be secret.
    pub program: String,
}

impl RunningProcess {
    /// Record of this process, which runs a command or becomes it.
    pub fn own(words: &[OsString]) -> Self {
        let program = words.first().map(|word| Path::new(word).file_name().unwrap_or(word));
        RunningProcess {
            // A process that cannot be identified leaves a record that counts as ended.
            process: ProcessId::own().unwrap_or(ProcessId { pid: 0, started: 0, boot: String::new() }),
            program: program.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        }
    }
}

/// The shared lock of something that runs. It lasts as long as any process has the descriptor.
#[derive(Debug)]
pub struct Presence {
    lock: Option<File>,
    record: PathBuf,
    room: Room,
    world: World,
}

impl Room {
    /// The room of a session below the state directory.
    pub fn of(state_dir: &Path, id: &SessionId) -> Self {
        Room { dir: state_dir.join("rooms").join(id.as_str()) }
    }

    /// A room at a directory.
    pub(super) fn at(dir: PathBuf) -> Self {
        Room { dir }
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes it, with the mark of a first use. Returns its lock, held for the caller.
    pub fn create(&self, world: &World) -> Result<File> {
        let path = self.lock_path();
        // `session gc` in another process may remove a room that is not locked yet.
        for _ in 0..10 {
            create_dir(&self.dir, 0o700)?;
            self.check_rooms()?;
            let lock = self.mark(world, true).and_then(|()| {
                let lock = self.open_lock()?;
                // Shared, like the lock of a command: `session gc` needs it exclusively.
                lock.lock_shared().map_err(|error| Error::io("lock", &path, error))?;
                Ok(lock)
            });
            // Before it was locked it may have been swept up.
            if path.exists() {
                return lock;
            }
        }
        Err(Error::io("make", &self.dir, std::io::ErrorKind::NotFound.into()))
    }

    /// Fails if others could replace rooms in the directory of all rooms.
    fn check_rooms(&self) -> Result<()> {
        self.dir.parent().map_or(Ok(()), check_private_path)
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    /// Marks a use, now. Only this mark may be lost in a crash.
    pub fn touch(&self, world: &World) -> Result<()> {
        self.mark(world, false)
    }

    fn mark(&self, world: &World, create: bool) -> Result<()> {
        let Moment { wall_ms, boot, boot_ms, .. } = Moment::now(world);
        let path = self.lock_path();
        // In place and short: the lock is on this very file, so it cannot be replaced by another.
        // And never made anew, or who removes the room would find it full again.
        let mut file = OpenOptions::new()
            .write(true)
            .create(create)
            .truncate(false)
            .mode(0o600)
            .custom_flags(NO_FOLLOW)
            .open(&path)
            .map_err(|error| Error::io("write", &path, error))?;
        // Fixed width: a later mark overwrites an earlier one completely, without truncating the file.
        let mark = format!("{wall_ms:020} {boot_ms:020} {boot}\n");
        file.write_all(mark.as_bytes()).map_err(|error| Error::io("write", path, error))
    }

    /// Time of the last use.
    pub fn last_use(&self) -> Option<Moment> {
        let mut text = String::with_capacity(256);
        // The file may have been replaced by anything; a mark is shorter than this.
        self.open_lock().ok()?.take(200).read_to_string(&mut text).ok()?;
        let mut words = text.split_ascii_whitespace();
        let (wall, boot_ms) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Moment {
            wall_ms: wall,
            boot_ms,
            // Only the age of a session counts without suspension, never its idle time.
            awake_ms: boot_ms,
            boot: words.next().unwrap_or_default().to_owned(),
        })
    }

    /// Whether something runs in it.
    pub fn is_busy(&self) -> bool {
        // An error is not taken for busy: a room whose lock file is gone would otherwise be kept for ever.
        matches!(self.try_alone(), Ok(None))
    }

    /// Takes the room for oneself, if nothing runs in it.
    #[expect(clippy::disallowed_methods, reason = "a room is asked once and never waited for")]
    pub fn try_alone(&self) -> Result<Option<File>> {
        let path = self.lock_path();
        let file = self.open_lock()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", path, error)),
        }
    }

    /// Keeps it busy as long as the result lasts, without a record: for work within this process.
    pub fn keep_busy(&self, world: &World) -> Result<File> {
        // Before the lock: `touch` fails for a room that is gone, without creating it anew.
        self.touch(world)?;
        let path = self.lock_path();
        let lock = self.open_lock()?;
        lock.lock_shared().map_err(|error| Error::io("lock", &path, error))?;
        Ok(lock)
    }

    /// Enters it: takes the shared lock and leaves a record of the process that runs.
    pub fn enter(&self, world: &World, running: &RunningProcess) -> Result<Presence> {
        // Nothing is written through a link in its place.
        if let Ok(found) = self.dir.symlink_metadata() {
            if !found.is_dir() {
                let reason = "it is not a directory";
                return Err(SessionError::UnsafeRoom { path: self.dir.clone(), reason }.into());
            }
            if check_private(&self.dir, &found).is_err() {
                let is_open = found.mode() & 0o022 != 0;
                let reason = if is_open { "other users can write in it" } else { "another user owns it" };
                return Err(SessionError::UnsafeRoom { path: self.dir.clone(), reason }.into());
            }
        }
        self.check_rooms()?;
        self.touch(world)?;
        let path = self.lock_path();
        let lock = self.open_lock()?;
        match lock.try_lock_shared() {
            Ok(()) => {}
            // Held exclusively for a moment by someone who looks whether it is free, or for good by who removes it.
            Err(_) => lock.lock_shared().map_err(|error| Error::io("lock", &path, error))?,
        }
        // The lock may have been that of a room that was removed during the wait.
        if !self.lock_path().exists() {
            return Err(Error::io("enter", &self.dir, std::io::ErrorKind::NotFound.into()));
        }
        let dir = self.running_dir();
        if !dir.is_dir() {
            // A record is worth nothing after a crash, so its directory need not survive one.
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&dir)
                .map_err(|error| Error::io("make directory", &dir, error))?;
        } else if running.process.pid % PRUNE_EVERY == 0 {
            self.prune();
        }
        // One file per pid: no lock is needed, and a recycled pid overwrites the stale record.
        let record = dir.join(running.process.pid.to_string());
        let text = serde_json::to_string(running).unwrap_or_default();
        let write = |path: &Path| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .custom_flags(NO_FOLLOW)
                .open(path)?;
            file.write_all(text.as_bytes())
        };
        write(&record).map_err(|error| Error::io("write", &record, error))?;
        Ok(Presence { lock: Some(lock), record, room: self.clone(), world: world.clone() })
    }

    /// Processes that run in the room: by its records, else the holders of its lock.
    pub fn running(&self) -> Vec<RunningProcess> {
        let mut running: Vec<RunningProcess> =
            self.records().into_iter().filter(|found| found.process.is_alive()).collect();
        // Children can outlive the recorded process; then the lock's descriptor still shows who they are.
        if running.is_empty() && self.is_busy() {
            running.extend(self.holders().into_iter().filter_map(|pid| {
                let program =
                    crate::process::read_kernel_file(&format!("/proc/{pid}/comm")).unwrap_or_default();
                Some(RunningProcess { process: ProcessId::of(pid)?, program: program.trim().to_owned() })
            }));
        }
        running.sort_by_key(|found| found.process.pid);
        running
    }

    /// Whether a recorded process runs in it. Takes no lock.
    pub(super) fn has_running_record(&self) -> bool {
        self.records().iter().any(|found| found.process.is_alive())
    }

    /// Whether something has run in it and left, with nobody having noticed yet.
    pub fn was_left(&self) -> bool {
        let has_records = || std::fs::read_dir(self.running_dir()).is_ok_and(|mut dir| dir.next().is_some());
        !self.is_busy() && has_records()
    }

    /// Starts the idle time now, for a room that was left without anyone noticing.
    #[expect(clippy::disallowed_methods, reason = "a record is worth nothing once nothing runs any more")]
    pub fn notice_leaving(&self, world: &World) -> Result<()> {
        self.touch(world)?;
        // Nobody is in it, so nobody's record is of use.
        for entry in std::fs::read_dir(self.running_dir()).into_iter().flatten().flatten() {
            let _ = std::fs::remove_file(entry.path());
        }
        Ok(())
    }

    /// Removes the records of processes that have ended.
    #[expect(clippy::disallowed_methods, reason = "a record is worth nothing once nothing runs any more")]
    fn prune(&self) {
        for entry in std::fs::read_dir(self.running_dir()).into_iter().flatten().flatten() {
            let path = entry.path();
            let text = crate::files::read(&path).ok().flatten().unwrap_or_default();
            let is_alive =
                serde_json::from_str::<RunningProcess>(&text).is_ok_and(|found| found.process.is_alive());
            if !is_alive {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Processes that have the room's lock open, including children that outlived the recorded ones.
    pub fn holders(&self) -> Vec<i32> {
        holders_of(&self.lock_path())
    }

    /// Every process whose environment says that it belongs to the session: also those that let go of the lock, such
    /// as what a tool left in the background.
    pub fn marked(&self) -> Vec<i32> {
        self.dir
            .file_name()
            .and_then(|id| id.to_str())
            // The end of the variable's name only: an application that embeds the library has a prefix of its
            // own.
            .map(|id| marked_with(&format!("_SESSION={id}")))
            .unwrap_or_default()
    }

    /// Whether something on a terminal belongs to the session without holding the lock, in a terminal multiplexer for
    /// example. What tools leave in the background has no terminal, and does not keep a session.
    pub fn is_looked_at(&self) -> bool {
        !self.hooked_shells().is_empty() || self.marked().into_iter().any(crate::process::has_terminal)
    }

    /// Live shells that the hook brought into the session.
    pub(crate) fn hooked_shells(&self) -> Vec<i32> {
        let state_dir = self.dir.parent().and_then(Path::parent);
        let id = self.dir.file_name().and_then(|id| id.to_str());
        state_dir.zip(id).map(|(dir, id)| crate::hook::live_shells(dir, id)).unwrap_or_default()
    }

    /// Makes a directory the one of the session's sockets, which goes with the room.
    pub(crate) fn claim_sockets(&self, dir: &Path) -> Result<()> {
        sockets::claim(&self.dir, dir)
    }

    /// Removes it. The caller has it alone, or is the only one in it.
    pub fn remove(&self, world: &World) -> Result<()> {
        // New work is moved out first; if that fails, the room stays.
        crate::tool::salvage(&self.dir, world)?;
        // Before the room, which holds the link that leads to them.
        sockets::remove(&self.dir);
        let removed = std::fs::remove_dir_all(&self.dir);
        let removed = match removed {
            // Some tools write-protect the directories they fill.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                make_writable(&self.dir);
                std::fs::remove_dir_all(&self.dir)
            }
            removed => removed,
        };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &self.dir, error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the remains of a room whose creation or removal was interrupted.
    pub fn remove_remains(&self, world: &World) {
        // A room is made within moments. One without a lock file that is a minute old has nobody who makes
        // it.
        const SURELY_OVER: std::time::Duration = std::time::Duration::from_secs(60);
        let age =
            self.dir.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        // One that is just being made is empty for a moment, and is then made again.
        let emptied = std::fs::remove_dir(&self.dir).is_ok();
        if !emptied && age.is_some_and(|age| age > SURELY_OVER) {
            let _ = self.remove(world);
        }
    }

    fn records(&self) -> Vec<RunningProcess> {
        let Ok(entries) = std::fs::read_dir(self.running_dir()) else { return Vec::new() };
        entries
            .filter_map(|entry| {
                let text = crate::files::read(&entry.ok()?.path()).ok()??;
                serde_json::from_str(&text).ok()
            })
            .collect()
    }

    fn running_dir(&self) -> PathBuf {
        self.dir.join("running")
    }

    fn lock_path(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// Opens the lock file for reading. A link in its place is an error.
    fn open_lock(&self) -> Result<File> {
        let path = self.lock_path();
        let opened = OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(&path);
        opened.map_err(|error| Error::io("open", path, error))
    }
}

impl Presence {
    /// The descriptor that a child must inherit to keep the session busy.
    pub fn descriptor(&self) -> Option<&File> {
        self.lock.as_ref()
    }
}

impl Drop for Presence {
    #[expect(clippy::disallowed_methods, reason = "a record is worth nothing once nothing runs any more")]
    fn drop(&mut self) {
        // The idle time starts when the last one leaves. If others are left, children of this one maybe, the record
        // stays: whoever first finds the room empty sees by it that it was left.
        drop(self.lock.take());
        if let Ok(Some(_alone)) = self.room.try_alone() {
            // Dropping cannot fail, and the session merely counts as used a little earlier.
            let _ = self.room.touch(&self.world);
            let _ = std::fs::remove_file(&self.record);
        }
    }
}

/// Makes every directory below one writable for its owner.
fn make_writable(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    // The mode of a link is the mode of its target, which is not the room's.
    if dir.is_symlink() {
        return;
    }
    let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}

#[cfg(target_os = "linux")]
pub(super) fn marked_with(mark: &str) -> Vec<i32> {
    let is_marked = |pid: &i32| {
        let mut bytes = Vec::new();
        let read = File::open(format!("/proc/{pid}/environ"))
            // More than Linux gives a process for its environment by default (a quarter of an 8 MiB stack).
            .and_then(|file| file.take(1 << 22).read_to_end(&mut bytes));
        read.is_ok() && bytes.split(|byte| *byte == 0).any(|variable| variable.ends_with(mark.as_bytes()))
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_marked).collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn marked_with(_mark: &str) -> Vec<i32> {
    Vec::new()
}

#[cfg(target_os = "linux")]
fn holders_of(path: &Path) -> Vec<i32> {
    use std::os::unix::fs::MetadataExt;
    let Ok(lock) = path.metadata() else { return Vec::new() };
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let has_it = |pid: i32| {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors.into_iter().any(|entry| {
            let is_lock = entry
                .path()
                .metadata()
                // By inode: the path in `/proc/PID/fd` may be that of another mount namespace.
                .is_ok_and(|found| (found.dev(), found.ino()) == (lock.dev(), lock.ino()));
            is_lock && is_inherited(pid, &entry.file_name().to_string_lossy())
        })
    };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| has_it(*pid))
        .collect()
}

/// Whether a descriptor is one that programs inherit. Who only looks whether the room is free has one of its own for
/// a moment, which no program inherits, and does not run in it.
#[cfg(target_os = "linux")]
fn is_inherited(pid: i32, descriptor: &str) -> bool {
    // O_CLOEXEC in octal, as `fdinfo` prints the flags.
    const CLOSED_ON_EXEC: u32 = 0o2_000_000;
    let info =
        crate::process::read_kernel_file(&format!("/proc/{pid}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & CLOSED_ON_EXEC == 0)
}

#[cfg(not(target_os = "linux"))]
fn holders_of(_path: &Path) -> Vec<i32> {
    Vec::new()
}
