//! Symlink farms: a directory that mirrors the user's by links, except for the session's private entries.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result, SessionError};
use crate::tool::seed::{copy, link, make_dir};

/// Maximum size of a file or directory that counts as state of an unknown tool; a larger one is data, and linked.
const LARGEST_FILE: u64 = 1024 * 1024;
const LARGEST_DIR: u64 = 8 * 1024 * 1024;
const MOST_ENTRIES: usize = 1000;

/// Paths of a directory that are not simply linked.
#[derive(Debug, Default)]
pub(crate) struct PrivatePaths {
    /// Paths below it, and where in the room their copies are.
    pub(crate) copies: Vec<(PathBuf, PathBuf)>,
    /// Paths below it that stay shared whatever they are.
    pub(crate) shared: Vec<PathBuf>,
    /// Directories of state: small entries are copied, and new ones stay private.
    pub(crate) state: Vec<PathBuf>,
    /// Whether hidden entries of the directory itself are state too.
    pub(crate) hidden_is_state: bool,
}

/// Fills `at` with the entries of `real`. Existing entries stay.
pub(crate) fn build(real: &Path, at: &Path, private: &PrivatePaths) -> Result<()> {
    // What is put into the directory must stay in the room.
    if at.is_symlink() {
        return Err(SessionError::UnsafeRoom { path: at.to_owned(), reason: "a symbolic link" }.into());
    }
    make_dir(at)?;
    level(real, at, Path::new(""), private)?;
    for (relative, copy) in &private.copies {
        let place = at.join(relative);
        if place.symlink_metadata().is_err() && copy.symlink_metadata().is_ok() {
            if let Some(parent) = place.parent() {
                make_dir(parent)?;
            }
            link_copy(copy, &place)?;
        }
    }
    Ok(())
}

/// Links a copy in the room by a relative path, which stays right when the room gets another name.
fn link_copy(copy: &Path, place: &Path) -> Result<()> {
    let dir = place.parent().unwrap_or(place);
    let common = dir.components().zip(copy.components()).take_while(|(one, other)| one == other).count();
    let mut target: PathBuf = dir.components().skip(common).map(|_| "..").collect();
    target.extend(copy.components().skip(common));
    link(&target, place)
}

fn level(real: &Path, at: &Path, relative: &Path, private: &PrivatePaths) -> Result<()> {
    let entries = match std::fs::read_dir(real) {
        Ok(entries) => entries,
        // The user has no such directory yet; the farm is then empty.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("read", real, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("read", real, error))?;
        let (path, place) = (entry.path(), at.join(entry.file_name()));
        let name = relative.join(entry.file_name());
        match private.copies.iter().find(|(private, _)| *private == name) {
            // An existing entry is the session's, or a link of an earlier preparation.
            _ if place.symlink_metadata().is_ok_and(|found| !found.is_dir()) => {}
            Some((_, copy)) if *copy != place => link_copy(copy, &place)?,
            Some(_) => {}
            // A linked directory could not hold a private copy, so the way to one is made of real
            // directories.
            None if private.leads_on(&name) && path.is_dir() => {
                make_dir(&place)?;
                level(&path, &place, &name, private)?;
            }
            // Who cannot read it now could not have read it in the session either.
            None if private.is_state(&name) && is_small(&path) => drop(copy(&path, &place)),
            None => link(&path, &place)?,
        }
    }
    Ok(())
}

impl PrivatePaths {
    /// Whether something below is private.
    fn leads_on(&self, name: &Path) -> bool {
        self.copies.iter().any(|(private, _)| private.starts_with(name))
            || self.state.iter().any(|state| state.starts_with(name))
    }

    fn is_state(&self, name: &Path) -> bool {
        let is_shared = self.shared.iter().any(|shared| shared.starts_with(name) || name.starts_with(shared));
        let is_top = name.parent().is_some_and(|parent| parent.as_os_str().is_empty());
        let is_hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
        let is_in_state = self.state.iter().any(|state| name.parent() == Some(state));
        !is_shared && ((self.hidden_is_state && is_top && is_hidden) || is_in_state)
    }
}

/// Whether a file or a directory is small enough to be state. A directory with a socket belongs to who listens there.
fn is_small(path: &Path) -> bool {
    // Links are followed: many keep the real files in a repository of their own.
    let Ok(found) = path.metadata() else { return false };
    if found.is_file() {
        return found.len() <= LARGEST_FILE;
    }
    let (mut bytes, mut count, mut dirs) = (0, 0, vec![path.to_owned()]);
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = std::fs::read_dir(dir) else { return false };
        for entry in entries.flatten() {
            let Ok(found) = entry.path().metadata() else { continue };
            match () {
                () if found.is_dir() => dirs.push(entry.path()),
                () if found.is_file() => bytes += found.len(),
                () => return false,
            }
            count += 1;
            if bytes > LARGEST_DIR || count > MOST_ENTRIES {
                return false;
            }
        }
    }
    found.is_dir()
}
