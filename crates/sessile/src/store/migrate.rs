//! The schema's history: numbered files, each run once, in order, never changed after a release.

use rusqlite::{Connection, Result, TransactionBehavior};

const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_pointers_approvals_trust.sql"),
    include_str!("migrations/0002_sessions_locks_history.sql"),
    include_str!("migrations/0003_conversations.sql"),
    include_str!("migrations/0004_pin_boot_clock.sql"),
    include_str!("migrations/0005_approval_identity.sql"),
];

/// The version that this program writes.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Brings a database from one version to the newest, whole or not at all.
pub(super) fn run(connection: &mut Connection, from: i64) -> Result<()> {
    // Immediate: another process that migrates at the same time is waited for, not failed upon.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    // Part of the transaction, so a crash leaves the old schema with its old number.
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}
