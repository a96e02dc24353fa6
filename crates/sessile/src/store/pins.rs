//! The PIN that approvals may require, as a hash, and the failed attempts.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;
use crate::store::Store;

/// Row of the PIN.
#[derive(Clone, Debug)]
pub(crate) struct PinRow {
    /// An argon2 hash.
    pub hash: String,
    /// Failed attempts since the last successful one.
    pub failures: u32,
    /// Boot id at the last failed attempt.
    boot: Option<String>,
    /// Milliseconds since that boot at the last failed attempt.
    failed_boot_ms: Option<i64>,
}

/// Result of reserving a PIN attempt.
#[derive(Clone, Debug)]
pub(crate) enum PinReservation {
    /// No PIN is set.
    NoPin,
    /// The PIN is locked; the attempt is not counted.
    Locked {
        /// Failed attempts so far.
        failures: u32,
        /// Milliseconds until another attempt is allowed.
        left_ms: i64,
    },
    /// The attempt is counted as failed and may be checked against this PIN.
    Granted(PinRow),
}

/// Time of a PIN attempt. The wall clock is recorded and decides nothing.
#[derive(Clone, Debug)]
pub(crate) struct PinAttempt {
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
    /// wall clock was wrong lasts no longer. A time before the last failed attempt leaves the whole lockout. After a
    /// reboot the time that passed before it is unknown, so that the lockout counts from the boot.
    pub(crate) fn locked_for_ms(&self, at: &PinAttempt, lockout_ms: i64) -> i64 {
        let elapsed = match (&self.boot, self.failed_boot_ms) {
            // Without a boot id, only a smaller number shows a reboot.
            (Some(boot), Some(failed_ms))
                if *boot == at.boot && !(boot.is_empty() && at.boot_ms < failed_ms) =>
            {
                at.boot_ms.saturating_sub(failed_ms).max(0)
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
    pub(crate) fn pin(&self) -> Result<Option<PinRow>> {
        self.read(pin)
    }

    /// Sets the PIN, or removes it. `known` is the hash that the caller has verified, `None` if no PIN was set; false, and
    /// nothing changed, if the PIN is another one by now.
    pub(crate) fn set_pin(&mut self, known: Option<&str>, hash: Option<&str>) -> Result<bool> {
        self.write(|connection| {
            // Compared under the lock: two processes that verified the same old PIN must not both replace it.
            if pin(connection)?.map(|row| row.hash).as_deref() != known {
                return Ok(false);
            }
            // A new row also resets the count of failed attempts.
            connection.execute("DELETE FROM pin", [])?;
            if let Some(hash) = hash {
                connection.execute("INSERT INTO pin (id, hash) VALUES (1, ?1)", [hash])?;
            }
            Ok(true)
        })
    }

    /// Counts an attempt as failed *before* the PIN is checked, unless the PIN is locked after `most` failed attempts. A
    /// killed process loses its attempt.
    ///
    /// The clock is read under the lock: a time from before the wait would lie behind the attempts of other processes.
    pub(crate) fn reserve_pin_attempt(
        &mut self,
        now: impl FnOnce() -> PinAttempt,
        most: u32,
        lockout_ms: i64,
    ) -> Result<PinReservation> {
        self.write(|connection| {
            let Some(mut row) = pin(connection)? else { return Ok(PinReservation::NoPin) };
            let at = now();
            let left_ms = row.locked_for_ms(&at, lockout_ms);
            if row.failures >= most && left_ms > 0 {
                return Ok(PinReservation::Locked { failures: row.failures, left_ms });
            }
            connection.execute(
                "UPDATE pin SET failures = failures + 1, failed_ms = ?1, boot = ?2, failed_boot_ms = ?3",
                (at.wall_ms, &at.boot, at.boot_ms),
            )?;
            row.failures += 1;
            Ok(PinReservation::Granted(row))
        })
    }

    /// Resets the failed attempts after a successful one at the PIN with this hash; false if the PIN is another one by now.
    pub(crate) fn reset_pin_attempts(&mut self, hash: &str) -> Result<bool> {
        self.write(|connection| {
            Ok(connection.execute("UPDATE pin SET failures = 0 WHERE hash = ?1", [hash])? == 1)
        })
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

    fn is_granted(store: &mut Store, at: &PinAttempt) -> bool {
        let reservation = store.reserve_pin_attempt(|| at.clone(), MOST, LOCKOUT_MS).unwrap();
        matches!(reservation, PinReservation::Granted(_))
    }

    /// A store with a PIN that is locked since this time.
    fn locked(dir: &std::path::Path, since: &PinAttempt) -> Store {
        let locker = Locker::new(Duration::from_secs(5));
        let mut store = Store::open_for_writing(&dir.join("state.db"), &locker).unwrap();
        assert!(store.set_pin(None, Some("hash")).unwrap());
        for _ in 0..MOST {
            assert!(is_granted(&mut store, since));
        }
        store
    }

    #[test]
    fn lockout_lasts_its_time_on_the_clock_since_boot() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = locked(dir.path(), &at("b1", 1_000_000));
        let mut is_allowed = |boot_ms, wall_ms| {
            let at = PinAttempt { wall_ms, ..at("b1", boot_ms) };
            is_granted(&mut store, &at)
        };
        for wall_ms in [0, i64::MAX, i64::MIN] {
            assert!(!is_allowed(1_000_000, wall_ms));
            assert!(!is_allowed(1_299_999, wall_ms));
        }
        assert!(is_allowed(1_300_000, i64::MIN), "the wall clock has no effect");
        assert!(!is_allowed(1_300_001, i64::MAX), "one attempt, which begins another lockout");
        assert_eq!(store.pin().unwrap().unwrap().locked_for_ms(&at("b1", 1_300_001), LOCKOUT_MS), 299_999);
    }

    #[test]
    fn reboot_neither_lifts_nor_extends_a_lockout() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = locked(dir.path(), &at("b1", 1_000_000));
        assert!(!is_granted(&mut store, &at("b2", 20_000)));
        assert!(!is_granted(&mut store, &at("b2", 299_999)));
        assert!(is_granted(&mut store, &at("b2", 300_000)));
    }

    #[test]
    fn clock_behind_the_last_failed_attempt_keeps_the_lockout() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = locked(dir.path(), &at("b1", 1_000_000));
        for boot_ms in [999_999, 400_000, 0] {
            assert!(!is_granted(&mut store, &at("b1", boot_ms)), "{boot_ms}");
        }
        let pin = store.pin().unwrap().unwrap();
        assert_eq!(pin.locked_for_ms(&at("b1", 400_000), LOCKOUT_MS), LOCKOUT_MS);
        assert!(is_granted(&mut store, &at("b1", 1_300_000)));
    }

    #[test]
    fn reboot_without_a_boot_id_is_detected_by_the_clock() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = locked(dir.path(), &at("", 1_000_000));
        assert!(!is_granted(&mut store, &at("", 299_999)));
        assert!(is_granted(&mut store, &at("", 300_000)));
    }

    #[test]
    fn pin_of_an_older_store_counts_from_the_boot() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = locked(dir.path(), &at("b1", 1_000_000));
        store
            .write(|connection| connection.execute("UPDATE pin SET boot = NULL, failed_boot_ms = NULL", []))
            .unwrap();
        assert!(!is_granted(&mut store, &at("b1", 299_999)));
        assert!(is_granted(&mut store, &at("b1", 1_000_001)));
    }

    #[test]
    fn attempt_is_counted_before_its_check() {
        let dir = tempfile::tempdir().unwrap();
        let locker = Locker::new(Duration::from_secs(5));
        let mut store = Store::open_for_writing(&dir.path().join("state.db"), &locker).unwrap();
        let mut reserve = || store.reserve_pin_attempt(|| at("b1", 1_000), MOST, LOCKOUT_MS).unwrap();
        assert!(matches!(reserve(), PinReservation::NoPin));
        store.set_pin(None, Some("hash")).unwrap();
        for failures in 1..=MOST {
            assert!(is_granted(&mut store, &at("b1", 1_000)));
            assert_eq!(store.pin().unwrap().unwrap().failures, failures);
        }
        let mut reserve = || store.reserve_pin_attempt(|| at("b1", 1_000), MOST, LOCKOUT_MS).unwrap();
        let locked = reserve();
        assert!(
            matches!(locked, PinReservation::Locked { failures: MOST, left_ms: LOCKOUT_MS }),
            "{locked:?}"
        );
        assert!(!store.reset_pin_attempts("another hash").unwrap());
        assert_eq!(store.pin().unwrap().unwrap().failures, MOST);
        assert!(store.reset_pin_attempts("hash").unwrap());
        assert_eq!(store.pin().unwrap().unwrap().failures, 0);
    }

    #[test]
    fn pin_set_by_another_process_meanwhile_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = locked(dir.path(), &at("b1", 1_000_000));
        for known in [None, Some("older")] {
            for new in [None, Some("new")] {
                assert!(!store.set_pin(known, new).unwrap(), "{known:?} {new:?}");
            }
        }
        assert_eq!(store.pin().unwrap().unwrap().hash, "hash");
        assert!(store.set_pin(Some("hash"), None).unwrap());
        assert!(store.pin().unwrap().is_none());
    }
}
