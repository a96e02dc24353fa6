//! Reading what people keep: bounded, text only, and never waiting for a pipe.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The largest file that is read as settings or as a context.
pub const LIMIT: u64 = 1024 * 1024;

/// The text of a file, or `None` if there is no such file.
pub fn read(path: &Path) -> Result<Option<String>> {
    read_up_to(path, LIMIT)
}

/// The same for files that may be larger than settings are.
pub(crate) fn read_up_to(path: &Path, limit: u64) -> Result<Option<String>> {
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
    let metadata = file.metadata().map_err(|error| Error::io("read", path, error))?;
    require_file(path, &metadata)?;
    let too_large = |size| Error::FileTooLarge { path: path.to_owned(), size, limit };
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| Error::io("read", path, error))?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            Err(Error::FileNotUtf8 { path: path.to_owned(), offset: error.utf8_error().valid_up_to() })
        }
    }
}

/// Fails if something else than a file is in the place of one.
pub(crate) fn require_file(path: &Path, metadata: &Metadata) -> Result<()> {
    let kind = metadata.file_type();
    let found = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_symlink() => "a link",
        () => "a device",
    };
    Err(Error::NotAFile { path: path.to_owned(), found })
}

/// The path with symbolic links at its end followed, so that a linked dotfile stays a link when written.
pub fn resolve_links(path: &Path) -> Result<PathBuf> {
    let mut real = path.to_owned();
    for _ in 0..40 {
        match real.read_link() {
            Ok(target) => real = real.parent().map_or_else(|| target.clone(), |dir| dir.join(&target)),
            Err(_) => return Ok(real),
        }
    }
    Err(Error::io("follow", path, std::io::Error::other("too many symbolic links")))
}

/// A small file of the kernel's, if it can be read.
pub(crate) fn read_kernel_file(path: &str) -> Option<String> {
    // Room for all of it: the kernel makes such a file anew for every read.
    let mut text = String::with_capacity(1024);
    File::open(path).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}
