//! Files of a project, which come from a stranger: a link may not lead out of the project, and no other user may own them.
//!
//! Every component below the project's root is opened by itself, relative to the directory before it, and no link is
//! followed. So nothing can be exchanged between a check and its use. A link that stays inside the project is resolved
//! first, and the result is opened in the same way.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode, fstat, mkdirat, openat, statat};
use rustix::io::Errno;

use crate::error::{Error, FileError, ProjectError, Result, UnsafeFile, UnsafeReason};
use crate::files::lock::Locker;
use crate::files::locked_dir::{LockedDir, create_dir};
use crate::files::read::{LIMIT, read_opened, require_file_type};

/// Directories on the way to a file need not be readable.
#[cfg(target_os = "linux")]
const SEARCH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
// Other systems have no `O_PATH`.
const SEARCH: OFlags = OFlags::RDONLY;

/// The part of the file system that is below a root and belongs to one user or to root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProjectDir<'a> {
    root: &'a Path,
    uid: u32,
}

/// Result of opening a path without following links.
enum OpenResult {
    Open(OwnedFd),
    Missing,
    Link,
}

impl<'a> ProjectDir<'a> {
    /// Directory of a project, for a user.
    pub(crate) fn new(root: &'a Path, uid: u32) -> Self {
        ProjectDir { root, uid }
    }

    /// The text of a file; `None` if it does not exist.
    pub(crate) fn read(&self, relative: &Path) -> Result<Option<String>> {
        let path = self.root.join(relative);
        // Without O_NONBLOCK, opening a pipe would wait for a writer.
        let Some(file) = self.open(relative, OFlags::RDONLY | OFlags::NONBLOCK)? else { return Ok(None) };
        read_opened(File::from(file), &path, LIMIT, |found| self.require_owner(&path, found.uid())).map(Some)
    }

    /// The names in a directory; none if it does not exist.
    pub(crate) fn names(&self, relative: &Path) -> Result<Vec<PathBuf>> {
        let path = self.root.join(relative);
        let fail = |error: Errno| Error::io("read", &path, error.into());
        let Some(dir) = self.open(relative, OFlags::RDONLY | OFlags::DIRECTORY)? else {
            return Ok(Vec::new());
        };
        self.require_owner_of(&path, &dir)?;
        let mut names = Vec::new();
        for entry in Dir::new(dir).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            match entry.file_name().to_bytes() {
                b"." | b".." => {}
                name => names.push(PathBuf::from(OsStr::from_bytes(name))),
            }
        }
        Ok(names)
    }

    /// Locks the directory that holds a file, and makes it first if it does not exist; returns the file's name in it.
    pub(crate) fn lock_file(
        &self,
        locker: &Locker,
        relative: &Path,
        mode: u32,
    ) -> Result<(LockedDir, PathBuf)> {
        let path = self.root.join(relative);
        // The lock belongs to the directory that really holds the file, or two writers would not exclude each
        // other.
        let resolved = match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => Some(self.resolve(relative)?),
            Ok(found) => self.require_owner(&path, found.uid()).map(|()| None)?,
            Err(_) => None,
        };
        let relative = resolved.as_deref().unwrap_or(relative);
        let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else {
            return Err(FileError::NotAFile { path, found: "a directory" }.into());
        };
        Ok((self.lock(locker, parent, mode)?, PathBuf::from(name)))
    }

    /// Locks a directory, and makes it first if it does not exist.
    pub(crate) fn lock(&self, locker: &Locker, relative: &Path, mode: u32) -> Result<LockedDir> {
        let dir = self.create(relative, mode)?;
        LockedDir::of_handle(locker, self.root.join(relative), File::from(dir))
    }

    fn create(&self, relative: &Path, mode: u32) -> Result<OwnedFd> {
        create_dir(self.root, mode)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut dir = rustix::fs::open(self.root, flags, Mode::empty())
            .map_err(|error| Error::io("open", self.root, error.into()))?;
        let mut below = PathBuf::new();
        for name in relative.components() {
            below.push(name);
            let path = self.root.join(&below);
            let next = match self.open(&below, flags)? {
                Some(next) => next,
                None => {
                    let fail = |error: Errno| Error::io("make directory", &path, error.into());
                    match mkdirat(&dir, name.as_os_str(), Mode::from_raw_mode(mode as RawMode)) {
                        // A new directory is durable once its parent is.
                        Ok(()) => rustix::fs::fsync(&dir).map_err(fail)?,
                        // Another process was faster. Its directory is opened without following a link, and
                        // its owner is checked.
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(fail(error)),
                    }
                    openat(&dir, name.as_os_str(), flags | OFlags::NOFOLLOW, Mode::empty()).map_err(fail)?
                }
            };
            self.require_owner_of(&path, &next)?;
            dir = next;
        }
        Ok(dir)
    }

    /// Opens a path; the caller checks the owner.
    fn open(&self, relative: &Path, flags: OFlags) -> Result<Option<OwnedFd>> {
        match self.open_without_links(self.root, relative, flags)? {
            OpenResult::Open(opened) => Ok(Some(opened)),
            OpenResult::Missing => Ok(None),
            OpenResult::Link => {
                // Links are compared by real paths, and the root itself may be reached through one.
                let root = self.real_root()?;
                let resolved = self.resolve(relative)?;
                match self.open_without_links(&root, &resolved, flags)? {
                    OpenResult::Open(opened) => Ok(Some(opened)),
                    OpenResult::Missing => Ok(None),
                    // It was exchanged since.
                    OpenResult::Link => Err(self.link(relative)),
                }
            }
        }
    }

    /// Opens each component relative to the one before it.
    fn open_without_links(&self, root: &Path, relative: &Path, flags: OFlags) -> Result<OpenResult> {
        let mut names = relative.components().peekable();
        let mut path = root.to_owned();
        let mut dir: Option<OwnedFd> = None;
        while let Some(name) = names.next() {
            let Component::Normal(name) = name else { return Err(self.link(relative)) };
            path.push(name);
            let is_last = names.peek().is_none();
            let wanted = if is_last { flags } else { SEARCH | OFlags::DIRECTORY };
            let wanted = wanted | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = match &dir {
                None => rustix::fs::open(&path, wanted, Mode::empty()),
                Some(dir) => openat(dir, name, wanted, Mode::empty()),
            };
            let opened = match opened {
                Ok(opened) => opened,
                Err(Errno::NOENT) => return Ok(OpenResult::Missing),
                Err(error) => {
                    // The error alone does not identify a link: with `O_DIRECTORY` it is ENOTDIR, else ELOOP.
                    let found = match &dir {
                        None => rustix::fs::lstat(&path),
                        Some(dir) => statat(dir, name, AtFlags::SYMLINK_NOFOLLOW),
                    };
                    let kind = found.ok().map(|found| FileType::from_raw_mode(found.st_mode));
                    if kind == Some(FileType::Symlink) {
                        return Ok(OpenResult::Link);
                    }
                    // A pipe, socket or device is named as such. The error of the system would not say so.
                    if let Some(kind) = kind.filter(|_| is_last && !flags.contains(OFlags::DIRECTORY)) {
                        require_file_type(&path, kind)?;
                    }
                    return Err(Error::io("open", path, error.into()));
                }
            };
            if is_last {
                return Ok(OpenResult::Open(opened));
            }
            self.require_owner_of(&path, &opened)?;
            dir = Some(opened);
        }
        Err(Error::io("open", path, io::ErrorKind::IsADirectory.into()))
    }

    /// Path with its symbolic links resolved, if it is below the root. The path need not exist, but the target of a
    /// link must.
    fn resolve(&self, relative: &Path) -> Result<PathBuf> {
        let root = self.real_root()?;
        let path = root.join(relative);
        // Only what exists can be resolved, so the last link on the way is found from the end.
        if path.is_symlink() {
            let real = path.canonicalize().map_err(|_| self.link(relative))?;
            return real.strip_prefix(&root).map(Path::to_owned).map_err(|_| self.link(relative));
        }
        match (relative.parent(), relative.file_name()) {
            (Some(parent), Some(name)) => Ok(self.resolve(parent)?.join(name)),
            _ => Ok(relative.to_owned()),
        }
    }

    fn real_root(&self) -> Result<PathBuf> {
        self.root.canonicalize().map_err(|error| Error::io("open", self.root, error))
    }

    fn link(&self, relative: &Path) -> Error {
        Error::Project(ProjectError::UnsafeFile(UnsafeFile {
            path: self.root.join(relative),
            reason: UnsafeReason::Link,
        }))
    }

    fn require_owner_of(&self, path: &Path, opened: &OwnedFd) -> Result<()> {
        let found = fstat(opened).map_err(|error| Error::io("open", path, error.into()))?;
        self.require_owner(path, found.st_uid)
    }

    fn require_owner(&self, path: &Path, owner: u32) -> Result<()> {
        if is_own(self.uid, owner) {
            return Ok(());
        }
        Err(ProjectError::UnsafeFile(UnsafeFile {
            path: path.to_owned(),
            reason: UnsafeReason::Owner(owner),
        })
        .into())
    }
}

/// Whether a file's owner may decide for a user: the user or root, who decides anyway.
pub(crate) fn is_own(uid: u32, owner: u32) -> bool {
    owner == uid || owner == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    fn beneath(root: &Path) -> ProjectDir<'_> {
        ProjectDir::new(root, rustix::process::getuid().as_raw())
    }

    fn write(path: &Path, text: &str) {
        create_dir(path.parent().unwrap(), 0o755).unwrap();
        let dir = LockedDir::lock(&Locker::new(Duration::ZERO), path.parent().unwrap(), 0o755).unwrap();
        dir.replace(Path::new(path.file_name().unwrap()), text, 0o644).unwrap();
    }

    fn is_refused<T>(result: Result<T>) -> bool {
        matches!(result, Err(Error::Project(ProjectError::UnsafeFile(file))) if file.reason == UnsafeReason::Link)
    }

    #[test]
    fn link_is_followed_inside_the_root_and_refused_outside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        write(&root.join("inner/a"), "inside");
        write(&dir.path().join("outer/a"), "outside");
        for (target, name) in
            [("../inner", "in"), ("../../outer", "out"), ("../gone", "dangling"), ("loop", "loop")]
        {
            create_dir(&root.join("s"), 0o755).unwrap();
            symlink(target, root.join("s").join(name)).unwrap();
        }
        let beneath = beneath(&root);
        assert_eq!(beneath.read(Path::new("s/in/a")).unwrap().unwrap(), "inside");
        for missing in ["s/missing", "s/in/missing", "s/in/missing/a"] {
            assert_eq!(beneath.read(Path::new(missing)).unwrap(), None, "{missing}");
        }
        assert_eq!(beneath.names(Path::new("s/in")).unwrap(), [PathBuf::from("a")]);
        let locker = Locker::new(Duration::ZERO);
        for name in ["s/out/a", "s/out/b", "s/dangling/a", "s/loop/a", "s/../../outer/a"] {
            let name = Path::new(name);
            assert!(is_refused(beneath.read(name)), "{}", name.display());
            assert!(beneath.lock_file(&locker, name, 0o755).is_err(), "{}", name.display());
        }
        assert!(is_refused(beneath.names(Path::new("s/out"))));
        assert!(is_refused(beneath.lock(&locker, Path::new("s/dangling"), 0o755)));
        assert!(!root.join("gone").exists());
        let (locked, name) = beneath.lock_file(&locker, Path::new("s/in/new/b"), 0o755).unwrap();
        locked.replace(&name, "text", 0o644).unwrap();
        assert_eq!(beneath.read(Path::new("inner/new/b")).unwrap().unwrap(), "text");
    }

    #[test]
    fn directory_replaced_by_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        write(&root.join("s/a"), "old");
        write(&dir.path().join("outer/a"), "outside");
        let locker = Locker::new(Duration::ZERO);
        let (locked, name) = beneath(&root).lock_file(&locker, Path::new("s/a"), 0o755).unwrap();
        std::process::Command::new("mv").arg(root.join("s")).arg(root.join("moved")).status().unwrap();
        symlink("../outer", root.join("s")).unwrap();
        assert_eq!(locked.read(&name).unwrap().unwrap(), "old");
        locked.replace(&name, "new", 0o644).unwrap();
        locked.remove(&name).unwrap();
        assert_eq!(crate::files::read(&dir.path().join("outer/a")).unwrap().unwrap(), "outside");
    }

    #[test]
    fn special_file_in_the_place_of_a_file_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        create_dir(&dir.path().join("s/a"), 0o755).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s/b")).unwrap();
        for (name, what) in [("s/a", "a directory"), ("s/b", "a socket")] {
            let error = beneath(dir.path()).read(Path::new(name)).unwrap_err();
            assert!(
                matches!(error, Error::File(FileError::NotAFile { found, .. }) if found == what),
                "{error}"
            );
        }
    }
}
