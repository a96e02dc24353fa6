//! The directory of a session's sockets: outside the room, because their paths must be short, and removed with it.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files::NoFollowDir;

/// A link in the room to the directory.
pub(super) const LINK: &str = "sockets";
/// A file in the directory that names its session. Without it the directory is not the session's to remove.
const OWNER: &str = ".session";

/// The name of the directory: the end of a session's id, which is random.
pub(crate) fn sockets_name(id: &str) -> &str {
    id.get(id.len().saturating_sub(12)..).unwrap_or(id)
}

/// Makes a directory the one of a room's sockets.
pub(crate) fn claim(room: &Path, dir: &Path) -> Result<()> {
    let fail = |error| Error::io("write", dir, error);
    let id = room.file_name().unwrap_or_default();
    match NoFollowDir::open(dir).and_then(|dir| dir.create_file(OWNER.as_ref(), 0o600)) {
        Ok(mut file) => file.write_all(id.as_encoded_bytes()).map_err(fail)?,
        // Claimed by an earlier command of the session. A foreign mark is noticed when it is removed.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(fail(error)),
    }
    let link = room.join(LINK);
    if link.symlink_metadata().is_err() {
        std::os::unix::fs::symlink(dir, &link).map_err(|error| Error::io("link", link, error))?;
    }
    Ok(())
}

/// Directory of a room's sockets, if it has one.
pub(crate) fn directory(room: &Path) -> Option<PathBuf> {
    room.join(LINK).read_link().ok()
}

/// Removes the directory of a room's sockets. A command may have changed the link in the room. So its target is
/// removed only if it is a private directory of the same user, with the name and the mark of this session.
pub(crate) fn remove(room: &Path) {
    let Ok(dir) = room.join(LINK).read_link() else { return };
    if let (Some(parent), Some(name)) = (dir.parent(), dir.file_name())
        && let Ok(parent) = NoFollowDir::open(parent)
        && is_own(room, &parent, name).unwrap_or(false)
    {
        // A left-over directory of sockets must not keep the room from being removed.
        let _ = parent.remove_tree(name);
    }
}

fn is_own(room: &Path, parent: &NoFollowDir, name: &OsStr) -> std::io::Result<bool> {
    let id = room.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let short = sockets_name(id);
    // The name is a rule of this program's; a link that was changed could lead to any directory.
    let is_named = name.to_str().is_some_and(|name| name == short || name.ends_with(&format!("-{short}")));
    if short.is_empty() || !is_named {
        return Ok(false);
    }
    let dir = parent.enter(name)?;
    let found = dir.stat()?;
    let is_private = found.st_mode & 0o077 == 0 && found.st_uid == room.symlink_metadata()?.uid();
    let mut owner = String::new();
    dir.open_file(OWNER.as_ref())?.take(256).read_to_string(&mut owner)?;
    Ok(is_private && owner == id)
}
