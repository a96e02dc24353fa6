//! The database file of a state, for services that keep tables of their own in one.
//!
//! [`connect`] opens it with the library's tables up to date; [`back_up`], [`BackupSnapshot`] and [`ExclusiveDatabase`]
//! are the parts of a backup and a restore that do not depend on the tables.
//!
//! Not for: an application's state, which is [`crate::state::State`]'s.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::{FileError, Result};
use crate::files::Locker;
use crate::store::Store;

pub use crate::store::{
    BackupSnapshot, SENT_CHANGE, column_list, is_unfit_row, missing_column, new_in_memory, raise_revisions,
    save_revisions,
};

/// Opens a database for writing. One that does not exist is created, an older one migrated.
pub fn connect(path: &Path, locker: &Locker) -> Result<Connection> {
    Store::open_for_writing(path, locker).and_then(Store::into_connection)
}

/// Copies a database into a new file while others use it; without a target, beside the database. Returns its path.
pub fn back_up(path: &Path, target: Option<&Path>, locker: &Locker, now_ms: i64) -> Result<PathBuf> {
    // A backup must not create the database that it copies.
    let store = Store::open_for_reading(path, locker)?.ok_or_else(|| FileError::NotFound(path.to_owned()))?;
    store.back_up(target, now_ms)
}

/// Database that no other process has open.
pub struct ExclusiveDatabase {
    store: Store,
}

impl ExclusiveDatabase {
    /// Opens a database and keeps others out until it is closed. Fails with [`FileError::Locked`] while any other
    /// connection has it open, busy or idle.
    pub fn open(path: &Path, locker: &Locker) -> Result<Self> {
        Ok(ExclusiveDatabase { store: Store::open_exclusive(path, locker)? })
    }

    /// Copies the content that a restore replaces into a new file beside the database. Returns its path.
    pub fn keep_replaced(&self, now_ms: i64) -> Result<PathBuf> {
        self.store.keep_replaced(now_ms)
    }

    /// The connection.
    pub fn into_connection(self) -> Result<Connection> {
        self.store.into_connection()
    }
}
