//! A session's room: its private directory, and the kernel lock that says whether something runs in it.
//!
//! A process in a session holds a shared lock on the room's `lock` file through an inherited descriptor, and has a
//! record in `running/`. Removing the room requires the exclusive lock, so it fails while anything runs. The content of
//! `lock` is the time of the last use on both clocks, so that using a session writes no row.
//!
//! | entry | content |
//! |---|---|
//! | `lock`, `running/` | as above; one record of a command that has ended is kept in `running/spare` for the next |
//! | `watch` | locked by the process that watches the room while something runs in it (`session::watch`) |
//! | `commands.jsonl` | commands that were started in it (`session::command_log`) |
//! | `output/` | copies of the output of commands that were run with `--log` (`session::output_log`) |
//! | `plan.json` | tools with their variables; bindings with stamps of the files they depend on (`tool::plan`) |
//! | `copies.json` | copies with their sources, and digests of both; never read on the path of a command |
//! | directories of tools | the copies, at the place that a profile's `to` names |
//! | `xdg/config/` | links to the user's settings with copies among them, for tools that only `XDG_CONFIG_HOME` moves |
//! | `home/` | the same for the home directory, at isolation level `home` |
//! | `work.json` | directories that the session added to working directories, so that they are removed with it |
//! | `shell/` | start-up files of shells (`run::shell`) |
//! | `record` | in a room that is or was the spare one: stamps of its entries (`session::spare_room`) |
//! | a link | to the directory of sockets, whose path must be short; it is removed with the room |

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, unlinkat};
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

/// Name of an unused record in `running/`, which the next command renames for itself. ext4 does not reuse the inode of a removed
/// file for some seconds, and searches longer for each new one. Creating and removing a record per command took 25 to 700
/// microseconds; renaming one takes 7.
const SPARE_RECORD: &str = "spare";

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

    /// Directory of the room.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes it, with the mark of a first use. Returns its lock, held for the caller. One that is not durable may be gone after a
    /// power cut.
    pub fn create(&self, world: &World, durable: bool) -> Result<File> {
        let path = self.lock_path();
        // `session gc` in another process may remove a room that is not locked yet.
        for _ in 0..10 {
            match self.dir.parent().filter(|rooms| !durable && rooms.is_dir() && !self.is_marked_below(rooms))
            {
                Some(_) => crate::tool::make_room_dir(&self.dir)?,
                None => create_dir(&self.dir, 0o700)?,
            }
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

    /// Marks a first use of a room that got this place just now. Returns its lock, held for the caller.
    pub(super) fn lock_moved(&self, world: &World) -> Result<File> {
        self.check_rooms()?;
        self.mark(world, false)?;
        let (path, lock) = (self.lock_path(), self.open_lock()?);
        lock.lock_shared().map_err(|error| Error::io("lock", &path, error))?;
        // Before it was locked it may have been swept up.
        match path.exists() {
            true => Ok(lock),
            false => Err(Error::io("lock", path, std::io::ErrorKind::NotFound.into())),
        }
    }

    /// Whether the rooms have the mark of state beside a file, which a new room gets too.
    fn is_marked_below(&self, rooms: &Path) -> bool {
        rooms.metadata().is_ok_and(|found| crate::files::is_marked(&found))
    }

    /// Fails if others could replace rooms in the directory of all rooms.
    fn check_rooms(&self) -> Result<()> {
        self.dir.parent().map_or(Ok(()), check_private_path)
    }

    /// Whether the room exists.
    pub fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    /// Whether the room has only its own files: no tool has state in it.
    pub(crate) fn is_unused(&self) -> bool {
        const OWN: [&str; 3] = ["lock", "running", "watch"];
        let mut entries = std::fs::read_dir(&self.dir).into_iter().flatten();
        entries.all(|entry| entry.is_ok_and(|entry| OWN.iter().any(|own| entry.file_name() == *own)))
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

    /// Whether something runs in it, and the time of the last use.
    #[expect(clippy::disallowed_methods, reason = "the lock is tried once and never waited for")]
    pub(super) fn occupancy(&self) -> (bool, Option<Moment>) {
        // A room whose lock file is gone is not busy, as in `is_busy`.
        let Ok(file) = self.open_lock() else { return (false, None) };
        let is_busy = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        (is_busy, read_mark(&file))
    }

    /// Time of the last use.
    pub fn last_use(&self) -> Option<Moment> {
        read_mark(&self.open_lock().ok()?)
    }

    /// Whether something runs in it.
    pub fn is_busy(&self) -> bool {
        // An error is not taken for busy: a room whose lock file is gone would otherwise be kept for ever.
        matches!(self.try_alone(), Ok(None))
    }

    /// Takes the room for oneself, if nothing runs in it.
    #[expect(clippy::disallowed_methods, reason = "the lock is tried once and never waited for")]
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
                let reason = "not a directory";
                return Err(SessionError::UnsafeRoom { path: self.dir.clone(), reason }.into());
            }
            if check_private(&self.dir, &found).is_err() {
                let is_open = found.mode() & 0o022 != 0;
                let reason = if is_open { "writable by other users" } else { "owned by another user" };
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
        self.write_record(&record, running).map_err(|error| Error::io("write", &record, error))?;
        Ok(Presence { lock: Some(lock), record, room: self.clone(), world: world.clone() })
    }

    /// Writes a record, into the spare one if it exists.
    #[expect(clippy::disallowed_methods, reason = "the record is useless after a crash, so it needs no sync")]
    fn write_record(&self, record: &Path, running: &RunningProcess) -> std::io::Result<()> {
        let mut text = serde_json::to_string(running).unwrap_or_default();
        // The first line counts: the rest of a longer record that was here before need not be cut off.
        text.push('\n');
        // Without a spare record, a new file is made.
        let _ = std::fs::rename(self.running_dir().join(SPARE_RECORD), record);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(NO_FOLLOW)
            .open(record)?;
        file.write_all(text.as_bytes())
    }

    /// Makes an unused record the spare one.
    #[expect(
        clippy::disallowed_methods,
        reason = "the record is useless after the last command ended, so it needs no sync"
    )]
    fn retire_record(&self, record: &Path) {
        if std::fs::rename(record, self.running_dir().join(SPARE_RECORD)).is_err() {
            let _ = std::fs::remove_file(record);
        }
    }

    /// Paths of the records of commands, with those that have ended.
    fn record_paths(&self) -> impl Iterator<Item = PathBuf> {
        let entries = std::fs::read_dir(self.running_dir()).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name() != SPARE_RECORD).map(|entry| entry.path())
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

    /// Whether it has a record: of a command that runs, or of one that has ended with the end not recorded yet.
    pub(super) fn has_records(&self) -> bool {
        self.record_paths().next().is_some()
    }

    /// Starts the idle time now, for a room that was left without anyone noticing.
    pub fn notice_leaving(&self, world: &World) -> Result<()> {
        self.touch(world)?;
        // Nobody is in it, so nobody's record is of use.
        self.record_paths().for_each(|record| self.retire_record(&record));
        Ok(())
    }

    /// Removes the records of processes that have ended.
    fn prune(&self) {
        for path in self.record_paths() {
            if !read_record(&path).is_some_and(|found| found.process.is_alive()) {
                self.retire_record(&path);
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

    /// Whether a process on a terminal belongs to the session without holding the lock, for example in a terminal
    /// multiplexer. Background processes have no terminal and do not keep a session.
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
        // What cannot be removed here is removed, or reported, below.
        let _ = remove_entries(&self.dir);
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
        self.record_paths().filter_map(|path| read_record(&path)).collect()
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
    fn drop(&mut self) {
        // The idle time starts when the last one leaves. If others are left, children of this one maybe, the record
        // stays: whoever first finds the room empty sees by it that it was left.
        drop(self.lock.take());
        if let Ok(Some(_alone)) = self.room.try_alone() {
            // Dropping cannot fail, and the session merely counts as used a little earlier.
            let _ = self.room.touch(&self.world);
            self.room.retire_record(&self.record);
        }
    }
}

/// Removes the files and the empty directories of a directory. Most directories of a room are empty, and removing one at once takes one
/// system call where looking into it first takes six.
fn remove_entries(dir: &Path) -> std::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, flags, Mode::empty())?;
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if [&b"."[..], b".."].contains(&name.to_bytes()) {
            continue;
        }
        let is_dir = entry.file_type() == FileType::Directory;
        let _ = unlinkat(&dir, name, if is_dir { AtFlags::REMOVEDIR } else { AtFlags::empty() });
    }
    Ok(())
}

/// Mark of the last use in a lock file.
fn read_mark(mut file: &File) -> Option<Moment> {
    // The file may have been replaced by anything; a mark is shorter than this, and comes in one read.
    let mut bytes = [0; 200];
    let length = file.read(&mut bytes).ok()?;
    let mut words = str::from_utf8(&bytes[..length]).ok()?.split_ascii_whitespace();
    let (wall, boot_ms) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Moment {
        wall_ms: wall,
        boot_ms,
        // Only the age of a session counts without suspension, never its idle time.
        awake_ms: boot_ms,
        boot: words.next().unwrap_or_default().to_owned(),
    })
}

fn read_record(path: &Path) -> Option<RunningProcess> {
    let text = crate::files::read(path).ok()??;
    serde_json::from_str(text.lines().next()?).ok()
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

/// Whether programs inherit a descriptor. A process that only tests the room's lock has a close-on-exec descriptor
/// for a moment, and does not run in the room.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn running(program: &str) -> RunningProcess {
        RunningProcess { program: program.to_owned(), ..RunningProcess::own(&[]) }
    }

    #[test]
    fn record_of_a_command_that_left_is_reused_by_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let (room, world) = (Room::at(dir.path().join("rooms/id")), World::empty());
        drop(room.create(&world, false).unwrap());
        let enter = |program: &str| {
            let presence = room.enter(&world, &running(program)).unwrap();
            assert_eq!(room.running(), [running(program)]);
            assert_eq!(room.record_paths().count(), 1);
            let inode = presence.record.metadata().unwrap().ino();
            drop(presence);
            assert!(!room.has_records() && room.running().is_empty());
            inode
        };
        // The second record is shorter than the first one, whose end it leaves in the file.
        let inodes = [enter("a-program-with-a-long-name"), enter("b"), enter("c")];
        assert_eq!(inodes, [inodes[0]; 3]);
    }

    #[test]
    fn room_is_removed_with_everything_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (room, world) = (Room::at(dir.path().join("rooms/id")), World::empty());
        drop(room.create(&world, false).unwrap());
        assert!(room.is_unused());
        let outside = dir.path().join("outside");
        std::fs::create_dir_all(outside.join("kept")).unwrap();
        std::fs::create_dir_all(room.dir().join("empty")).unwrap();
        std::fs::create_dir_all(room.dir().join("full/empty")).unwrap();
        let file = room.dir().join("full/file");
        OpenOptions::new().write(true).create_new(true).open(file).unwrap();
        std::os::unix::fs::symlink(&outside, room.dir().join("link")).unwrap();
        assert!(!room.is_unused());
        room.remove(&world).unwrap();
        assert!(!room.exists() && outside.join("kept").is_dir());
    }

    #[test]
    fn commands_at_the_same_time_have_records_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let (room, world) = (Room::at(dir.path().join("rooms/id")), World::empty());
        drop(room.create(&world, false).unwrap());
        drop(room.enter(&world, &running("first")).unwrap());
        let one = room.enter(&world, &running("second")).unwrap();
        let parent = ProcessId { pid: 1, started: 0, boot: String::new() };
        let other = room.enter(&world, &RunningProcess { process: parent, program: "third".into() }).unwrap();
        assert_ne!(one.record, other.record);
        assert_eq!((room.record_paths().count(), room.running()), (2, vec![running("second")]));
        room.notice_leaving(&world).unwrap();
        assert!(!room.has_records());
    }
}
