//! Reading what people keep: bounded, text only, and never waiting for a pipe.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::error::{Error, FileError, Result};

/// The largest file that is read as settings or as a context.
pub const LIMIT: u64 = 1024 * 1024;

/// Text of a file; `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<String>> {
    read_up_to(path, LIMIT)
}

/// The same for files that may be larger than settings are.
pub fn read_up_to(path: &Path, limit: u64) -> Result<Option<String>> {
    read_checked(path, limit, |_| Ok(()))
}

/// The same for files that must pass a check, which looks at the opened file.
pub(crate) fn read_checked(
    path: &Path,
    limit: u64,
    check: impl FnOnce(&Metadata) -> Result<()>,
) -> Result<Option<String>> {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            // A socket cannot even be opened.
            if let Ok(metadata) = path.metadata() {
                require_file(path, &metadata)?;
            }
            return Err(Error::io("read", path, error));
        }
    };
    let text = read_opened(file, path, limit, check)?;
    tracing::debug!(path = %path.display(), bytes = text.len(), "read file");
    Ok(Some(text))
}

/// The text of an opened file, if it is a regular one and passes the check.
pub(super) fn read_opened(
    file: File,
    path: &Path,
    limit: u64,
    check: impl FnOnce(&Metadata) -> Result<()>,
) -> Result<String> {
    let metadata = file.metadata().map_err(|error| Error::io("read", path, error))?;
    require_file(path, &metadata)?;
    check(&metadata)?;
    let too_large = |size| Error::File(FileError::TooLarge { path: path.to_owned(), size, limit });
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    // One byte more than the size: `read_to_end` sees the end of the file without growing the buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    // The file may grow after the `stat`.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| Error::io("read", path, error))?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    String::from_utf8(bytes).map_err(|error| {
        Error::File(FileError::NotUtf8 { path: path.to_owned(), offset: error.utf8_error().valid_up_to() })
    })
}

/// Fails if a path does not exist because it, or a directory above it, is a link to something missing. The file may exist
/// elsewhere now, so its absence means nothing.
pub(crate) fn require_no_dangling_link(path: &Path) -> Result<()> {
    let mut parts = path.ancestors();
    let deepest = parts.find_map(|part| Some((part, part.symlink_metadata().ok()?)));
    match deepest {
        Some((part, found)) if found.is_symlink() && !part.exists() => {
            Err(FileError::DanglingLink(part.to_owned()).into())
        }
        _ => Ok(()),
    }
}

/// Fails if something else than a file is in the place of one.
pub(crate) fn require_file(path: &Path, metadata: &Metadata) -> Result<()> {
    let kind = metadata.file_type();
    require_file_type(
        path,
        match () {
            () if kind.is_file() => FileType::RegularFile,
            () if kind.is_dir() => FileType::Directory,
            () if kind.is_fifo() => FileType::Fifo,
            () if kind.is_socket() => FileType::Socket,
            () if kind.is_symlink() => FileType::Symlink,
            () => FileType::Unknown,
        },
    )
}

/// Check of a file type that was read through its directory.
pub(super) fn require_file_type(path: &Path, kind: FileType) -> Result<()> {
    let found = match kind {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::Symlink => "a link",
        _ => "a device",
    };
    Err(FileError::NotAFile { path: path.to_owned(), found }.into())
}

/// The path with symbolic links at its end followed, so that a linked dotfile stays a link when written.
pub fn resolve_links(path: &Path) -> Result<PathBuf> {
    let mut real = path.to_owned();
    // The limit of Linux itself.
    for _ in 0..40 {
        match real.read_link() {
            Ok(target) => real = real.parent().map_or_else(|| target.clone(), |dir| dir.join(&target)),
            Err(_) => return Ok(real),
        }
    }
    Err(Error::io("follow", path, std::io::Error::other("too many symbolic links")))
}
