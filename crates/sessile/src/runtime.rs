//! Runtime directory. It is used only if it is private to the user.
//!
//! The XDG specification demands a directory of the user's own with mode 0700. Where a login, a container or a script
//! sets `XDG_RUNTIME_DIR` to a shared directory, another user could put files there first and read what is written.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::text::shown;

/// Reason why no runtime directory is usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeProblem {
    /// No variable names one.
    Missing,
    /// Other users can get at it.
    Exposed {
        /// Directory at fault: the runtime directory, or the one that holds it.
        path: PathBuf,
        /// Problem with the directory.
        reason: &'static str,
    },
}

impl fmt::Display for RuntimeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuntimeProblem::Missing => f.write_str("no runtime directory is set"),
            RuntimeProblem::Exposed { path, reason } => {
                write!(f, "runtime directory {} {reason}", shown(path.display()))
            }
        }
    }
}

/// Fails unless a directory is this user's own, with mode 0700.
pub(crate) fn require_private(path: &Path, uid: u32) -> Result<(), RuntimeProblem> {
    // A link could be changed to another directory after the check.
    let reason = match path.symlink_metadata() {
        Err(_) => "does not exist",
        Ok(found) if !found.is_dir() => "is not a directory",
        Ok(found) if found.uid() != uid => "belongs to another user",
        Ok(found) if found.mode() & 0o077 != 0 => "is open to other users: its mode must be 0700",
        Ok(_) => return Ok(()),
    };
    Err(RuntimeProblem::Exposed { path: path.to_owned(), reason })
}

/// Fails unless a directory can be made, or kept, at this path without anyone else being able to replace it.
pub(crate) fn require_private_place(path: &Path, uid: u32) -> Result<(), RuntimeProblem> {
    if path.symlink_metadata().is_ok() {
        require_private(path, uid)?;
    }
    // The directory itself may be made by this call, so the first one that exists decides.
    let Some(above) = path.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok()) else {
        return Ok(());
    };
    let reason = match above.metadata() {
        Ok(found) if found.uid() != uid && found.uid() != 0 => "is in a directory of another user",
        // In a sticky directory only its owner can replace it.
        Ok(found) if found.mode() & 0o022 != 0 && found.mode() & 0o1000 == 0 => {
            "is in a directory that others can write in"
        }
        Ok(_) => return Ok(()),
        Err(_) => "cannot be reached",
    };
    Err(RuntimeProblem::Exposed { path: path.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn dir(root: &Path, name: &str, mode: u32) -> PathBuf {
        let path = root.join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn only_a_directory_of_mode_0700_is_private() {
        let root = tempfile::tempdir().unwrap();
        let uid = rustix::process::getuid().as_raw();
        assert!(require_private(&dir(root.path(), "own", 0o700), uid).is_ok());
        for (name, mode) in [("read", 0o750), ("entered", 0o701), ("shared", 0o1777), ("usual", 0o755)] {
            assert!(require_private(&dir(root.path(), name, mode), uid).is_err(), "{name}");
        }
        assert!(require_private(&root.path().join("own"), uid + 1).is_err());
        std::os::unix::fs::symlink("own", root.path().join("link")).unwrap();
        assert!(require_private(&root.path().join("link"), uid).is_err());
        assert!(require_private(&root.path().join("missing"), uid).is_err());
    }

    #[test]
    fn path_in_a_shared_directory_is_private_only_if_sticky() {
        let root = tempfile::tempdir().unwrap();
        let uid = rustix::process::getuid().as_raw();
        for (name, mode, wanted) in [("own", 0o755, true), ("sticky", 0o1777, true), ("open", 0o777, false)] {
            let above = dir(root.path(), name, mode);
            assert_eq!(require_private_place(&above.join("new/below"), uid).is_ok(), wanted, "{name}");
            assert_eq!(require_private_place(&dir(&above, "made", 0o700), uid).is_ok(), wanted, "{name}");
            assert!(require_private_place(&dir(&above, "exposed", 0o755), uid).is_err(), "{name}");
        }
    }
}
