//! Tokens that are probably valid, known without a look-up: while invalid tokens are rate limited, valid ones still pass.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::ids::SecretHash;
use crate::store::{ServiceStore, ServiceStoreError};

/// Age of the snapshot, at most. A token that was created since is refused for so long, and only during an attack.
const FRESH: Duration = Duration::from_secs(1);

/// Reading the snapshot takes at most one part in so many of the time.
const SHARE: u32 = 20;

/// Tokens that may be valid.
#[derive(Debug, Default)]
pub(super) struct ValidTokens {
    /// Of the tokens that can be used, taken only while it is needed.
    snapshot: Mutex<Snapshot>,
    /// Prefixes of the hashes of tokens that were valid at their last look-up. At most one per created token.
    seen: std::sync::Mutex<HashSet<u64>>,
}

#[derive(Debug, Default)]
struct Snapshot {
    /// The beginnings of their hashes: one that is not valid and has the same is looked up, and refused then.
    hashes: HashSet<u64>,
    stale: Option<Instant>,
}

impl ValidTokens {
    /// Whether a token with this hash was valid a moment ago. Whether it still is, only the store knows.
    pub(super) async fn may_contain(
        &self,
        db: &ServiceStore,
        hash: &SecretHash,
    ) -> Result<bool, ServiceStoreError> {
        // Held across the read, so that one of many parallel requests reads the table and the others wait.
        let mut snapshot = self.snapshot.lock().await;
        if snapshot.stale.is_none_or(|stale| stale <= Instant::now()) {
            let began = Instant::now();
            snapshot.hashes = db.token_hashes().await?.iter().map(beginning).collect();
            // A store with many tokens takes longer to read; guessing must not keep it busy.
            snapshot.stale = Some(Instant::now() + FRESH.max(began.elapsed() * SHARE));
        }
        Ok(snapshot.hashes.contains(&beginning(hash)))
    }

    /// Whether a token with this hash was valid at its last look-up.
    pub(super) fn was_valid(&self, hash: &SecretHash) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).contains(&beginning(hash))
    }

    /// Adds a token that a look-up found valid.
    pub(super) fn add(&self, hash: &SecretHash) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(beginning(hash));
    }

    /// Removes a token that a look-up found invalid.
    pub(super) fn remove(&self, hash: &SecretHash) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(&beginning(hash));
    }
}

/// The first 64 bits of a hash in hexadecimal digits.
fn beginning(hash: &SecretHash) -> u64 {
    hash.as_str().get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
}
