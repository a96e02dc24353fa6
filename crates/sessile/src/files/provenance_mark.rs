//! The mark on state that this program created beside a `--config` file.
//!
//! The file is often in a working tree, where a checkout or a pull can add files and directories to its state directory.
//! Version control creates them with the mode that the umask leaves, and cannot carry the sticky bit. So this program sets that
//! bit on whatever it creates there and trusts later, and refuses what does not have it.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::{Error, FileError, Result};

/// The sticky bit.
pub(crate) const MARK: u32 = 0o1000;

/// Permissions of the group and of other users, which marked state does not have.
const OTHERS: u32 = 0o077;

/// Entries of a state directory that commands trust.
const TRUSTED: [&str; 10] = [
    "state.db",
    "state.db-wal",
    "state.db-journal",
    "rooms",
    "vault",
    "vault/credentials",
    "vault/key",
    "vault/renewing",
    "tickets",
    "intents",
];

/// Directory of a service in a state directory, and the files of its store.
const SERVICE: &str = "service";
const SERVICE_STORE: [&str; 3] = ["service.db", "service.db-wal", "service.db-journal"];

/// Whether metadata are those of a marked file or directory: with the sticky bit, and closed to other users. A shared directory
/// for temporary files is sticky too, and open.
pub(crate) fn is_marked(found: &Metadata) -> bool {
    found.mode() & (MARK | OTHERS) == MARK
}

/// Fails if a state directory, or an entry that commands trust, is a link or not marked. Returns whether the directory exists.
pub(crate) fn check_marked_state(dir: &Path) -> Result<bool> {
    if !check_marked(dir)? {
        return Ok(false);
    }
    for entry in TRUSTED {
        check_marked(&dir.join(entry))?;
    }
    let service = dir.join(SERVICE);
    if check_marked(&service)? {
        for entry in SERVICE_STORE {
            check_marked(&service.join(entry))?;
        }
    }
    Ok(true)
}

/// Fails if something other than marked state of this user is at a path. Returns whether anything is.
pub(crate) fn check_marked(path: &Path) -> Result<bool> {
    let Some(found) = entry(path)? else { return Ok(false) };
    if is_marked(&found) { Ok(true) } else { Err(unmarked(path, &found)) }
}

/// Metadata of a path; `None` for a symbolic link or another user's file.
fn entry(path: &Path) -> Result<Option<Metadata>> {
    // Whoever uses the path reports what is in its way.
    let Ok(found) = path.symlink_metadata() else { return Ok(None) };
    if found.is_symlink() {
        // A checkout can carry a link, and its target may be a marked directory.
        return Err(FileError::LinkedState(path.to_owned()).into());
    }
    super::check_private(path, &found)?;
    Ok(Some(found))
}

fn unmarked(path: &Path, found: &Metadata) -> Error {
    let mode = found.mode() & 0o7777;
    FileError::UnmarkedState { path: path.to_owned(), mode, is_dir: found.is_dir() }.into()
}

/// Creates a directory, with the mark if the mode has it.
pub(super) fn make_dir(dir: &Path, mode: u32) -> std::io::Result<()> {
    DirBuilder::new().mode(mode).create(dir)?;
    // Not every system takes the bit from mkdir.
    if cfg!(not(target_os = "linux")) && mode & MARK != 0 {
        std::fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    }
    Ok(())
}

/// Creates an empty file with the mark. One that exists is an error.
pub(crate) fn make_file(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600 | MARK).open(path)?;
    if cfg!(not(target_os = "linux")) {
        mark_file(&file)?;
    }
    Ok(file)
}

/// Sets the mark on a private file.
pub(crate) fn mark_file(file: &File) -> std::io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600 | MARK))
}
