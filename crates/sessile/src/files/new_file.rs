//! A new file that gets its name only when it is complete.
//!
//! Not for replacing a file: [`LockedDir`](super::LockedDir) does that.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::{Error, Result};
use sessile_wire::hex::hex;

/// The beginning of every temporary name, which 16 hexadecimal digits follow.
const PREFIX: &str = ".sessile-tmp-";
const DIGITS: usize = 16;
/// Suffixes of the files that SQLite keeps beside a database.
const COMPANIONS: [&str; 4] = ["", "-journal", "-wal", "-shm"];
// Each try can lose its file to another process's clean-up; a hundred in a row is not a race any more.
const TRIES: usize = 100;

/// A private temporary file in the directory of the file that it becomes. Its writer holds the kernel's lock on it, so
/// that a temporary file without a lock is known to be left over.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    /// Holds the lock.
    file: File,
}

impl NewFile {
    /// Creates the temporary file beside `target`, and removes those that killed writers left in that directory.
    #[expect(
        clippy::disallowed_methods,
        reason = "the lock only marks the file as in use; no caller waits for it"
    )]
    pub fn beside(target: &Path) -> Result<Self> {
        let dir = dir_of(target);
        // Here, because a killed writer cannot clean up and no daemon exists.
        remove_abandoned(dir);
        for _ in 0..TRIES {
            let path = dir.join(format!("{PREFIX}{}", hex(&crate::random::bytes::<{ DIGITS / 2 }>()?)));
            let created = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
            let file = created.map_err(|error| Error::io("write", target, error))?;
            // Another process may take it for a left-over one in the instant before it is locked.
            if file.try_lock().is_ok() && is_at(&file, &path) {
                return Ok(NewFile { path, file });
            }
        }
        Err(Error::io("write", target, ErrorKind::AlreadyExists.into()))
    }

    /// The temporary path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the mark of state beside a `--config` file.
    pub(crate) fn mark(&self) -> Result<()> {
        super::mark_file(&self.file).map_err(|error| Error::io("write", &self.path, error))
    }

    /// Writes the content to disk and gives the file its name; `false` if something has that name already.
    pub fn publish(&self, target: &Path) -> Result<bool> {
        let fail = |error| Error::io("write", target, error);
        // Before the rename: a crash must leave a complete file under the name, or none.
        self.file.sync_all().map_err(fail)?;
        match rename_unless_taken(&self.path, target) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(fail(error)),
        }
        let dir = dir_of(target);
        // The rename itself is durable once the directory is.
        File::open(dir)
            .and_then(|handle| handle.sync_all())
            .map_err(|error| Error::io("sync", dir, error))?;
        Ok(true)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // A published file is no longer there.
        for companion in COMPANIONS {
            remove(&with_ending(&self.path, companion));
        }
    }
}

/// A path with something appended to its last component.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_at(file: &File, path: &Path) -> bool {
    let inode = |found: &std::fs::Metadata| (found.dev(), found.ino());
    // By inode: the path may already name a file of another process.
    matches!((&file.metadata(), &path.symlink_metadata()), (Ok(own), Ok(found)) if inode(own) == inode(found))
}

fn rename_unless_taken(from: &Path, to: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system knows the flag; a hard link replaces nothing either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            std::fs::hard_link(from, to)?;
            remove(from);
            Ok(())
        }
        other => Ok(other?),
    }
}

#[expect(clippy::disallowed_methods, reason = "temporary files need not be removed durably")]
fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Removes temporary files of dead writers. Failures are ignored; the next call tries again.
#[expect(
    clippy::disallowed_methods,
    reason = "the lock only marks the file as in use; no caller waits for it"
)]
fn remove_abandoned(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((main, _)) = temporary_name(name.as_bytes()) else { continue };
        // A directory or link with such a name is not ours to remove.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        // Neither follow a link nor wait for a pipe that somebody puts there.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        // The lock is held until the file is removed: released before, a writer that has just created the file could take
        // the lock in between, and lose its file.
        let abandoned = match OpenOptions::new().read(true).custom_flags(flags).open(dir.join(main)) {
            Ok(file) if file.try_lock().is_ok() => Some(Some(file)),
            Ok(_) => None,
            // In a shared directory another user's file cannot be opened, and may be in use.
            Err(error) => (error.kind() == ErrorKind::NotFound).then_some(None),
        };
        if is_file && let Some(_lock) = abandoned {
            remove(&entry.path());
        }
    }
}

/// The name of the temporary file that a name belongs to, and what SQLite appended to it.
fn temporary_name(name: &[u8]) -> Option<(&str, &str)> {
    let name = std::str::from_utf8(name).ok()?;
    let digits = name.strip_prefix(PREFIX)?;
    let (main, ending) = name.split_at_checked(PREFIX.len() + DIGITS)?;
    let is_hex = digits.as_bytes()[..DIGITS].iter().all(u8::is_ascii_hexdigit);
    (is_hex && COMPANIONS.contains(&ending)).then_some((main, ending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_published_file_is_private_and_replaces_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("copy");
        let new = NewFile::beside(&target).unwrap();
        (&new.file).write_all(b"one").unwrap();
        assert!(!target.exists());
        assert!(new.publish(&target).unwrap());
        drop(new);
        assert_eq!(target.metadata().unwrap().mode() & 0o777, 0o600);
        let second = NewFile::beside(&target).unwrap();
        assert!(!second.publish(&target).unwrap());
        drop(second);
        assert_eq!(crate::files::read(&target).unwrap().unwrap(), "one");
        assert_eq!(names(dir.path()), ["copy"]);
    }

    #[test]
    fn abandoned_files_are_removed_and_those_in_use_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let create = |name: &str| drop(File::create_new(dir.path().join(name)).unwrap());
        let abandoned = format!("{PREFIX}0123456789abcdef");
        for ending in COMPANIONS {
            create(&format!("{abandoned}{ending}"));
        }
        create(&format!("{PREFIX}fedcba9876543210-wal"));
        let others = [format!("{PREFIX}notes"), format!("{abandoned}.txt"), ".sessile-tmp".to_owned()];
        others.iter().for_each(|name| create(name));
        let link = format!("{PREFIX}00000000000000ff");
        std::os::unix::fs::symlink("elsewhere", dir.path().join(&link)).unwrap();
        let used = NewFile::beside(&dir.path().join("a")).unwrap();
        let name = used.path().file_name().unwrap().to_str().unwrap().to_owned();
        create(&format!("{name}-wal"));
        let second = NewFile::beside(&dir.path().join("b")).unwrap();
        drop(second);
        let mut expected: Vec<String> = others.into();
        expected.extend([format!("{name}-wal"), name, link]);
        expected.sort();
        assert_eq!(names(dir.path()), expected);
    }
}
