//! Executes a change in two round trips: the first locks and reads its dependencies, the second writes the result and
//! the audit entry and commits.

use std::sync::Arc;

use super::Inner;
use super::snapshot::SnapshotLoad;
use super::sql::Sql;
use super::transaction::{PooledConnection, Step, TxError, params};
use super::write::PostgresWrites;
use crate::change::{ChangeOutcome, Refusal};
use crate::ids::TokenId;
use crate::request::{AuditedRead, Request};
use crate::rules::audit::AuditEntry;
use crate::rules::{Dependencies, decide};
use crate::store::ServiceStoreError;
use crate::store::wakeups;

/// Begins a change at read committed, so that rows are read after they are locked, whatever the database's default is.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Listeners are notified when the transaction is committed.
const NOTIFY: &str = "SELECT pg_notify('sessile', $1)";

/// Tries to make a change once. `is_retry` if an earlier attempt may have made it. With the mark of the place that it lets
/// come up.
pub(super) async fn attempt(
    inner: &Arc<Inner>,
    request: &Request,
    is_retry: bool,
) -> Result<(Result<ChangeOutcome, Refusal>, Option<u64>), TxError> {
    let user = request.user.as_str();
    let failed = |error: serde_json::Error| TxError::Fatal(ServiceStoreError::Failed(error.to_string()));
    let lost = |error: tokio_postgres::Error| TxError::of(&error, false);
    let dependencies = Dependencies::of(&request.change);
    let mut link = PooledConnection::take(inner, user).await?;

    let loading = SnapshotLoad::new(request, &dependencies);
    let found = link.send(&loading.steps).await.map_err(lost)?;
    let present = match loading.presence(&found, &inner.process).map_err(lost)? {
        // Rare: with one process, or without waiters.
        Some(step) => link.send(&[step]).await.map_err(lost)?,
        None => Vec::new(),
    };
    let present = present.first().map_or(&[][..], Vec::as_slice);
    let snapshot = loading.read(&found, present, &inner.process).map_err(lost)?;
    let now = snapshot.now;

    let mut decision = decide(request, &inner.process, snapshot).map_err(failed)?;
    if decision.history().is_some() {
        decision.set_history(loading.history(&found).map_err(lost)?);
    }
    let next = request.change.freed_queue().zip(decision.next_to_wake());
    let next = next.map(|(resource, position)| wakeups::mark(&request.user, &resource, position));
    let (outcome, writes) = decision.into_parts().map_err(failed)?;

    let mut steps = Vec::new();
    let to_steps = PostgresWrites { user, process: &inner.process, now };
    for write in to_steps.add_appended(writes, &mut steps) {
        to_steps.add(write, &mut steps);
    }
    if let Some(next) = next
        // Compatible databases may lack `pg_notify`, and the statement would abort the change.
        && inner.notifies.get().is_some_and(|notifies| *notifies)
    {
        steps.push(Step::Other(NOTIFY, params![next.to_string()]));
    }
    if let Some(entry) = AuditEntry::of(request, &outcome) {
        // Without a key it is the audit log that keeps a change from being made twice.
        let sql = if is_retry && request.key.is_some() { Sql::PutAudit } else { Sql::InsertAudit };
        steps.push(insert_audit(sql, request, &entry, now));
    }
    steps.push(Step::Plain("COMMIT"));
    // COMMIT is among these steps: a connection that is lost now may have committed.
    link.send(&steps).await.map_err(|error| TxError::of(&error, true))?;
    Ok((outcome, next))
}

fn insert_audit<'r>(sql: Sql, request: &'r Request, entry: &AuditEntry<'r>, now: i64) -> Step<'r> {
    let AuditEntry { action, session, subject, outcome } = *entry;
    let (user, access) = (request.user.as_str(), &request.access);
    let (id, token) = (access.id.as_str(), access.token.as_ref().map(TokenId::as_str));
    Step::Run(sql, params![user, id, now, token, action, session, outcome, subject])
}

/// Adds a failed change to the audit log, in a new transaction, because the failed one was rolled back.
pub(super) async fn record_failure(inner: &Arc<Inner>, request: &Request) -> Result<(), TxError> {
    let user = request.user.as_str();
    let mut link = PooledConnection::take(inner, user).await?;
    let sent = async {
        let steps = [Step::Plain(BEGIN), Step::Run(Sql::As, params![user])];
        let now: i64 = match link.send(&steps).await?.get(1).and_then(|rows| rows.first()) {
            Some(row) => row.try_get(1)?,
            None => 0,
        };
        let entry = AuditEntry::failed(request);
        link.send(&[insert_audit(Sql::InsertAudit, request, &entry, now), Step::Plain("COMMIT")]).await
    };
    sent.await.map(drop).map_err(|error| TxError::of(&error, true))
}

/// Adds reads to the audit log. They are the same however often they are sent.
pub(super) async fn record_reads(inner: &Arc<Inner>, reads: &[AuditedRead]) -> Result<(), TxError> {
    let mut steps = vec![Step::Plain(BEGIN)];
    for read in reads {
        let AuditedRead { user, access, action, session, outcome, at_ms } = read;
        // Per row: row security accepts a row only while its user is set.
        steps.push(Step::Run(Sql::As, params![user.as_str()]));
        let (token, subject) = (access.token.as_ref().map(TokenId::as_str), None::<&str>);
        let params = params![user.as_str(), &access.id, at_ms, token, action, session, outcome, subject];
        steps.push(Step::Run(Sql::PutAudit, params));
    }
    steps.push(Step::Plain("COMMIT"));
    let mut link = PooledConnection::for_service(inner).await?;
    link.send(&steps).await.map(drop).map_err(|error| TxError::of(&error, false))
}
