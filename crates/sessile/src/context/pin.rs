//! A PIN for approvals, so that a program that holds a pseudo-terminal cannot give one.

use std::time::Duration;

use argon2::Argon2;

use crate::context::approval;
use crate::error::{Error, GuardError, Result};
use crate::process::boot_id;
use crate::state::State;
use crate::store::{PinAttempt, PinReservation};
use sessile_wire::hex::{hex, unhex};

/// Failed attempts before the PIN is locked.
const MAX_ATTEMPTS: u32 = 5;
/// Lockout time of the PIN.
const LOCKOUT_MS: i64 = 5 * 60 * 1000;
/// The shortest PIN.
const SHORTEST: usize = 4;

/// Sets a PIN, or removes it with `None`. Requires the old PIN, if set.
pub fn set_pin(state: &State, old: Option<&str>, new: Option<&str>) -> Result<()> {
    approval::check_place(state)?;
    let known = verify(state, old)?;
    if new.is_some_and(|pin| pin.chars().count() < SHORTEST) {
        return Err(GuardError::WrongPin(format!(
            "the PIN is too short: at least {SHORTEST} characters are required"
        ))
        .into());
    }
    let hash = new.map(hash).transpose()?;
    if !state.store_for_writing()?.set_pin(known.as_deref(), hash.as_deref())? {
        return Err(changed_meanwhile());
    }
    let subject = if new.is_some() { "--set-pin" } else { "--remove-pin" };
    crate::history::record(state, "context approve", subject, "a PIN is never recorded").map(drop)
}

/// Whether a PIN is set. Always reads the store, because a long-lived state may have an old copy.
pub fn is_pin_set(state: &State) -> Result<bool> {
    Ok(state.fresh_store()?.map(|store| store.pin()).transpose()?.flatten().is_some())
}

/// Whether a PIN is set and this is it; an error if one is set and it is not.
pub fn verify_pin(state: &State, pin: Option<&str>) -> Result<bool> {
    Ok(verify(state, pin)?.is_some())
}

/// The hash of the PIN that was verified; `None` if no PIN is set.
fn verify(state: &State, pin: Option<&str>) -> Result<Option<String>> {
    if !is_pin_set(state)? {
        return Ok(None);
    }
    approval::check_clock(state)?;
    let Some(pin) = pin else {
        return Err(GuardError::WrongPin("PIN required".into()).into());
    };
    let now =
        // A closure, because the store reads the clock only once it has its lock.
        || PinAttempt { wall_ms: state.now_ms(), boot: boot_id(), boot_ms: approval::since_boot_ms(state) };
    let mut store = state.store_for_writing()?;
    let row = match store.reserve_pin_attempt(now, MAX_ATTEMPTS, LOCKOUT_MS)? {
        // Removed since it was looked for: an approval without a PIN must not follow from that.
        PinReservation::NoPin => return Err(changed_meanwhile()),
        PinReservation::Locked { failures, left_ms } => {
            let left = crate::duration::short(Duration::from_millis(left_ms.unsigned_abs()));
            return Err(GuardError::WrongPin(format!(
                "the PIN was wrong {failures} times; try again in {left}"
            ))
            .into());
        }
        PinReservation::Granted(row) => row,
    };
    // Outside the transaction: the hash takes time and memory, and the attempt is counted already.
    if !matches(pin, &row.hash) {
        let left = MAX_ATTEMPTS.saturating_sub(row.failures);
        return Err(GuardError::WrongPin(match left {
            0 => "the PIN is wrong; no try is left for 5 minutes".to_owned(),
            1 => "the PIN is wrong; 1 try is left".to_owned(),
            _ => format!("the PIN is wrong; {left} tries are left"),
        })
        .into());
    }
    // By the hash that was verified: another process may have set another PIN meanwhile.
    if !store.reset_pin_attempts(&row.hash)? {
        return Err(changed_meanwhile());
    }
    Ok(Some(row.hash))
}

fn changed_meanwhile() -> Error {
    Error::Guard(GuardError::WrongPin("the PIN was changed by another process meanwhile".into()))
}

fn hash(pin: &str) -> Result<String> {
    let salt = crate::random::bytes::<16>()?;
    Ok(format!("argon2id$19$19456$2$1${}${}", hex(&salt), hex(&derive(pin, &salt))))
}

fn matches(pin: &str, stored: &str) -> bool {
    let parts: Vec<&str> = stored.split('$').collect();
    // Other parameters are of another version, and a PIN that cannot be checked does not match.
    let ["argon2id", "19", "19456", "2", "1", salt, expected] = parts[..] else { return false };
    let Some(salt) = unhex(salt) else { return false };
    let found = hex(&derive(pin, &salt));
    // The same time whatever the first difference.
    found.len() == expected.len()
        && found.bytes().zip(expected.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Argon2id, version 19, 19 MiB, 2 passes, 1 lane: the crate's defaults, written into the stored text.
fn derive(pin: &str, salt: &[u8]) -> [u8; 32] {
    let mut key = [0u8; 32];
    // It fails only for a salt or an output of an impossible size.
    let derived = Argon2::default().hash_password_into(pin.as_bytes(), salt, &mut key);
    debug_assert!(derived.is_ok());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_matches_its_own_hash_only() {
        let stored = hash("4711").unwrap();
        assert!(matches("4711", &stored));
        assert!(!matches("4712", &stored));
        assert!(!stored.contains("4711"));
        assert!(!matches("4711", "argon2id$19$1$1$1$00$00"));
    }
}
