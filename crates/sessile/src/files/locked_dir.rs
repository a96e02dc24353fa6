//! A directory whose files this process alone may change.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawMode, Stat, fchmod, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::{Error, FileError, Result};
use crate::files::lock::Locker;
use crate::files::provenance_mark::{MARK, is_marked, make_dir};
use crate::files::read::{LIMIT, read_opened, require_file_type, resolve_links};

/// The one temporary name in a directory. The lock makes it private, and the next write takes over what a
/// killed one left.
pub const TEMPORARY: &str = ".sessile-tmp";

/// A directory under this process's lock; dropping it gives the lock back.
#[derive(Debug)]
pub struct LockedDir {
    path: PathBuf,
    handle: File,
    /// Whether the directory has the mark of state beside a file, which its new files get too.
    is_marked: bool,
}

/// Mode of a new file.
#[derive(Clone, Copy, Debug)]
enum NewMode {
    /// This one, whatever the umask.
    Exact(u32),
    /// 0666 without the bits of the umask.
    Umask,
}

impl LockedDir {
    /// Locks a directory, and makes it first if it is not there.
    pub fn lock(locker: &Locker, dir: &Path, mode: u32) -> Result<Self> {
        // A directory that does not exist cannot be locked.
        let is_marked = make_dirs(dir, mode)?;
        let handle = File::open(dir).map_err(|error| Error::io("open", dir, error))?;
        Ok(LockedDir { is_marked, ..Self::of_handle(locker, dir.to_owned(), handle)? })
    }

    /// Locks an existing directory without waiting; `None` if another process holds the lock.
    #[expect(clippy::disallowed_methods, reason = "the lock is tried once, for optional work")]
    pub(crate) fn try_lock(dir: &Path) -> Option<Self> {
        let handle = File::open(dir).ok()?;
        let is_marked = is_marked(&handle.metadata().ok()?);
        handle.try_lock().ok()?;
        Some(LockedDir { path: dir.to_owned(), handle, is_marked })
    }

    /// Locks a directory that was opened for reading. Its path is for messages: everything is done in the directory that
    /// was opened, whatever stands at the path by then.
    pub(super) fn of_handle(locker: &Locker, path: PathBuf, handle: File) -> Result<Self> {
        let handle = locker.lock(handle, &path)?;
        Ok(LockedDir { path, handle, is_marked: false })
    }

    /// Locks the directory that really holds a file, links followed; returns the file's name in it.
    pub fn of_file(locker: &Locker, file: &Path, dir_mode: u32) -> Result<(Self, PathBuf)> {
        let real = resolve_links(file)?;
        // A bare file name has an empty parent, which cannot be opened.
        let dir = real.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = real
            .file_name()
            .ok_or_else(|| FileError::NotAFile { path: real.clone(), found: "a directory" })?;
        Ok((Self::lock(locker, dir, dir_mode)?, PathBuf::from(name)))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the directory has the mark of state beside a file.
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Text of a file in the directory, if it exists. A link is not followed.
    pub fn read(&self, name: &Path) -> Result<Option<String>> {
        self.read_up_to(name, LIMIT)
    }

    /// The same for a file that may be larger than settings are.
    pub fn read_up_to(&self, name: &Path, limit: u64) -> Result<Option<String>> {
        let path = self.path.join(name);
        // Without O_NONBLOCK, opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(file) => read_opened(File::from(file), &path, limit, |_| Ok(())).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => {
                // A socket cannot even be opened.
                self.require_file(name)?;
                Err(Error::io("read", path, error.into()))
            }
        }
    }

    /// Puts this text into the place of a file, whole or not at all. An existing file keeps its mode and owner;
    /// a new one gets `mode`.
    pub fn replace(&self, name: &Path, text: &str, mode: u32) -> Result<()> {
        self.put(name, text, NewMode::Exact(mode), true)
    }

    /// The same for a file that is the user's own, such as an export: a new one gets what the umask leaves of 0666.
    pub fn replace_by_umask(&self, name: &Path, text: &str) -> Result<()> {
        self.put(name, text, NewMode::Umask, true)
    }

    /// Replaces a file that is useless after a crash, without syncing it.
    pub fn replace_for_now(&self, name: &Path, text: &str, mode: u32) -> Result<()> {
        self.put(name, text, NewMode::Exact(mode), false)
    }

    fn put(&self, name: &Path, text: &str, mode: NewMode, durable: bool) -> Result<()> {
        let path = self.path.join(name);
        // A rename would put a file into the place of a pipe or a device, for whoever else uses it.
        let old = self.require_file(name)?;
        let fail = |error| Error::io("write", &path, error);
        // A killed writer leaves the name in use, and `O_EXCL` below would fail. The directory's lock rules
        // out a live one.
        self.remove_temporary()?;
        let written = (|| {
            // `O_EXCL` also refuses a link that somebody put in the place of the temporary file.
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            // Group and others get access only after the content is complete, with the `fchmod` below.
            let first = Mode::from_raw_mode(match mode {
                NewMode::Exact(mode) => (mode & 0o600) as RawMode,
                NewMode::Umask => 0o666,
            });
            let mut file = File::from(openat(&self.handle, TEMPORARY, flags, first)?);
            file.write_all(text.as_bytes())?;
            if let Some(old) = &old {
                let own = file.metadata()?;
                if (own.uid(), own.gid()) != (old.st_uid, old.st_gid) {
                    // Only root can; anyone else keeps a file of their own, which is what they could write.
                    let _ = std::os::unix::fs::fchown(&file, Some(old.st_uid), Some(old.st_gid));
                }
            }
            let mode = match (&old, mode) {
                (Some(old), _) => Some(old.st_mode),
                (None, NewMode::Exact(mode)) => {
                    Some(if self.is_marked { mode | MARK } else { mode } as RawMode)
                }
                (None, NewMode::Umask) => None,
            };
            if let Some(mode) = mode {
                // After `fchown`, which clears mode bits, and explicit, because `open` applies the umask.
                fchmod(&file, Mode::from_raw_mode(mode))?;
            }
            if durable {
                file.sync_all()?;
            }
            // Only after the sync: a rename that reaches the disk before the data would leave an empty file after a
            // crash.
            renameat(&self.handle, TEMPORARY, &self.handle, name)?;
            Ok(())
        })();
        if let Err(error) = written {
            // The first error is the one to report; the next write removes the left-over file.
            let _ = unlinkat(&self.handle, TEMPORARY, AtFlags::empty());
            return Err(fail(error));
        }
        // The rename itself is durable once the directory is.
        if durable { self.sync() } else { Ok(()) }
    }

    /// Removes a file; returns whether it existed.
    pub fn remove(&self, name: &Path) -> Result<bool> {
        let was_there = self.remove_for_now(name)?;
        if was_there { self.sync().map(|()| true) } else { Ok(false) }
    }

    /// Removes a file without a sync, so a power cut can restore it. Returns whether it existed.
    pub(crate) fn remove_for_now(&self, name: &Path) -> Result<bool> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(Error::io("remove", self.path.join(name), error.into())),
        }
    }

    /// Gives a file another name in the same directory.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        renameat(&self.handle, from, &self.handle, to)
            .map_err(|error| Error::io("rename", self.path.join(from), error.into()))?;
        self.sync()
    }

    /// Metadata of a regular file; fails for anything else.
    fn require_file(&self, name: &Path) -> Result<Option<Stat>> {
        let Ok(found) = statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(None) };
        require_file_type(&self.path.join(name), FileType::from_raw_mode(found.st_mode))?;
        Ok(Some(found))
    }

    fn remove_temporary(&self) -> Result<()> {
        match unlinkat(&self.handle, TEMPORARY, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(Error::io("remove", self.path.join(TEMPORARY), error.into())),
        }
    }

    fn sync(&self) -> Result<()> {
        self.handle.sync_all().map_err(|error| Error::io("sync", &self.path, error))
    }
}

/// Replaces a file in a session's room and keeps its mode. Other hard links keep the old content.
#[expect(clippy::disallowed_methods, reason = "a room's files are replaced under reserved names")]
pub(crate) fn put_in_place(path: &Path, content: &[u8], old: &std::fs::Metadata) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(TEMPORARY);
    let temporary = path.with_file_name(name);
    // A killed writer may have left one. If it cannot be removed, `create_new` reports the reason.
    let _ = std::fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    // Set after the write: the content is never readable by more users than the old file was.
    file.set_permissions(old.permissions())?;
    // The rename must not reach the disk before the data.
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

/// Creates a directory and its parents, durably. Existing ones stay unchanged. A directory in a marked one is marked.
pub fn create_dir(dir: &Path, mode: u32) -> Result<()> {
    make_dirs(dir, mode).map(drop)
}

/// The same. Returns whether the directory is marked.
fn make_dirs(dir: &Path, mode: u32) -> Result<bool> {
    match dir.metadata() {
        // The common case: one `stat`, and no sync.
        Ok(found) if found.is_dir() => return Ok(is_marked(&found)),
        Ok(_) => return Err(Error::io("make directory", dir, ErrorKind::NotADirectory.into())),
        Err(_) => {}
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let is_inherited = parent.map_or(Ok(false), |parent| make_dirs(parent, mode))?;
    let mode = if is_inherited { mode | MARK } else { mode };
    let is_marked = mode & MARK != 0;
    match make_dir(dir, mode) {
        Ok(()) => {}
        // Another process was faster, and it syncs the parent itself.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && dir.is_dir() => return Ok(is_marked),
        Err(error) => return Err(Error::io("make directory", dir, error)),
    }
    let parent = parent.unwrap_or(Path::new("."));
    // A new directory is durable once its parent is.
    let synced = File::open(parent).and_then(|handle| handle.sync_all());
    synced.map(|()| is_marked).map_err(|error| Error::io("sync", parent, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::read::read;
    use std::time::Duration;

    fn lock(dir: &Path) -> LockedDir {
        LockedDir::lock(&Locker::new(Duration::from_secs(1)), dir, 0o700).unwrap()
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_leaves_no_temporary() {
        let dir = tempfile::tempdir().unwrap();
        let locked = lock(dir.path());
        let name = Path::new("a.toml");
        locked.replace(name, "one", 0o640).unwrap();
        assert_eq!(dir.path().join(name).metadata().unwrap().mode() & 0o777, 0o640);
        locked.replace(name, "two", 0o600).unwrap();
        assert_eq!(dir.path().join(name).metadata().unwrap().mode() & 0o777, 0o640);
        assert_eq!(locked.read(name).unwrap().unwrap(), "two");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn temporary_file_of_a_killed_writer_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        let locked = lock(dir.path());
        locked.replace(Path::new("victim"), "safe", 0o600).unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join(TEMPORARY)).unwrap();
        locked.replace(Path::new("a"), "text", 0o600).unwrap();
        assert_eq!(read(&victim).unwrap().unwrap(), "safe");
        assert!(!dir.path().join(TEMPORARY).exists());
    }

    #[test]
    fn a_linked_file_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("dotfiles");
        create_dir(&real, 0o755).unwrap();
        let link = dir.path().join("config.toml");
        std::os::unix::fs::symlink("dotfiles/real.toml", &link).unwrap();
        let (locked, name) = LockedDir::of_file(&Locker::new(Duration::ZERO), &link, 0o700).unwrap();
        locked.replace(&name, "text", 0o600).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(read(&real.join("real.toml")).unwrap().unwrap(), "text");
    }

    #[test]
    fn irregular_file_is_an_error_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        create_dir(&dir.path().join("a.toml"), 0o755).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("b.toml")).unwrap();
        for (name, what) in [("a.toml", "a directory"), ("b.toml", "a socket")] {
            let locked = lock(dir.path());
            let errors = [
                locked.replace(Path::new(name), "x", 0o600).unwrap_err(),
                locked.read(Path::new(name)).unwrap_err(),
            ];
            for error in errors {
                assert!(
                    matches!(error, Error::File(FileError::NotAFile { found, .. }) if found == what),
                    "{error}"
                );
            }
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
