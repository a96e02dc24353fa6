//! Removal of old rows in slices, one user after the other. Other processes may do the same concurrently; removed
//! rows are not found again.

use std::sync::Arc;

use tokio_postgres::{Error, Row};

use super::Inner;
use super::apply::BEGIN;
use super::sql::Sql;
use super::transaction::{PooledConnection, Step, TxError, params};
use crate::ids::{SessionId, UserName};
use crate::model::Resource;
use crate::store::columns::Column;
use crate::store::{ExpiringRows, SweepLimit};

/// Removes some of what a user has that is older than a time. How many rows.
pub(super) async fn delete_expired(
    inner: &Arc<Inner>,
    user: &UserName,
    what: ExpiringRows,
    limit: SweepLimit,
) -> Result<usize, TxError> {
    let SweepLimit { before_ms, most } = limit;
    let sql = match what {
        ExpiringRows::Answered => Sql::ForgetAnswered,
        ExpiringRows::Events => Sql::ForgetEvents,
        ExpiringRows::Audit => Sql::ForgetAudit,
    };
    Ok(alone(inner, user, Step::Run(sql, params![user.to_string(), before_ms, most])).await?.len())
}

/// Sessions of a user that were over before a time.
pub(super) async fn expired_sessions(
    inner: &Arc<Inner>,
    user: &UserName,
    limit: SweepLimit,
) -> Result<Vec<SessionId>, TxError> {
    let SweepLimit { before_ms, most } = limit;
    let rows = alone(inner, user, Step::Run(Sql::Over, params![user.to_string(), before_ms, most])).await?;
    let ids: Result<_, Error> = rows.iter().map(|row| Ok(row.try_get::<_, Column<_>>(0)?.0)).collect();
    ids.map_err(|error| TxError::of(&error, false))
}

async fn alone(inner: &Arc<Inner>, user: &UserName, step: Step<'_>) -> Result<Vec<Row>, TxError> {
    let steps =
        [Step::Plain(BEGIN), Step::Run(Sql::As, params![user.to_string()]), step, Step::Plain("COMMIT")];
    let mut link = PooledConnection::for_service(inner).await?;
    let mut rows = link.send(&steps).await.map_err(|error| TxError::of(&error, false))?;
    Ok(rows.drain(..).nth(2).unwrap_or_default())
}

/// Deletes a session that ended before a time, or a slice of its last rows. Returns whether the session is deleted
/// completely.
pub(super) async fn delete_session(
    inner: &Arc<Inner>,
    user: &UserName,
    session: &SessionId,
    limit: SweepLimit,
) -> Result<bool, TxError> {
    let mut link = PooledConnection::for_service(inner).await?;
    delete_in(&mut link, user.as_str(), session, limit).await.map_err(|error| TxError::of(&error, false))
}

async fn delete_in(
    link: &mut PooledConnection,
    user: &str,
    session: &SessionId,
    limit: SweepLimit,
) -> Result<bool, Error> {
    let SweepLimit { before_ms, most } = limit;
    let (user, id) = (|| user.to_owned(), || session.to_string());
    let lock = [
        Step::Plain(BEGIN),
        Step::Run(Sql::As, params![user()]),
        // Locked and checked again: the session may have been used since it was found.
        Step::Run(Sql::LockOver, params![user(), id(), before_ms]),
    ];
    let found = link.send(&lock).await?;
    let last: Option<i64> =
        found.get(2).and_then(|rows| rows.first()).map(|row| row.try_get(0)).transpose()?;
    let Some(last) = last else {
        link.send(&[Step::Plain("COMMIT")]).await?;
        return Ok(true);
    };
    // From the end, as if it was rewound: who reads it meanwhile finds no gaps.
    let stay = last.saturating_sub(most).max(0);
    let some = [
        Step::Run(Sql::CutMessages, params![user(), id(), stay]),
        Step::Run(Sql::SetLastMessage, params![user(), id(), stay]),
        Step::Run(Sql::ForgetEventsOf, params![user(), id(), most]),
    ];
    let events = link.send(&some).await?.get(2).map_or(0, Vec::len);
    let is_all = stay == 0 && i64::try_from(events).is_ok_and(|events| events < most);
    let mut rest = Vec::new();
    if is_all {
        let turn = Resource::Turn { session: session.clone() }.key();
        rest.push(Step::Run(Sql::DropQueue, params![user(), turn.clone()]));
        rest.push(Step::Run(Sql::DropNumbers, params![user(), turn]));
        rest.push(Step::Run(Sql::DropEntries, params![user(), id()]));
        rest.push(Step::Run(Sql::DropLabels, params![user(), id()]));
        rest.push(Step::Run(Sql::DropSession, params![user(), id()]));
    }
    rest.push(Step::Plain("COMMIT"));
    link.send(&rest).await?;
    Ok(is_all)
}
