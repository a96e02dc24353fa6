//! Migrations: the first process creates and updates the tables.

use std::sync::Arc;

use super::Inner;
use super::role::Role;
use super::transaction::{PooledConnection, TxError};
use crate::store::ServiceStoreError;
use crate::store::retention::KEEP_SESSIONS;

/// Migrations. Each runs once, in order. A published one is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_sessions_queues_accounts.sql"),
    include_str!("migrations/0002_contexts_of_agents.sql"),
    include_str!("migrations/0003_logins.sql"),
    include_str!("migrations/0004_history.sql"),
    include_str!("migrations/0005_retention.sql"),
    include_str!("migrations/0006_listing.sql"),
    include_str!("migrations/0007_upkeep.sql"),
    include_str!("migrations/0008_shared_locks.sql"),
    include_str!("migrations/0009_locks_of_sessions.sql"),
];

const BEGIN: &str =
    "BEGIN; CREATE TABLE IF NOT EXISTS sessile_schema (id bigint PRIMARY KEY, version bigint NOT NULL)";

/// Lock of the migration: its holder creates the tables, and other processes wait.
const LOCK: &str = "INSERT INTO sessile_schema (id, version) VALUES (1, 0)
    ON CONFLICT (id) DO UPDATE SET version = sessile_schema.version RETURNING version";

/// Brings the tables up to date. A role without the permission to create tables can use existing ones.
pub(super) async fn migrate(inner: &Arc<Inner>, role: &Role) -> Result<(), TxError> {
    let mut link = PooledConnection::for_service(inner).await?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let failed = |error: &tokio_postgres::Error| match TxError::of(error, false) {
        // Two made the first table at the same time.
        TxError::UniqueViolation(name) => TxError::Retryable(name),
        // 42P07: duplicate table.
        other if error.code().is_some_and(|code| code.code() == "42P07") => {
            TxError::Retryable(format!("{other:?}"))
        }
        // 42501: insufficient privilege.
        _ if error.code().is_some_and(|code| code.code() == "42501") => TxError::Fatal(role.may_not_make()),
        other => other,
    };
    let client = link.raw()?;
    // Read first, without DDL: a role that may not create tables can use those that are up to date.
    let there = client.query_opt("SELECT version FROM sessile_schema", &[]).await;
    let version: i64 = match there {
        Ok(row) => row.map_or(Ok(0), |row| row.try_get(0)).map_err(|error| failed(&error))?,
        // 42P01: undefined table, so nothing was created yet.
        Err(error) if error.code().is_some_and(|code| code.code() == "42P01") => 0,
        Err(error) => return Err(failed(&error)),
    };
    if version > known {
        let store = "the database".to_owned();
        return Err(TxError::Fatal(ServiceStoreError::TooNew { store, found: version, known }));
    }
    if version == known {
        return Ok(());
    }
    link.busy();
    let client = link.raw()?;
    client.batch_execute(BEGIN).await.map_err(|error| failed(&error))?;
    // The version is read again under the lock: another process may have migrated meanwhile.
    let row = client.query_one(LOCK, &[]).await.map_err(|error| failed(&error))?;
    let version: i64 = row.try_get(0).map_err(|error| failed(&error))?;
    for (number, sql) in (1_i64..).zip(MIGRATIONS).skip(usize::try_from(version).unwrap_or(0)) {
        client.batch_execute(sql).await.map_err(|error| failed(&error))?;
        client
            .execute("UPDATE sessile_schema SET version = $1", &[&number])
            .await
            .map_err(|error| failed(&error))?;
    }
    // A store that was made before keeps what it kept.
    if version == 0 {
        let insert = "INSERT INTO store_setting (name, value) VALUES ($1, $2)";
        let (name, value) = KEEP_SESSIONS;
        client.execute(insert, &[&name, &value]).await.map_err(|error| failed(&error))?;
    }
    client.batch_execute("COMMIT").await.map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::MIGRATIONS;
    use crate::store::{PostgresOptions, ServiceStore};

    #[tokio::test(flavor = "multi_thread")]
    async fn older_store_gets_labels_and_upkeep_and_keeps_ended_sessions() {
        let server = testkit::Postgres::shared();
        let database = server.database();
        let older = MIGRATIONS[..5].concat();
        database.sql(&format!(
            "SET ROLE sessile; {older};
             CREATE TABLE sessile_schema (id bigint PRIMARY KEY, version bigint NOT NULL);
             INSERT INTO sessile_schema (id, version) VALUES (1, 5);"
        ));
        database.sql(
            r#"INSERT INTO account (user_id, made_ms) VALUES ('ann', 1);
               INSERT INTO session (user_id, id, labels, idle_ms, max_ms, started_ms, used_ms, revision, next_message,
                                    next_event)
               VALUES ('ann', 'a', '{"team":"web","empty":""}', 5, 100, 10, 20, 1, 1, 1);"#,
        );
        let db = ServiceStore::postgres(&database.url(), PostgresOptions::default()).await.unwrap();
        let labels = "SELECT string_agg(concat(user_id, ' ', key, '=', value, ' ', session), ',' ORDER BY key) FROM label";
        assert_eq!(database.sql(labels), "ann empty= a,ann team=web a");
        assert_eq!(database.sql("SELECT over_ms FROM session"), "25");
        let upkeep =
            "SELECT string_agg(concat(user_id, ' ', kind, ' ', since_ms), ',' ORDER BY kind) FROM upkeep";
        assert_eq!(database.sql(upkeep), "ann answered 0,ann audit 0,ann events 0,ann sessions 0");
        assert_eq!(db.session_retention().await.unwrap(), None);
        let forced = "SELECT relforcerowsecurity FROM pg_class WHERE relname = 'session'";
        assert_eq!(database.sql(forced), "t", "the second wall stands again");
    }
}
