//! The tables, made and brought up to date, once, whoever comes first.

use std::sync::Arc;

use super::Inner;
use super::role::Role;
use super::transaction::{Link, Trouble, trouble};
use crate::db::DbError;

/// Each is run once, in order. What was published is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_sessions_queues_accounts.sql"),
    include_str!("migrations/0002_contexts_of_agents.sql"),
    include_str!("migrations/0003_logins.sql"),
    include_str!("migrations/0004_history.sql"),
    include_str!("migrations/0005_retention.sql"),
    include_str!("migrations/0006_listing.sql"),
];

const BEGIN: &str =
    "BEGIN; CREATE TABLE IF NOT EXISTS sessile_schema (id bigint PRIMARY KEY, version bigint NOT NULL)";

/// Whoever has the row makes the tables; the others wait for it, and find them made.
const LOCK: &str = "INSERT INTO sessile_schema (id, version) VALUES (1, 0)
    ON CONFLICT (id) DO UPDATE SET version = sessile_schema.version RETURNING version";

/// Brings the tables up to date. A role that may not make tables can use those that are there.
pub(super) async fn migrate(inner: &Arc<Inner>, role: &Role) -> Result<(), Trouble> {
    let mut link = Link::for_service(inner).await?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let failed = |error: &tokio_postgres::Error| match trouble(error, false) {
        // Two made the first table at the same time.
        Trouble::Twice(name) => Trouble::Again(name),
        other if error.code().is_some_and(|code| code.code() == "42P07") => {
            Trouble::Again(format!("{other:?}"))
        }
        _ if error.code().is_some_and(|code| code.code() == "42501") => Trouble::Over(role.may_not_make()),
        other => other,
    };
    let client = link.raw()?;
    let there = client.query_opt("SELECT version FROM sessile_schema", &[]).await;
    let version: i64 = match there {
        Ok(row) => row.map_or(Ok(0), |row| row.try_get(0)).map_err(|error| failed(&error))?,
        Err(error) if error.code().is_some_and(|code| code.code() == "42P01") => 0,
        Err(error) => return Err(failed(&error)),
    };
    if version > known {
        let store = "the database".to_owned();
        return Err(Trouble::Over(DbError::TooNew { store, found: version, known }));
    }
    if version == known {
        return Ok(());
    }
    link.busy();
    let client = link.raw()?;
    client.batch_execute(BEGIN).await.map_err(|error| failed(&error))?;
    let row = client.query_one(LOCK, &[]).await.map_err(|error| failed(&error))?;
    let version: i64 = row.try_get(0).map_err(|error| failed(&error))?;
    for (number, sql) in (1_i64..).zip(MIGRATIONS).skip(usize::try_from(version).unwrap_or(0)) {
        client.batch_execute(sql).await.map_err(|error| failed(&error))?;
        client
            .execute("UPDATE sessile_schema SET version = $1", &[&number])
            .await
            .map_err(|error| failed(&error))?;
    }
    client.batch_execute("COMMIT").await.map_err(|error| failed(&error))
}
