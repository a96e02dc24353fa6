//! The spare room: the room of an ephemeral session that ended with everything in it as it was prepared. The next ephemeral session
//! takes it over instead of preparing one, if the preparation would give the same.
//!
//! Making and removing the 60 files and directories of a room takes most of the time of a short command.
//!
//! | step | order |
//! |---|---|
//! | record | right before the command starts: a stamp of every entry (`RoomRecord`) |
//! | keep | after the deletion of the session's row: compares the stamps, writes the record, renames the room to `rooms/spare` |
//! | take | renames `rooms/spare` to the room of the new session, locks it, checks the record, replaces the old id in the files |
//!
//! A record names the inputs of the preparation (`key`), every file of the user's that was read or was missing (`sources`), and every
//! entry of the room. A spare room with any other stamp is not used. It counts in one boot and for [`LONGEST`]: nothing is synced.
//!
//! Each step changes owners by one rename. A process that is killed in between leaves either a spare room or a room without a
//! session, which `session gc` removes. A process that removes the spare room renames it first, so that no session takes it meanwhile.
//!
//! Not kept: a room that holds protected targets or whose context has a guard, with a moved home, of the state beside a `--config`
//! file, or with anything in it that was changed. The caller must know that no process of the command is left, not even one
//! that has closed the room's lock.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, RenameFlags, Timespec, Timestamps, UTIME_OMIT, renameat_with, unlink, utimensat,
};

use crate::error::Result;
use crate::files::NO_FOLLOW;
use crate::names::SessionId;
use crate::runtime::require_private;
use crate::session::room::Room;
use crate::session::sockets;
use crate::world::World;

/// Name of the spare room among the rooms. No session has such an id.
pub(crate) const NAME: &str = "spare";

/// File with the record in a spare room.
const RECORD: &str = "record";

/// Layout of the record.
const LAYOUT: u32 = 1;

/// Longest time for which a spare room is used.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// Stamp of a path that does not exist.
const MISSING: &str = "-";

/// Most entries of a room, and most sources, that are compared.
pub(crate) const MOST_STAMPS: usize = 500;

/// Largest text of this program's own in a room.
const LARGEST_TEXT: u64 = 1024 * 1024;

/// Entries that change while a room is used, and hold nothing of a tool.
const IN_USE: [&str; 4] = ["lock", "running", RECORD, sockets::LINK];

/// Texts with the session's id in them.
const PLANS: [&str; 2] = ["plan.json", "copies.json"];

/// Directory of the start-up files of shells.
const SHELL: &str = "shell";

/// Metadata of a file: device, inode, mode, number of links, size, and the times of modification and change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp([i64; 9]);

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Stamp([
            found.dev().cast_signed(),
            found.ino().cast_signed(),
            i64::from(found.mode()),
            found.nlink().cast_signed(),
            found.size().cast_signed(),
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        ])
    }

    /// Stamp of an entry of a room, links not followed.
    fn of_entry(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().map(|found| Stamp::of(&found))
    }

    fn parse(text: &str) -> Option<Self> {
        let (mut fields, mut numbers) = ([0; 9], text.split(' '));
        for field in &mut fields {
            *field = numbers.next()?.parse().ok()?;
        }
        numbers.next().is_none().then_some(Stamp(fields))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, rest @ ..] = &self.0;
        write!(f, "{first}")?;
        rest.iter().try_for_each(|field| write!(f, " {field}"))
    }
}

/// Record of a spare room: stamps of its entries, and of the files that they were copied from.
#[derive(Debug)]
pub(crate) struct RoomRecord {
    /// Fingerprint of the preparation's inputs.
    key: String,
    /// Stamps of the user's files, each with a path.
    sources: Vec<String>,
    /// Paths below the room, each with a stamp.
    entries: Vec<(String, Stamp)>,
    /// The room itself.
    root: Option<Stamp>,
    /// Directory of the session's sockets.
    sockets: Option<PathBuf>,
}

impl RoomRecord {
    /// Records a room that was prepared just now. `None` if it cannot be used by another session.
    pub(crate) fn of(room: &Path, key: &str, sources: Vec<String>) -> Option<Self> {
        let entries = entries_of(room)?;
        let short = sockets::sockets_name(room.file_name()?.to_str()?);
        for name in &entries {
            // Only this program's own texts are rewritten for the next session.
            if !is_own(name) && mentions(&room.join(name), short)? {
                return None;
            }
        }
        let record =
            RoomRecord { key: key.to_owned(), sources, entries: Vec::new(), root: None, sockets: None };
        record.stamped(room, entries)
    }

    /// Records a room that was taken over, with the files that were written since.
    pub(crate) fn renewed(mut self, room: &Path) -> Option<Self> {
        let mut own = Vec::new();
        add_entries(room, Path::new(SHELL), &mut own)?;
        own.extend(PLANS.map(str::to_owned));
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|(name, _)| !is_own(name));
        let record = self.stamped(room, own)?;
        entries.extend(record.entries);
        Some(RoomRecord { entries, ..record })
    }

    fn stamped(self, room: &Path, names: Vec<String>) -> Option<Self> {
        let stamp = |name: String| {
            let path = room.join(&name);
            if is_own(&name) {
                backdate(&path)?;
            }
            let stamp = Stamp::of_entry(&path)?;
            Some((name, stamp))
        };
        let entries = names.into_iter().map(stamp).collect::<Option<_>>()?;
        let root = Stamp::of_entry(room);
        Some(RoomRecord { entries, root, sockets: sockets::directory(room), ..self })
    }

    /// Directory of the start-up files that shells of the last session had.
    pub(crate) fn shell_dir(&self, room: &Path) -> Option<PathBuf> {
        let names = self.entries.iter().map(|(name, _)| name);
        let dir = names.filter_map(|name| name.strip_prefix("shell/")).find(|name| !name.contains('/'))?;
        Some(room.join(SHELL).join(dir))
    }

    /// Whether a room has the recorded entries and no others, and nothing runs in it.
    pub(crate) fn holds(&self, room: &Path) -> bool {
        self.root.is_some()
            && Stamp::of_entry(room) == self.root
            && sockets::directory(room) == self.sockets
            && self.holds_entries(room)
    }

    fn holds_entries(&self, room: &Path) -> bool {
        let is_known =
            |name: &str| IN_USE.contains(&name) || self.entries.iter().any(|(known, _)| known == name);
        let is_same = |(name, stamp): &(String, Stamp)| Stamp::of_entry(&room.join(name)) == Some(*stamp);
        let names = |dir: &Path| -> Option<Vec<String>> {
            let entries = std::fs::read_dir(dir).ok()?;
            entries.map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
        };
        self.entries.iter().all(is_same)
            // A new entry changes its directory, but two changes within a tick of the kernel's clock have the same time.
            && names(room).is_some_and(|names| names.iter().all(|name| is_known(name)))
            && names(&room.join("running")).is_some_and(|names| names.iter().all(|name| name == NAME))
    }

    fn text(&self, id: &str, world: &World) -> Option<String> {
        let mut text = format!("{}\n{}\n{id}\n", header()?, self.key);
        let sockets =
            self.sockets.as_deref().map_or(Some(""), Path::to_str).filter(|path| !path.contains('\n'))?;
        text.push_str(&format!("{}\n{sockets}\n", world.since_boot().as_millis()));
        for source in &self.sources {
            text.push_str(&format!("{source}\n"));
        }
        text.push('\n');
        for (name, stamp) in &self.entries {
            text.push_str(&format!("{stamp}\t{name}\n"));
        }
        // A truncated text lacks this line.
        text.push_str(".\n");
        Some(text)
    }
}

/// Room of a new session that was the spare one.
#[derive(Debug)]
pub(crate) struct TakenRoom {
    pub(crate) record: RoomRecord,
    /// The room's lock, held for the caller.
    pub(super) lock: File,
}

/// Makes the spare room that of a session. `None` without a spare room, or if another preparation would be needed.
pub(super) fn take(room: &Room, world: &World, key: &str) -> Option<TakenRoom> {
    let spare = room.dir().with_file_name(NAME);
    move_to(&spare, room.dir()).ok()?;
    match lock(room, world) {
        // Removed by `session gc` before it was locked.
        None => {
            let _ = room.remove(world);
            None
        }
        Some(lock) => match valid_record(room, world, key) {
            None => {
                // The session that is about to start may leave a better one.
                if move_to(room.dir(), &spare).is_err() {
                    let _ = room.remove(world);
                }
                None
            }
            Some((record, old)) => match adapt(room, &record, &old, world) {
                Some(()) => Some(TakenRoom { record, lock }),
                None => {
                    let _ = room.remove(world);
                    None
                }
            },
        },
    }
}

/// Makes the room of a session that has ended the spare one. The caller has the room alone. Returns `false` if the room is not as it
/// was recorded, and stays.
pub(super) fn keep(room: &Room, world: &World, record: &RoomRecord) -> bool {
    let (dir, spare) = (room.dir(), room.dir().with_file_name(NAME));
    let id = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !record.holds(dir) {
        return false;
    }
    let Some(text) = record.text(id, world) else { return false };
    sockets::remove(dir);
    if record.sockets.is_some() && unlink(dir.join(sockets::LINK)).is_err() {
        return false;
    }
    if put(&dir.join(RECORD), &text).is_none() {
        return false;
    }
    move_to(dir, &spare).is_ok() || (exchange(dir, &spare) && room.remove(world).is_ok())
}

/// Directory of the spare room.
pub(crate) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("rooms").join(NAME)
}

/// Removes the spare room. Returns `false` if it did not exist.
pub(crate) fn remove(state_dir: &Path, world: &World) -> Result<bool> {
    let spare = path(state_dir);
    if spare.symlink_metadata().is_err() {
        return Ok(false);
    }
    // Under another name no session takes it. A process that is killed now leaves a room without a session.
    let room = Room::of(state_dir, &SessionId::new(world.now().as_millisecond())?);
    match move_to(&spare, room.dir()) {
        Ok(()) => room.remove(world).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Stamp of a path of the user's, links followed, as a line of a record. `None` if the path cannot be recorded.
pub(crate) fn source_line(path: &Path, found: Option<&Metadata>) -> Option<String> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '\t']))?;
    let stamp = found.map_or_else(|| MISSING.to_owned(), |found| Stamp::of(found).to_string());
    Some(format!("{stamp}\t{text}"))
}

/// Whether a path of the user's still matches its line of a record.
fn is_as_recorded(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(stamp, path)| match Path::new(path).metadata() {
        Ok(found) => Stamp::parse(stamp) == Some(Stamp::of(&found)),
        // A file without metadata was not copied either.
        Err(_) => stamp == MISSING,
    })
}

/// Sets the modification time of an entry back, so that a change within the same tick of the kernel's clock has another one.
pub(crate) fn backdate(path: &Path) -> Option<()> {
    const BACK: i64 = 2;
    let found = path.symlink_metadata().ok()?;
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: found.ctime() - BACK, tv_nsec: 0 },
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// Every entry of a room that another session can take over. `None` if it has too many, or one that is not a file, directory or link.
pub(crate) fn entries_of(room: &Path) -> Option<Vec<String>> {
    let mut entries = Vec::new();
    add_entries(room, Path::new(""), &mut entries)?;
    Some(entries)
}

fn add_entries(room: &Path, below: &Path, found: &mut Vec<String>) -> Option<()> {
    let is_top = below.as_os_str().is_empty();
    if !is_top {
        found.push(below.to_str().filter(|name| !name.contains(['\n', '\t']))?.to_owned());
    }
    for entry in std::fs::read_dir(room.join(below)).ok()? {
        let entry = entry.ok()?;
        let (kind, name) = (entry.file_type().ok()?, below.join(entry.file_name()));
        if is_top && IN_USE.iter().any(|own| entry.file_name() == *own) {
            continue;
        }
        match () {
            () if found.len() > MOST_STAMPS => return None,
            () if kind.is_dir() => add_entries(room, &name, found)?,
            () if kind.is_file() || kind.is_symlink() => {
                found.push(name.to_str().filter(|name| !name.contains(['\n', '\t']))?.to_owned());
            }
            () => return None,
        }
    }
    Some(())
}

/// Whether an entry is rewritten for each session.
fn is_own(name: &str) -> bool {
    PLANS.contains(&name) || name == SHELL || name.starts_with("shell/")
}

/// Whether a file or link has a text in it. `None` if it cannot be read.
fn mentions(path: &Path, text: &str) -> Option<bool> {
    let found = path.symlink_metadata().ok()?;
    let bytes = match () {
        () if found.is_dir() => return Some(false),
        () if found.is_symlink() => path.read_link().ok()?.into_os_string().into_encoded_bytes(),
        () => {
            use std::io::Read;
            let mut bytes = Vec::new();
            // A larger file is not kept: reading it would take longer than a new preparation.
            let file = File::open(path).ok()?;
            let read = file.take(LARGEST_TEXT).read_to_end(&mut bytes).ok()?;
            if read as u64 == LARGEST_TEXT {
                return None;
            }
            bytes
        }
    };
    Some(bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

/// First line of a valid record: layout, boot and program. Another build may have other profiles under the same version.
fn header() -> Option<String> {
    let boot = Some(crate::process::boot_id()).filter(|boot| !boot.is_empty())?;
    let program = Stamp::of(&Path::new("/proc/self/exe").metadata().ok()?);
    let version = env!("CARGO_PKG_VERSION");
    Some(format!("sessile {version} spare {LAYOUT} {boot} {program}"))
}

/// Record of a room that fits a preparation, and the id of the session that had the room.
fn valid_record(room: &Room, world: &World, key: &str) -> Option<(RoomRecord, String)> {
    let text = crate::files::read(&room.dir().join(RECORD)).ok()??;
    let mut lines = text.strip_suffix("\n.\n")?.lines();
    if lines.next()? != header()? || lines.next()? != key {
        return None;
    }
    let id: SessionId = lines.next()?.parse().ok()?;
    let kept = Duration::from_millis(lines.next()?.parse().ok()?);
    if world.since_boot().checked_sub(kept)? > LONGEST {
        return None;
    }
    let sockets = Some(PathBuf::from(lines.next()?)).filter(|path| !path.as_os_str().is_empty());
    let mut sources = Vec::new();
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        if !is_as_recorded(line) {
            return None;
        }
        sources.push(line.to_owned());
    }
    let entry = |line: &str| {
        line.split_once('\t').and_then(|(stamp, name)| Some((name.to_owned(), Stamp::parse(stamp)?)))
    };
    let entries = lines.map(entry).collect::<Option<Vec<_>>>()?;
    let record = RoomRecord { key: key.to_owned(), sources, entries, root: None, sockets };
    record.holds_entries(room.dir()).then_some((record, id.as_str().to_owned()))
}

/// Replaces the old session's id in the texts of a room, and makes the directory of sockets.
fn adapt(room: &Room, record: &RoomRecord, old: &str, world: &World) -> Option<()> {
    let id = room.dir().file_name()?.to_str()?;
    let (short, old_short) = (sockets::sockets_name(id), sockets::sockets_name(old));
    for name in PLANS {
        let path = room.dir().join(name);
        let text = crate::files::read(&path).ok()??;
        // The end of the id, which names the directory of sockets, is random too.
        put(&path, &text.replace(old, id).replace(old_short, short))?;
    }
    let Some(dir) = &record.sockets else { return Some(()) };
    let name = dir.file_name()?.to_str()?.replace(old_short, short);
    let dir = dir.with_file_name(name);
    crate::tool::make_room_dir(&dir).ok()?;
    require_private(&dir, world.uid()).ok()?;
    room.claim_sockets(&dir).ok()
}

/// Renames a directory. Fails if something is at its new place.
fn move_to(from: &Path, to: &Path) -> rustix::io::Result<()> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
}

/// Gives each of two directories the name of the other one.
fn exchange(one: &Path, other: &Path) -> bool {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

/// Writes a text into a file in place, which no other process reads. A file that is emptied first is written to the disk at once by ext4.
pub(crate) fn put(path: &Path, text: &str) -> Option<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_FOLLOW);
    let mut file = options.open(path).ok()?;
    file.write_all(text.as_bytes()).ok()?;
    let length = u64::try_from(text.len()).ok()?;
    if file.metadata().ok()?.len() == length { Some(()) } else { file.set_len(length).ok() }
}

/// Locks a room that was renamed.
fn lock(room: &Room, world: &World) -> Option<File> {
    let found = room.dir().symlink_metadata().ok()?;
    (found.is_dir() && found.uid() == world.uid() && found.mode() & 0o777 == 0o700).then_some(())?;
    room.lock_moved(world).ok()
}
