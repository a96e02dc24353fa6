//! Whether other users of the machine can change a file.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Write permission of users who are neither the owner nor in the group.
const OTHERS_WRITE: u32 = 0o002;

/// Read permission of the same.
const OTHERS_READ: u32 = 0o004;

/// In a directory with this bit nobody replaces a file that belongs to another user.
const STICKY: u32 = 0o1000;

/// Fails if other users can change a file, or replace it by way of its directory. A file that does not exist yet needs a safe
/// directory only. Whether other users can read the file.
pub fn check_trusted(path: &Path) -> Result<bool> {
    let exposed =
        |path: PathBuf, mode: u32, is_dir| Error::WritableByOthers { path, mode: mode & 0o7777, is_dir };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Some(mode) = mode(dir)?
        && mode & OTHERS_WRITE != 0
        && mode & STICKY == 0
    {
        return Err(exposed(dir.to_owned(), mode, true));
    }
    match mode(path)? {
        Some(mode) if mode & OTHERS_WRITE != 0 => Err(exposed(path.to_owned(), mode, false)),
        Some(mode) => Ok(mode & OTHERS_READ != 0),
        None => Ok(false),
    }
}

/// The mode of what a path leads to.
fn mode(path: &Path) -> Result<Option<u32>> {
    match path.metadata() {
        Ok(found) => Ok(Some(found.mode())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, error)),
    }
}
