//! A directory that looks like the user's, made of links, in which what is private is the session's own.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::tool::seed::{link, make_dir};

/// The largest file of the home itself that is copied; a larger one is no setting.
const LARGEST_COPIED: u64 = 1024 * 1024;

/// What of a directory is not linked.
#[derive(Debug, Default)]
pub(crate) struct Private {
    /// Paths below it, and where in the room their copies are.
    pub(crate) copies: Vec<(PathBuf, PathBuf)>,
    /// Directories in which what is new stays private.
    pub(crate) open: Vec<PathBuf>,
    /// Whether hidden files at the top are copied: tools that nobody knows keep their state there.
    pub(crate) copy_hidden_files: bool,
}

/// Fills `at` with links to what is in `real`. What is there already stays.
pub(crate) fn grow(real: &Path, at: &Path, private: &Private) -> Result<()> {
    make_dir(at)?;
    level(real, at, Path::new(""), private)?;
    for (relative, copy) in &private.copies {
        let place = at.join(relative);
        if place.symlink_metadata().is_err() && copy.symlink_metadata().is_ok() {
            if let Some(parent) = place.parent() {
                make_dir(parent)?;
            }
            link(copy, &place)?;
        }
    }
    Ok(())
}

fn level(real: &Path, at: &Path, relative: &Path, private: &Private) -> Result<()> {
    let entries = match std::fs::read_dir(real) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("read", real, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("read", real, error))?;
        let (path, place, name) =
            (entry.path(), at.join(entry.file_name()), relative.join(entry.file_name()));
        let copy = private.copies.iter().find(|(private, _)| *private == name).map(|(_, copy)| copy);
        let leads_on = private.copies.iter().any(|(private, _)| private.starts_with(&name))
            || private.open.iter().any(|open| open.starts_with(&name))
            || place.symlink_metadata().is_ok_and(|found| found.is_dir());
        match copy {
            _ if place.symlink_metadata().is_ok_and(|found| !found.is_dir()) => {}
            // What the room has no copy of would be written to where the original is.
            Some(copy) if *copy != place => link(copy, &place)?,
            Some(_) => {}
            None if leads_on && path.is_dir() => {
                make_dir(&place)?;
                level(&path, &place, &name, private)?;
            }
            None if private.copy_hidden_files
                && relative.as_os_str().is_empty()
                && is_small_and_hidden(&path) =>
            {
                // Who cannot read it now could not have read it in the session either.
                if let Ok(bytes) = read_small(&path) {
                    put(&place, &bytes)?;
                }
            }
            None => link(&path, &place)?,
        }
    }
    Ok(())
}

fn is_small_and_hidden(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    hidden && path.metadata().is_ok_and(|found| found.is_file() && found.len() <= LARGEST_COPIED)
}

fn read_small(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LARGEST_COPIED).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let written = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    written.and_then(|mut file| file.write_all(bytes)).map_err(|error| Error::io("write", path, error))
}
