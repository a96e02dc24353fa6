//! The PIN that approvals may require, as a hash, and the failed attempts.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;
use crate::store::Store;

/// The PIN as it is stored.
#[derive(Clone, Debug)]
pub struct PinRow {
    /// An argon2 hash.
    pub hash: String,
    /// Failed attempts since the last successful one.
    pub failures: u32,
    /// Boot id at the last failed attempt.
    boot: Option<String>,
    /// Milliseconds since that boot at the last failed attempt.
    failed_boot_ms: Option<i64>,
}

/// Time of a PIN attempt. The wall clock is recorded and decides nothing.
#[derive(Clone, Debug)]
pub struct PinAttempt {
    /// The wall clock.
    pub wall_ms: i64,
    /// Boot id of the machine.
    pub boot: String,
    /// Milliseconds since that boot.
    pub boot_ms: i64,
}

impl PinRow {
    /// Milliseconds until another attempt is allowed, with a lockout of `lockout_ms` after the last failed attempt.
    ///
    /// Only the clock since boot counts: setting the wall clock ahead lifts nothing, and a lockout that began while the
    /// wall clock was wrong lasts no longer. After a reboot the time that passed before it is unknown, so that the
    /// lockout counts from the boot.
    pub fn locked_for_ms(&self, at: &PinAttempt, lockout_ms: i64) -> i64 {
        let elapsed = match (&self.boot, self.failed_boot_ms) {
            // Where the system has no boot id, a smaller number tells that it was booted again.
            (Some(boot), Some(failed_ms)) if *boot == at.boot && failed_ms <= at.boot_ms => {
                at.boot_ms - failed_ms
            }
            _ => at.boot_ms,
        };
        lockout_ms.saturating_sub(elapsed).max(0)
    }
}

fn pin(connection: &Connection) -> rusqlite::Result<Option<PinRow>> {
    connection
        .query_row("SELECT hash, failures, boot, failed_boot_ms FROM pin", [], |row| {
            Ok(PinRow {
                hash: row.get(0)?,
                failures: row.get(1)?,
                boot: row.get(2)?,
                failed_boot_ms: row.get(3)?,
            })
        })
        .optional()
}

impl Store {
    /// The PIN, if one is set.
    pub fn pin(&self) -> Result<Option<PinRow>> {
        self.read(pin)
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

    /// Counts an attempt *before* it is checked, so that killing the program does not win a free one; false, and not
    /// counted, during the lockout after `most` failed attempts. Attempts at once are counted one by one.
    pub fn count_pin_attempt(&mut self, at: &PinAttempt, most: u32, lockout_ms: i64) -> Result<bool> {
        self.write(|connection| {
            let Some(row) = pin(connection)? else { return Ok(false) };
            if row.failures >= most && row.locked_for_ms(at, lockout_ms) > 0 {
                return Ok(false);
            }
            connection.execute(
                "UPDATE pin SET failures = failures + 1, failed_ms = ?1, boot = ?2, failed_boot_ms = ?3",
                (at.wall_ms, &at.boot, at.boot_ms),
            )?;
            Ok(true)
        })
    }

    /// Resets the failed attempts, after a successful one.
    pub fn reset_pin_attempts(&mut self) -> Result<()> {
        self.write(|connection| connection.execute("UPDATE pin SET failures = 0", []).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Locker;
    use std::time::Duration;

    const MOST: u32 = 5;
    const LOCKOUT_MS: i64 = 300_000;

    fn at(boot: &str, boot_ms: i64) -> PinAttempt {
        PinAttempt { wall_ms: 0, boot: boot.into(), boot_ms }
    }

    /// A store with a PIN that is locked since this time.
    fn locked(dir: &std::path::Path, since: &PinAttempt) -> Store {
        let locker = Locker::new(Duration::from_secs(5));
        let mut store = Store::open_for_writing(&dir.join("state.db"), &locker).unwrap();
        store.set_pin(Some("hash")).unwrap();
        for _ in 0..MOST {
            assert!(store.count_pin_attempt(since, MOST, LOCKOUT_MS).unwrap());
        }
        store
    }

    #[test]
    fn lockout_lasts_its_time_on_the_clock_since_boot() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = locked(dir.path(), &at("b1", 1_000_000));
        let mut is_allowed = |boot_ms, wall_ms| {
            let at = PinAttempt { wall_ms, ..at("b1", boot_ms) };
            store.count_pin_attempt(&at, MOST, LOCKOUT_MS).unwrap()
        };
        for wall_ms in [0, i64::MAX, i64::MIN] {
            assert!(!is_allowed(1_000_000, wall_ms));
            assert!(!is_allowed(1_299_999, wall_ms));
        }
        assert!(is_allowed(1_300_000, i64::MIN), "whatever the wall clock says");
        assert!(!is_allowed(1_300_001, i64::MAX), "one attempt, which begins another lockout");
        assert_eq!(store.pin().unwrap().unwrap().locked_for_ms(&at("b1", 1_300_001), LOCKOUT_MS), 299_999);
    }

    #[test]
    fn reboot_neither_lifts_a_lockout_nor_extends_it_past_its_length() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = locked(dir.path(), &at("b1", 1_000_000));
        assert!(!store.count_pin_attempt(&at("b2", 20_000), MOST, LOCKOUT_MS).unwrap());
        assert!(!store.count_pin_attempt(&at("b2", 299_999), MOST, LOCKOUT_MS).unwrap());
        assert!(store.count_pin_attempt(&at("b2", 300_000), MOST, LOCKOUT_MS).unwrap());
    }

    #[test]
    fn reboot_without_a_boot_id_is_told_by_the_clock() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = locked(dir.path(), &at("", 1_000_000));
        assert!(!store.count_pin_attempt(&at("", 299_999), MOST, LOCKOUT_MS).unwrap());
        assert!(store.count_pin_attempt(&at("", 300_000), MOST, LOCKOUT_MS).unwrap());
    }

    #[test]
    fn pin_of_an_older_store_counts_from_the_boot() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = locked(dir.path(), &at("b1", 1_000_000));
        store
            .write(|connection| connection.execute("UPDATE pin SET boot = NULL, failed_boot_ms = NULL", []))
            .unwrap();
        assert!(!store.count_pin_attempt(&at("b1", 299_999), MOST, LOCKOUT_MS).unwrap());
        assert!(store.count_pin_attempt(&at("b1", 1_000_001), MOST, LOCKOUT_MS).unwrap());
    }
}
