//! The PIN that approvals may demand, as a hash, and how often a wrong one was tried.

use rusqlite::OptionalExtension;

use crate::error::Result;
use crate::store::Store;

/// The PIN as it is stored.
#[derive(Clone, Debug)]
pub struct PinRow {
    /// An argon2 hash.
    pub hash: String,
    /// Wrong tries since the last right one.
    pub failures: u32,
    /// When the last wrong one was.
    pub failed_ms: i64,
}

impl Store {
    /// The PIN, if one is set.
    pub fn pin(&self) -> Result<Option<PinRow>> {
        self.read(|connection| {
            connection
                .query_row("SELECT hash, failures, failed_ms FROM pin", [], |row| {
                    Ok(PinRow { hash: row.get(0)?, failures: row.get(1)?, failed_ms: row.get(2)? })
                })
                .optional()
        })
    }

    /// Sets the PIN, or removes it.
    pub fn set_pin(&mut self, hash: Option<&str>) -> Result<()> {
        self.write(|connection| {
            connection.execute("DELETE FROM pin", [])?;
            match hash {
                Some(hash) => {
                    connection.execute("INSERT INTO pin (id, hash) VALUES (1, ?1)", [hash]).map(drop)
                }
                None => Ok(()),
            }
        })
    }

    /// Counts a try *before* it is checked, so that killing the program does not win a free one; false, and not
    /// counted, if there were `most` wrong ones since `shut_since_ms`. Tries at once are counted one by one.
    pub fn count_pin_try(&mut self, now_ms: i64, most: u32, shut_since_ms: i64) -> Result<bool> {
        self.write(|connection| {
            let counted = connection.execute(
                "UPDATE pin SET failures = failures + 1, failed_ms = ?1 WHERE failures < ?2 OR failed_ms <= ?3",
                (now_ms, most, shut_since_ms),
            )?;
            Ok(counted > 0)
        })
    }

    /// Forgets the wrong tries, after a right one.
    pub fn forget_pin_tries(&mut self) -> Result<()> {
        self.write(|connection| connection.execute("UPDATE pin SET failures = 0", []).map(drop))
    }
}
