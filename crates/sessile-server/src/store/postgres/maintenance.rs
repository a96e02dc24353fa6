//! Maintenance: users due for a sweep, the lease of the sweeper, and settings of the store.

use std::sync::Arc;

use tokio_postgres::{Error, Row};

use super::Inner;
use super::accounts::{now, read, run};
use super::apply::BEGIN;
use super::sql::Sql;
use super::transaction::{PooledConnection, SERVICE, Step, TxError, params};
use crate::ids::UserName;
use crate::store::columns::Column;
use crate::store::{ExpiringRows, Sweep, SweepKind};

const DUE: &str = "SELECT user_id FROM upkeep WHERE kind = $1 AND (since_ms < $2 OR since_ms > $3) LIMIT $4";
const SWEPT: &str = "UPDATE upkeep SET since_ms = $3 WHERE user_id = $1 AND kind = $2";
const LEAD: &str = concat!(
    "INSERT INTO lease (name, holder, until_ms) VALUES ($1, $2, ",
    now!(),
    " + $3)
     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
     WHERE lease.holder = excluded.holder OR lease.until_ms <= ",
    now!(),
    " RETURNING 1"
);
const SETTING: &str = "SELECT value FROM store_setting WHERE name = $1";

/// Users that may have rows older than a time.
pub(super) async fn due(inner: &Arc<Inner>, sweep: Sweep, most: i64) -> Result<Vec<UserName>, TxError> {
    let Sweep { kind, before_ms, now_ms } = sweep;
    let user = |row: &Row| Ok(row.try_get::<_, Column<_>>(0)?.0);
    read(&run(inner, SERVICE, DUE, params![kind.name(), before_ms, now_ms, most], false).await?, user)
}

/// Records the time of a user's oldest row after a sweep.
pub(super) async fn mark_swept(inner: &Arc<Inner>, user: &UserName, sweep: Sweep) -> Result<(), TxError> {
    let Sweep { kind, before_ms, now_ms } = sweep;
    let sql = match kind {
        SweepKind::Rows(ExpiringRows::Answered) => Sql::OldestAnswered,
        SweepKind::Rows(ExpiringRows::Events) => Sql::OldestEvent,
        SweepKind::Rows(ExpiringRows::Audit) => Sql::OldestAudit,
        SweepKind::Sessions => Sql::OldestOver,
    };
    let name = || user.to_string();
    let mut link = PooledConnection::for_service(inner).await?;
    let failed = |error: Error| TxError::of(&error, false);
    let steps = [
        Step::Plain(BEGIN),
        Step::Run(Sql::As, params![name()]),
        Step::Run(sql, params![name()]),
        Step::Plain("COMMIT"),
    ];
    let found = link.send(&steps).await.map_err(failed)?;
    let oldest: Option<Option<i64>> =
        found.get(2).and_then(|rows| rows.first()).map(|row| row.try_get(0)).transpose().map_err(failed)?;
    // A row from a clock that was ahead, or one left over, must not make the user due at once.
    let since_ms = oldest.flatten().unwrap_or(now_ms).min(now_ms).max(before_ms);
    let note = [Step::Other(SWEPT, params![name(), kind.name(), since_ms])];
    link.send(&note).await.map(drop).map_err(failed)
}

/// Acquires or renews a lease.
pub(super) async fn acquire_lease(inner: &Arc<Inner>, name: &str, lease_ms: i64) -> Result<bool, TxError> {
    let params = params![name.to_owned(), inner.process.to_string(), lease_ms];
    Ok(!run(inner, SERVICE, LEAD, params, false).await?.is_empty())
}

/// A setting of the store, from when it was created.
pub(super) async fn setting(inner: &Arc<Inner>, name: &str) -> Result<Option<i64>, TxError> {
    let found = run(inner, SERVICE, SETTING, params![name.to_owned()], false).await?;
    Ok(read(&found, |row| row.try_get(0))?.into_iter().next())
}
