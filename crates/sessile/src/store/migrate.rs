//! The schema's history: numbered files, each run once, in order, never changed after a release.

use rusqlite::{Connection, Result, TransactionBehavior};

const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_pointers_approvals_trust.sql"),
    include_str!("migrations/0002_sessions_locks_history.sql"),
    include_str!("migrations/0003_conversations.sql"),
    include_str!("migrations/0004_pin_boot_clock.sql"),
    include_str!("migrations/0005_approval_identity.sql"),
    include_str!("migrations/0006_conversation_context.sql"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_conversations_get_the_context_of_their_session() {
        let mut connection = Connection::open_in_memory().unwrap();
        for migration in &MIGRATIONS[..5] {
            connection.execute_batch(migration).unwrap();
        }
        connection
            .execute_batch(
                "INSERT INTO session (user, id, context, owner, labels, idle_ms, max_ms, started_ms, boot, started_boot_ms,
                                      started_awake_ms, check_ms, ended_ms)
                 VALUES ('u', 's', 'staging', '{}', '{}', 1, 1, 1, 'b', 1, 1, 1, 2);
                 INSERT INTO conversation (user, session, agent, used, id, started_ms, used_ms, next_item)
                 VALUES ('u', 's', 'http://localhost', 1, 'one', 1, 1, 2), ('u', 'gone', 'http://localhost', 1, 'two', 1, 1, 2);
                 INSERT INTO conversation_item VALUES ('u', 'one', 1, 'sent', '{}', 1);",
            )
            .unwrap();
        run(&mut connection, 5).unwrap();
        let contexts: Vec<(String, Option<String>)> = connection
            .prepare("SELECT id, context FROM conversation ORDER BY id")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_>>()
            .unwrap();
        assert_eq!(contexts, [("one".to_owned(), Some("staging".to_owned())), ("two".to_owned(), None)]);
        let items: i64 =
            connection.query_row("SELECT count(*) FROM conversation_item", [], |row| row.get(0)).unwrap();
        assert_eq!(items, 1);
    }
}
