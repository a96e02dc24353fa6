//! State that tools keep in the working directory: a session has its own beside the user's, which begins as a copy.
//!
//! The working directory may be a repository of a stranger's. So only regular files are copied, few and small ones, and
//! neither the copy nor its removal goes through a symbolic link.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::files::{LockedDir, NoFollowDir};
use crate::state::State;
use crate::text::shown;
use crate::tool::bind::AppliedBinding;
use crate::tool::plan::{Plan, WorkSeed};
use crate::tool::scope::IsolationScope;
use crate::tool::seed::is_like;

/// Record of the copies of a session, which are removed with it.
const RECORD: &str = "work.json";
/// Depth below the working directory that is searched when a room is prepared.
const DEEPEST: usize = 4;
const MOST_DIRS: usize = 2000;

/// Limits of one copy. A tool's selection or initialization takes a few small files.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
const MOST_FILES: usize = 256;
const MOST_ENTRIES: usize = 1000;
const MOST_LEVELS: usize = 4;

/// A copy that the session has made in a working directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WorkCopy {
    /// Working directory, without links in its path.
    #[serde(with = "crate::path_text")]
    dir: PathBuf,
    /// Inode of that directory.
    #[serde(default)]
    inode: u64,
    /// Path of the copy below it.
    #[serde(with = "crate::path_text")]
    to: PathBuf,
}

/// Copies tool state in a working directory, and with `below` in its subdirectories, once per session.
pub(crate) fn plant(
    state: &State,
    plan: &Plan,
    wanted: &IsolationScope,
    room: &Path,
    below: bool,
) -> Result<()> {
    let Some(cwd) = state.world().cwd() else { return Ok(()) };
    let bound = |tool: &str| plan.bound.iter().find(|bound| bound.tool == tool);
    let is_bound = |tool: &str| bound(tool).is_some();
    let tools = plan.tools.iter().filter(|tool| wanted.wants(&tool.tool, false, is_bound(&tool.tool)));
    for (tool, seed) in tools.flat_map(|tool| tool.work.iter().map(|seed| (tool.tool.as_str(), seed))) {
        // Searching is for the first command only: on the fast path it would cost a walk through the tree.
        let dirs = if below { dirs_with(cwd, &seed.from) } else { vec![cwd.to_owned()] };
        for dir in dirs {
            plant_in(state, (tool, bound(tool)), &dir, seed, room)?;
        }
    }
    Ok(())
}

fn plant_in(
    state: &State,
    (tool, bound): (&str, Option<&AppliedBinding>),
    dir: &Path,
    seed: &WorkSeed,
    room: &Path,
) -> Result<()> {
    let from = dir.join(&seed.from);
    let Ok(found) = from.symlink_metadata() else { return Ok(()) };
    if !found.is_dir() && !found.is_symlink() || dir.join(&seed.to).symlink_metadata().is_ok() {
        return Ok(());
    }
    let Some(copy) = WorkCopy::new(dir, &seed.to) else { return Ok(()) };
    // Warned about once: the record also remembers what was refused.
    let is_known = recorded(room).contains(&copy);
    // Before the copy is there, or a crash would leave it without a record.
    let record = || if is_known { Ok(()) } else { record(room, copy.clone(), state) };
    let opened = NoFollowDir::open(dir).and_then(|root| Ok((root.walk(&seed.from)?, root)));
    let problem = match opened {
        _ if found.is_symlink() => {
            record()?;
            format!("{} is a symbolic link and was not copied", shown(from.display()))
        }
        // The tool cannot read it either, and will say so.
        Err(_) => return Ok(()),
        Ok((source, root)) => {
            let mut selection = Selection::default();
            let is_pinned = |key: &str| {
                bound.is_some_and(|bound| {
                    bound.restricted && bound.bindings.iter().any(|(bound, _)| bound == key)
                })
            };
            let pinned = seed.pinned_by.iter().filter(|(_, key)| is_pinned(key)).map(|(entry, _)| entry);
            let mut seed = seed.clone();
            seed.except.extend(pinned.cloned());
            selection.scan(&source, Path::new(""), &seed);
            if selection.is_empty() && selection.left_out == 0 {
                return Ok(());
            }
            record()?;
            match selection.copy(&root, &source, &from, &seed.to) {
                Err(error) if is_denied(&error) => return Ok(()),
                Err(error) => format!("cannot create {}: {error}", shown(dir.join(&seed.to).display())),
                Ok(()) if selection.left_out == 0 => return Ok(()),
                Ok(()) => format!(
                    "{}: {} entries were not copied: only regular files are, up to {MOST_FILES} files and {} MiB",
                    shown(from.display()),
                    selection.left_out,
                    MOST_BYTES >> 20
                ),
            }
        }
    };
    if !is_known {
        let hint = "the session starts without it; check where its links lead before you use it";
        state.warn(format!("{tool}: {problem}"), Some(hint.to_owned()));
    }
    Ok(())
}

/// Whether the user may not write there. The tool cannot work there either, and will say so.
fn is_denied(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// The entries of a directory that are copied or linked.
#[derive(Debug, Default)]
struct Selection {
    files: Vec<PathBuf>,
    links: Vec<PathBuf>,
    bytes: u64,
    seen: usize,
    left_out: usize,
}

impl Selection {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.links.is_empty()
    }

    fn scan(&mut self, dir: &NoFollowDir, relative: &Path, seed: &WorkSeed) {
        // The limit is for all levels together: a stranger decides the shape of the tree.
        let Ok((entries, has_more)) = dir.entries(MOST_ENTRIES.saturating_sub(self.seen)) else {
            self.left_out += 1;
            return;
        };
        self.seen += entries.len();
        self.left_out += usize::from(has_more);
        let mut below = Vec::new();
        for entry in entries {
            let path = relative.join(&entry.name);
            let name = path.to_string_lossy();
            let matches = |patterns: &[String]| patterns.iter().any(|pattern| is_like(pattern, &name));
            let is_dir = entry.kind == FileType::Directory;
            match () {
                () if matches(&seed.except) => {}
                () if is_dir && matches(&seed.link) => self.links.push(path),
                // The files of a directory come first: what a tool selects is at the top.
                () if is_dir => below.push(path),
                () if entry.kind == FileType::RegularFile && self.has_room_for(entry.size) => {
                    self.bytes += entry.size;
                    self.files.push(path);
                }
                () => self.left_out += 1,
            }
        }
        for path in below {
            let name = path.file_name().unwrap_or_default();
            match dir.enter(name) {
                Ok(dir) if path.components().count() < MOST_LEVELS => self.scan(&dir, &path, seed),
                _ => self.left_out += 1,
            }
        }
    }

    fn has_room_for(&self, size: u64) -> bool {
        self.files.len() < MOST_FILES && self.bytes.saturating_add(size) <= MOST_BYTES
    }

    fn copy(
        &mut self,
        root: &NoFollowDir,
        source: &NoFollowDir,
        from: &Path,
        to: &Path,
    ) -> std::io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let target = root.make(to)?;
        for path in &self.files {
            let (parent, name) = split(path);
            let Ok(file) = source.walk(parent).and_then(|dir| dir.open_file(name)) else {
                self.left_out += 1;
                continue;
            };
            // Owner only: others may be able to read the working directory.
            let mode = file.metadata()?.permissions().mode() & 0o700 | 0o600;
            let mut copy = target.make(parent)?.create_file(name, mode)?;
            // The file may grow after its size was counted.
            std::io::copy(&mut file.take(MOST_BYTES), &mut copy)?;
        }
        for path in &self.links {
            let (parent, name) = split(path);
            target.make(parent)?.link(&from.join(path), name)?;
        }
        Ok(())
    }
}

fn split(path: &Path) -> (&Path, &std::ffi::OsStr) {
    (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default())
}

fn record(room: &Path, copy: WorkCopy, state: &State) -> Result<()> {
    let dir = LockedDir::lock(&state.locker()?, room, 0o700)?;
    // Read under the lock: another command of the session may have added a copy.
    let mut all = recorded(room);
    all.push(copy);
    dir.replace_for_now(Path::new(RECORD), &serde_json::to_string(&all).unwrap_or_default(), 0o600)
}

fn recorded(room: &Path) -> Vec<WorkCopy> {
    let text = crate::files::read(&room.join(RECORD)).ok().flatten().unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Removes a session's copies from working directories, unless they were moved.
pub(crate) fn remove_copies(room: &Path) {
    let id = room.file_name();
    for copy in recorded(room) {
        // The record is in the room, where commands of the session can change it.
        let is_plain = copy.to.components().all(|part| matches!(part, Component::Normal(_)));
        // Only what bears the session's name is the session's.
        if is_plain && copy.to.file_name() == id {
            // `session stop` has warned of a copy whose directory was replaced; others are gone already.
            let _ = copy.remove();
        }
    }
}

/// The paths at which a session has put something and that lead to another working directory now.
pub(crate) fn displaced_copies(room: &Path) -> Vec<PathBuf> {
    let copies = recorded(room).into_iter().filter(|copy| copy.open_dir().is_err());
    copies.map(|copy| copy.dir.join(copy.to)).filter(|path| path.symlink_metadata().is_ok()).collect()
}

impl WorkCopy {
    fn new(dir: &Path, to: &Path) -> Option<Self> {
        let real = dir.canonicalize().ok()?;
        let inode = NoFollowDir::open(&real).ok()?.stat().ok()?.st_ino;
        Some(WorkCopy { dir: real, inode, to: to.to_owned() })
    }

    /// Opens the working directory; one that took its place, behind a link for example, is an error.
    fn open_dir(&self) -> std::io::Result<NoFollowDir> {
        let root = NoFollowDir::open(&self.dir)?;
        // The device is not compared: its number may change when the machine starts again.
        // A directory above it may have been replaced by a link.
        if root.stat()?.st_ino != self.inode || self.dir.canonicalize()? != self.dir {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(root)
    }

    fn remove(&self) -> std::io::Result<()> {
        let (parent, name) = split(&self.to);
        let root = self.open_dir()?;
        root.walk(parent)?.remove_tree(name)?;
        let (above, parent) = split(parent);
        // The directory that holds the copies of all sessions stays while others have theirs.
        root.walk(above)?.remove_empty(parent)
    }
}

/// The directories that have such state, from the working directory down.
fn dirs_with(cwd: &Path, name: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![cwd.to_owned()];
    let mut seen = 0;
    for _ in 0..=DEEPEST {
        let mut next = Vec::new();
        for dir in level {
            if dir.join(name).symlink_metadata().is_ok() {
                found.push(dir.clone());
            }
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                // Version control and caches are in hidden directories, and hold no working directory.
                let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    next.push(entry.path());
                }
            }
            seen += 1;
            if seen > MOST_DIRS {
                return found;
            }
        }
        level = next;
    }
    found
}
