//! Whether other users of the machine can change a file.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{create_dir, with_ending};
use crate::error::{Error, FileError, Result};

/// Write permission of users who are neither the owner nor in the group.
const OTHERS_WRITE: u32 = 0o002;

/// Write permission of the group.
const GROUP_WRITES: u32 = 0o020;

/// Read permission of users who are neither the owner nor in the group.
const OTHERS_READ: u32 = 0o004;

/// Sticky bit: users cannot replace each other's files in the directory.
const STICKY: u32 = 0o1000;

/// Limit of symbolic links, as in Linux.
const MOST_LINKS: usize = 40;

/// Files that SQLite has beside a database.
const BESIDE_A_DATABASE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Fails if other users can change a file, or replace it by way of its directory or of a link to it. A file that does not
/// exist yet needs a safe directory only. Returns whether other users can read the file.
///
/// Files and directories must belong to this user or root. The group may write if it is this process's own, or if the file
/// belongs to root and the process is in the group: so does a cluster hand a volume to a container.
pub fn check_trusted(path: &Path) -> Result<bool> {
    resolve(path).map(|(_, can_others_read)| can_others_read)
}

/// Checks a database and the files that SQLite keeps beside it.
pub fn check_trusted_database(path: &Path) -> Result<()> {
    let (path, _) = resolve(path)?;
    for ending in BESIDE_A_DATABASE {
        check_trusted(&with_ending(&path, ending))?;
    }
    Ok(())
}

/// Fails if other users can change or replace files in a state directory. The directory must belong to this user or
/// root, and no other user may write to it, sticky or not. Returns whether it exists.
///
/// A symbolic link is followed, because the user named the directory, unless another user can change its target.
pub(crate) fn check_state_dir(path: &Path) -> Result<bool> {
    let followed = |link: Metadata| -> Result<Option<Metadata>> {
        if !link.is_symlink() {
            return Ok(Some(link));
        }
        // The directory that holds the link decides where it leads, so that one is checked too.
        resolve(path)?;
        metadata(path)
    };
    match path.symlink_metadata() {
        Ok(found) => match followed(found)? {
            Some(found) => check_private(path, &found).map(|()| true),
            None => Ok(false),
        },
        // Whoever uses the directory reports what is in its way.
        Err(_) => Ok(false),
    }
}

/// Fails if a file or directory of this user belongs to another, or if another can write to it.
pub(crate) fn check_private(path: &Path, found: &Metadata) -> Result<()> {
    check_owner(path, found, found.is_dir())?;
    check_mode(path, found, found.is_dir(), false)
}

/// Fails if other users can change or replace a path. A missing path is accepted.
pub(crate) fn check_private_path(path: &Path) -> Result<()> {
    metadata(path)?.map_or(Ok(()), |found| check_private(path, &found))
}

/// The same of the files that SQLite has beside a database.
pub(crate) fn check_private_beside(database: &Path) -> Result<()> {
    BESIDE_A_DATABASE.iter().try_for_each(|ending| check_private_path(&with_ending(database, ending)))
}

/// Makes a directory in a state directory; one that exists must be this user's own.
pub(crate) fn create_private_dir(path: &Path) -> Result<()> {
    create_dir(path, 0o700)?;
    check_private_path(path)
}

/// Checks each directory that leads to a file through links, and the file. Returns the file behind the links, and whether
/// other users can read it.
fn resolve(path: &Path) -> Result<(PathBuf, bool)> {
    let mut path = path.to_owned();
    // Link by link: a user who can replace any one of them can replace the file.
    for _ in 0..MOST_LINKS {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if let Ok(dir) = dir.canonicalize()
            && let Some(found) = metadata(&dir)?
        {
            check(&dir, &found, true)?;
        }
        if let Ok(link) = path.symlink_metadata()
            && link.is_symlink()
        {
            // The mode of a link means nothing; its owner can replace it in a sticky directory.
            check_owner(&path, &link, false)?;
        }
        // A link in /proc names no file.
        match std::fs::read_link(&path).map(|target| dir.join(target)) {
            Ok(target) if target.symlink_metadata().is_ok() || metadata(&path)?.is_none() => path = target,
            _ => break,
        }
    }
    let Some(found) = metadata(&path)? else { return Ok((path, false)) };
    check(&path, &found, false)?;
    Ok((path, found.mode() & OTHERS_READ != 0))
}

fn check(path: &Path, found: &Metadata, is_dir: bool) -> Result<()> {
    if is_named(found) {
        check_owner(path, found, is_dir)?;
    }
    check_mode(path, found, is_dir, is_dir)
}

/// A pipe or a terminal that was inherited has no name under which others replace it.
fn is_named(found: &Metadata) -> bool {
    found.is_file() || found.is_dir()
}

fn check_mode(path: &Path, found: &Metadata, is_dir: bool, may_be_sticky: bool) -> Result<()> {
    let mode = found.mode();
    // Nobody but the owner writes: there is no group to ask for.
    if mode & (OTHERS_WRITE | GROUP_WRITES) == 0 {
        return Ok(());
    }
    let is_other_group = is_named(found) && !is_own_group(found.gid(), found.uid());
    if can_others_write(mode, is_other_group, may_be_sticky) {
        return Err(FileError::WritableByOthers { path: path.to_owned(), mode: mode & 0o7777, is_dir }.into());
    }
    Ok(())
}

fn check_owner(path: &Path, found: &Metadata, is_dir: bool) -> Result<()> {
    // Root can change everything anyway.
    if [0, rustix::process::geteuid().as_raw()].contains(&found.uid()) {
        return Ok(());
    }
    Err(FileError::OwnedByAnother { path: path.to_owned(), uid: found.uid(), is_dir }.into())
}

/// Whether the group with write permission is this process's own, or was assigned by root.
fn is_own_group(gid: u32, owner: u32) -> bool {
    let is_member =
        || rustix::process::getgroups().is_ok_and(|groups| groups.iter().any(|group| group.as_raw() == gid));
    gid == rustix::process::getegid().as_raw() || (owner == 0 && is_member())
}

/// Whether users other than the owner and this process's own group can change a file, or replace files in a directory.
fn can_others_write(mode: u32, is_other_group: bool, is_dir: bool) -> bool {
    let writers = if is_other_group { OTHERS_WRITE | GROUP_WRITES } else { OTHERS_WRITE };
    mode & writers != 0 && !(is_dir && mode & STICKY != 0)
}

/// Metadata of a path, following links.
fn metadata(path: &Path) -> Result<Option<Metadata>> {
    match path.metadata() {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn group_may_write_only_if_it_is_the_process_s_own() {
        for (mode, is_other_group, is_dir, refused) in [
            (0o660, false, false, false),
            (0o660, true, false, true),
            (0o640, true, false, false),
            (0o602, false, false, true),
            (0o1602, false, false, true),
            (0o770, true, true, true),
            (0o770, false, true, false),
            (0o777, false, true, true),
            (0o1777, true, true, false),
        ] {
            assert_eq!(
                can_others_write(mode, is_other_group, is_dir),
                refused,
                "{mode:o} {is_other_group} {is_dir}"
            );
        }
    }

    #[test]
    fn directory_behind_a_link_is_checked() {
        let dir = tempfile::tempdir().unwrap();
        let (open, safe) = (dir.path().join("open"), dir.path().join("safe"));
        std::fs::create_dir(&open).unwrap();
        std::fs::create_dir(&safe).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        symlink("../open/store", safe.join("link")).unwrap();
        let refused = |path: &Path| {
            matches!(check_trusted(path), Err(Error::File(FileError::WritableByOthers { is_dir: true, .. })))
        };
        assert!(refused(&safe.join("link")), "the store does not exist yet");
        File::create_new(open.join("store")).unwrap();
        assert!(refused(&safe.join("link")));
        symlink("safe", dir.path().join("to-safe")).unwrap();
        assert!(refused(&dir.path().join("to-safe/link")));
        symlink(&safe, open.join("to-safe")).unwrap();
        File::create_new(safe.join("store")).unwrap();
        assert!(!refused(&dir.path().join("to-safe/store")));
        symlink(safe.join("store"), open.join("link")).unwrap();
        assert!(refused(&open.join("link")), "the link can be replaced");
    }

    #[test]
    fn files_beside_a_database_are_checked() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        File::create_new(&store).unwrap();
        assert!(check_trusted_database(&store).is_ok());
        let log = dir.path().join("store-wal");
        File::create_new(&log).unwrap();
        std::fs::set_permissions(&log, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(
            matches!(check_trusted_database(&store), Err(Error::File(FileError::WritableByOthers { path, .. })) if path == log)
        );
    }
}
