//! Paths that a preparation makes in a room.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::error::Result;
use crate::tool::seed::{make_dir, remove};

/// Paths that a preparation has made in a room. Known paths are not looked up again. In a new room, an unknown path does not exist.
#[derive(Debug, Default)]
pub(crate) struct PlantedPaths {
    /// Whether the room had no state of tools before.
    is_new: Cell<bool>,
    /// With whether it is a directory that exists.
    paths: RefCell<BTreeMap<OsString, bool>>,
}

impl PlantedPaths {
    /// Of a room that may be new.
    pub(crate) fn of(is_new: bool) -> Self {
        PlantedPaths { is_new: Cell::new(is_new), paths: RefCell::default() }
    }

    /// Forgets all of them, once others remove paths too: from now on each is looked up.
    pub(crate) fn forget(&self) {
        self.is_new.set(false);
        self.paths.borrow_mut().clear();
    }

    /// Makes a directory of the room.
    pub(crate) fn make_dir(&self, dir: &Path) -> Result<()> {
        if self.paths.borrow().get(dir.as_os_str()) == Some(&true) {
            return Ok(());
        }
        make_dir(dir)?;
        self.paths.borrow_mut().insert(dir.as_os_str().to_owned(), true);
        Ok(())
    }

    /// Removes what may be at a path.
    pub(super) fn clear(&self, path: &Path) -> Result<()> {
        let below = below(path);
        let is_made = {
            let paths = self.paths.borrow();
            let mut others = paths.range(below.clone()..);
            paths.contains_key(path.as_os_str())
                || others.next().is_some_and(|(found, _)| is_in(found, &below))
        };
        if self.is_new.get() && !is_made { Ok(()) } else { self.remove(path) }
    }

    /// Removes what is at a path.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        let below = below(path);
        self.paths.borrow_mut().retain(|found, _| found != path.as_os_str() && !is_in(found, &below));
        remove(path)
    }

    /// Notes a path at which something may be from now on.
    pub(super) fn add(&self, path: &Path) {
        self.paths.borrow_mut().insert(path.as_os_str().to_owned(), false);
    }
}

/// Beginning of the paths below one.
fn below(path: &Path) -> OsString {
    let mut below = path.as_os_str().to_owned();
    below.push("/");
    below
}

fn is_in(path: &OsStr, below: &OsStr) -> bool {
    path.as_encoded_bytes().starts_with(below.as_encoded_bytes())
}
