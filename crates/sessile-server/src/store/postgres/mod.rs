//! The store in PostgreSQL, for any number of processes.
//!
//! Plain SQL: no advisory locks, no sequences, no triggers; rows are locked, with the database's clock. Users are kept apart
//! twice: by every statement ([`sql`]), and by row security in the database.

mod accounts;
mod apply;
mod connect;
mod heartbeat;
mod listen;
mod logins;
mod maintenance;
mod migrate;
mod read;
mod retention;
mod role;
mod rows;
mod snapshot;
mod sql;
mod tls;
mod transaction;
mod write;

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::fair_queue::TokenOwners;
use super::wakeups::{self, Wakeups};
use super::{ExpiringRows, PendingWait, ServiceStoreError, StoreBackend, StoreFuture, Sweep, SweepLimit};
use crate::account::{Account, AccountChange, Login, LoginCollection, NewLogin, NewTokenHash, Token};
use crate::change::{ChangeOutcome, Refusal};
use crate::ids::{Position, SecretHash, SessionId, TokenId, UserName};
use crate::model::Resource;
use crate::query::{Query, QueryAnswer};
use crate::request::{AuditedRead, Request};
use crate::rules::Dependencies;
use connect::{FairPool, PostgresAddress};
use sql::StatementTexts;
use transaction::{RetryTimer, TxError};

pub use connect::PostgresOptions;
pub use sql::UserIsolation;

/// Number of lanes; a session has one of them, and may share it.
const LANES: u64 = 1024;

/// A store in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    inner: Arc<Inner>,
    wakeups: Wakeups,
    _listens: Arc<ListenerTask>,
}

struct Inner {
    pool: FairPool,
    /// Connections for users and tokens, so that a token can be checked under any load.
    accounts_pool: FairPool,
    owners: TokenOwners,
    texts: StatementTexts,
    options: PostgresOptions,
    /// Id of this process.
    process: Arc<str>,
    /// Changes of one session take one connection among them: the others would only wait for its row, and keep
    /// other users from theirs.
    lanes: Vec<Mutex<()>>,
    /// Whether the database can wake those who listen; not all that speak its protocol can.
    notifies: OnceLock<bool>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("options", &self.options).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct ListenerTask(JoinHandle<()>);

impl Drop for ListenerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PostgresStore {
    pub(super) async fn open(url: &str, options: PostgresOptions) -> Result<Self, ServiceStoreError> {
        let address = PostgresAddress::parse(url, &options)?;
        let (pool, accounts_pool) = address.pools(&options)?;
        let inner = Inner {
            pool,
            accounts_pool,
            owners: TokenOwners::default(),
            texts: StatementTexts::new(options.isolation),
            lanes: (0..LANES).map(|_| Mutex::default()).collect(),
            notifies: OnceLock::new(),
            process: super::new_process()?,
            options,
        };
        let inner = Arc::new(inner);
        // Before the migration: tables belong to the role that creates them.
        let role = with_retry(&inner, || role::Role::fit(&inner)).await?;
        with_retry(&inner, || migrate::migrate(&inner, &role)).await?;
        // After the migration, which creates the policies.
        with_retry(&inner, || role::see_to_row_security(&inner)).await?;
        let notifies = with_retry(&inner, || listen::notifies(&inner)).await?;
        inner.notifies.get_or_init(|| notifies);
        let wakeups = Wakeups::new();
        let listens = ListenerTask(tokio::spawn(listen::listen(address, wakeups.clone())));
        Ok(PostgresStore { inner, wakeups, _listens: Arc::new(listens) })
    }

    async fn make(&self, request: &Request) -> Result<Result<ChangeOutcome, Refusal>, ServiceStoreError> {
        let inner = &self.inner;
        let mut backoff = RetryTimer::new(inner.options.patience);
        let mut is_ambiguous = false;
        loop {
            let attempted = {
                let dependencies = Dependencies::of(&request.change);
                let lane =
                    dependencies.serialized_by().map(|lane| wakeups::hash(&request.user, lane) % LANES);
                let lane = lane.and_then(|lane| inner.lanes.get(usize::try_from(lane).unwrap_or(0)));
                let _alone = match lane {
                    Some(lane) => Some(backoff.within(lane.lock()).await?),
                    None => None,
                };
                // The lane is released before the backoff below, so that others of the session go on.
                apply::attempt(inner, request, is_ambiguous).await
            };
            match attempted {
                Ok((outcome, next)) => {
                    if let Some(next) = next {
                        self.wakeups.wake(next);
                    }
                    return Ok(outcome);
                }
                Err(TxError::Retryable(why)) => backoff.wait(why).await?,
                Err(TxError::Ambiguous(why)) => {
                    is_ambiguous = true;
                    backoff.wait(why).await?;
                }
                // Somebody took the name, or used the key, between the look and the write.
                Err(TxError::UniqueViolation(what))
                    if what == "answered_pkey" || what == "session_live_name" =>
                {
                    backoff.wait(what).await?;
                }
                // An earlier attempt was made after all: under its key it is found.
                Err(TxError::UniqueViolation(what)) if is_ambiguous && request.key.is_some() => {
                    backoff.wait(what).await?;
                }
                Err(TxError::UniqueViolation(_)) if is_ambiguous => {
                    let made = "the connection was lost; the outcome of the change is unknown";
                    return Err(ServiceStoreError::Unavailable(made.to_owned()));
                }
                Err(TxError::UniqueViolation(what)) => {
                    return Err(self.failed(request, format!("{what} already exists")).await);
                }
                Err(TxError::Fatal(ServiceStoreError::Failed(why))) => {
                    return Err(self.failed(request, why).await);
                }
                Err(TxError::Fatal(error)) => return Err(error),
            }
        }
    }

    /// Records a failure, if that can be done.
    async fn failed(&self, request: &Request, why: String) -> ServiceStoreError {
        // Best effort: what failed may be the connection itself.
        let _ = apply::record_failure(&self.inner, request).await;
        ServiceStoreError::Failed(why)
    }
}

impl StoreBackend for PostgresStore {
    fn change(&self, request: Request) -> StoreFuture<'_, Result<ChangeOutcome, Refusal>> {
        let store = self.clone();
        Box::pin(async move {
            // The caller may go away; what was begun is finished, so that its connection can be used again.
            let made = tokio::spawn(async move { store.make(&request).await });
            made.await.map_err(|error| ServiceStoreError::Unavailable(error.to_string()))?
        })
    }

    /// Each change is a transaction of its own here.
    fn wait_with_release(&self, _: Request) -> PendingWait {
        PendingWait::never()
    }

    fn ask<'a>(&'a self, user: &'a UserName, query: Query) -> StoreFuture<'a, Result<QueryAnswer, Refusal>> {
        Box::pin(async move { with_retry(&self.inner, || read::answer(&self.inner, user, &query)).await })
    }

    fn wait_for_wakeup(
        &self,
        user: &UserName,
        resource: &Resource,
        place: Position,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.wakeups.wait(wakeups::mark(user, &resource.key(), place)))
    }

    fn heartbeat(&self) -> StoreFuture<'_, ()> {
        Box::pin(with_retry(&self.inner, || heartbeat::send(&self.inner)))
    }

    fn record(&self, reads: Vec<AuditedRead>) -> StoreFuture<'_, ()> {
        Box::pin(async move { with_retry(&self.inner, || apply::record_reads(&self.inner, &reads)).await })
    }

    fn ready(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { accounts::ready(&self.inner).await.map_err(TxError::into_store_error) })
    }

    fn check_writable(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { heartbeat::send(&self.inner).await.map_err(TxError::into_store_error) })
    }

    fn administer(&self, change: AccountChange) -> StoreFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { with_retry(&self.inner, || accounts::administer(&self.inner, &change)).await })
    }

    fn accounts(&self) -> StoreFuture<'_, Vec<Account>> {
        Box::pin(with_retry(&self.inner, || accounts::all(&self.inner)))
    }

    fn tokens<'a>(&'a self, user: &'a UserName) -> StoreFuture<'a, Vec<Token>> {
        Box::pin(with_retry(&self.inner, || accounts::tokens(&self.inner, user)))
    }

    fn token<'a>(&'a self, hash: &'a SecretHash) -> StoreFuture<'a, Option<Token>> {
        Box::pin(with_retry(&self.inner, || accounts::usable(&self.inner, hash)))
    }

    fn token_hashes(&self) -> StoreFuture<'_, Vec<SecretHash>> {
        Box::pin(with_retry(&self.inner, || accounts::usable_hashes(&self.inner)))
    }

    fn owner<'a>(&'a self, token: &'a TokenId) -> StoreFuture<'a, Option<UserName>> {
        Box::pin(with_retry(&self.inner, || accounts::owner(&self.inner, token)))
    }

    fn begin_login(&self, asked: NewLogin, most: i64) -> StoreFuture<'_, bool> {
        Box::pin(async move { with_retry(&self.inner, || logins::begin(&self.inner, &asked, most)).await })
    }

    fn login<'a>(&'a self, code_hash: &'a SecretHash) -> StoreFuture<'a, Option<Login>> {
        Box::pin(with_retry(&self.inner, || logins::get(&self.inner, code_hash)))
    }

    fn collect_login<'a>(
        &'a self,
        device_hash: &'a SecretHash,
        minted: NewTokenHash,
    ) -> StoreFuture<'a, LoginCollection> {
        Box::pin(async move {
            with_retry(&self.inner, || logins::collect(&self.inner, device_hash, &minted)).await
        })
    }

    fn delete_expired<'a>(
        &'a self,
        user: &'a UserName,
        rows: ExpiringRows,
        limit: SweepLimit,
    ) -> StoreFuture<'a, usize> {
        Box::pin(with_retry(&self.inner, move || retention::delete_expired(&self.inner, user, rows, limit)))
    }

    fn expired_sessions<'a>(
        &'a self,
        user: &'a UserName,
        limit: SweepLimit,
    ) -> StoreFuture<'a, Vec<SessionId>> {
        Box::pin(with_retry(&self.inner, move || retention::expired_sessions(&self.inner, user, limit)))
    }

    fn delete_session<'a>(
        &'a self,
        user: &'a UserName,
        session: &'a SessionId,
        limit: SweepLimit,
    ) -> StoreFuture<'a, bool> {
        Box::pin(with_retry(&self.inner, move || {
            retention::delete_session(&self.inner, user, session, limit)
        }))
    }

    fn due(&self, sweep: Sweep, most: i64) -> StoreFuture<'_, Vec<UserName>> {
        Box::pin(with_retry(&self.inner, move || maintenance::due(&self.inner, sweep, most)))
    }

    fn mark_swept<'a>(&'a self, user: &'a UserName, sweep: Sweep) -> StoreFuture<'a, ()> {
        Box::pin(with_retry(&self.inner, move || maintenance::mark_swept(&self.inner, user, sweep)))
    }

    fn acquire_lease<'a>(&'a self, name: &'a str, lease: Duration) -> StoreFuture<'a, bool> {
        let lease_ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        Box::pin(with_retry(&self.inner, move || maintenance::acquire_lease(&self.inner, name, lease_ms)))
    }

    fn setting<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<i64>> {
        Box::pin(with_retry(&self.inner, || maintenance::setting(&self.inner, name)))
    }
}

/// Retries an attempt until it succeeds, fails permanently or times out.
async fn with_retry<T, F: Future<Output = Result<T, TxError>>>(
    inner: &Inner,
    attempt: impl Fn() -> F,
) -> Result<T, ServiceStoreError> {
    let mut backoff = RetryTimer::new(inner.options.patience);
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(TxError::Retryable(why)) => backoff.wait(why).await?,
            Err(error) => return Err(error.into_store_error()),
        }
    }
}
