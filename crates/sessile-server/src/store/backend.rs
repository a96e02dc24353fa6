//! The interface of a store.

use std::ops::Deref;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::retention::KEEP_SESSIONS;
use super::{
    ExpiringRows, PendingWait, PostgresOptions, PostgresStore, ServiceStoreError, SqliteStore, Sweep,
    SweepLimit,
};
use crate::account::{Account, AccountChange, Login, LoginCollection, NewLogin, NewTokenHash, Token};
use crate::change::{ChangeOutcome, Refusal};
use crate::ids::{Position, SecretHash, SessionId, TokenId, UserName};
use crate::model::Resource;
use crate::query::{Query, QueryAnswer};
use crate::request::{AuditedRead, Request};

/// Result of a store: the outcome once it is durable, or the failure.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ServiceStoreError>> + Send + 'a>>;

/// A store. SQLite and PostgreSQL behave the same, and one suite of tests holds for both.
pub trait StoreBackend: std::fmt::Debug + Send + Sync {
    /// Makes a change, whole or not at all. It is on the disk when this returns.
    fn change(&self, request: Request) -> StoreFuture<'_, Result<ChangeOutcome, Refusal>>;

    /// Leaves a [`StoreChange::Wait`](crate::change::StoreChange::Wait) with the store, which carries it out together with the
    /// change of this process that makes its place next. A store may leave that to the waiter.
    fn wait_with_release(&self, request: Request) -> PendingWait;

    /// Answers a query of a user.
    fn ask<'a>(&'a self, user: &'a UserName, query: Query) -> StoreFuture<'a, Result<QueryAnswer, Refusal>>;

    /// Returns when a waiting place may be next, or a little later anyway. Counts from the call on, so that a caller which
    /// calls it, looks, and then awaits it misses nothing.
    fn wait_for_wakeup(
        &self,
        user: &UserName,
        resource: &Resource,
        place: Position,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Records that this process is alive. Waiters of a process whose last heartbeat is older than
    /// [`PRESENT_MS`](crate::change::PRESENT_MS) are skipped.
    fn heartbeat(&self) -> StoreFuture<'_, ()>;

    /// Adds reads to the audit log.
    fn record(&self, reads: Vec<AuditedRead>) -> StoreFuture<'_, ()>;

    /// Fails unless the store can be read, now: nothing is retried.
    fn ready(&self) -> StoreFuture<'_, ()>;

    /// Fails unless the store takes a write, now: nothing is retried.
    fn check_writable(&self) -> StoreFuture<'_, ()>;

    /// Changes users and tokens. For administrators of the service only: it is not bound to one user.
    fn administer(&self, change: AccountChange) -> StoreFuture<'_, Result<(), Refusal>>;

    /// The users, in order.
    fn accounts(&self) -> StoreFuture<'_, Vec<Account>>;

    /// The tokens of a user, the oldest first.
    fn tokens<'a>(&'a self, user: &'a UserName) -> StoreFuture<'a, Vec<Token>>;

    /// The token with a hash, if it is valid now: neither revoked nor expired, and its user is not disabled.
    fn token<'a>(&'a self, hash: &'a SecretHash) -> StoreFuture<'a, Option<Token>>;

    /// The hashes of all tokens that are valid now.
    fn token_hashes(&self) -> StoreFuture<'_, Vec<SecretHash>>;

    /// The user of the token with an id.
    fn owner<'a>(&'a self, token: &'a TokenId) -> StoreFuture<'a, Option<UserName>>;

    /// Adds a device login. False if `most` are pending already.
    fn begin_login(&self, asked: NewLogin, most: i64) -> StoreFuture<'_, bool>;

    /// The pending device login with a user code, by the hash of the code.
    fn login<'a>(&'a self, code_hash: &'a SecretHash) -> StoreFuture<'a, Option<Login>>;

    /// Creates the token of an approved device login, once, however often the client polls.
    fn collect_login<'a>(
        &'a self,
        device_hash: &'a SecretHash,
        minted: NewTokenHash,
    ) -> StoreFuture<'a, LoginCollection>;

    /// Deletes rows of a user; how many.
    fn delete_expired<'a>(
        &'a self,
        user: &'a UserName,
        rows: ExpiringRows,
        limit: SweepLimit,
    ) -> StoreFuture<'a, usize>;

    /// Sessions of a user that ended or expired before a time.
    fn expired_sessions<'a>(
        &'a self,
        user: &'a UserName,
        limit: SweepLimit,
    ) -> StoreFuture<'a, Vec<SessionId>>;

    /// Deletes a session that ended or expired before a time, with everything that belongs to it: the last messages
    /// first, and at most `limit` of them per call. Returns whether the session is deleted completely.
    fn delete_session<'a>(
        &'a self,
        user: &'a UserName,
        session: &'a SessionId,
        limit: SweepLimit,
    ) -> StoreFuture<'a, bool>;

    /// Users who may have something that is older than a time, `most` of them at most. A user whose last sweep is in the
    /// future, by a clock that was ahead, is due too.
    fn due(&self, sweep: Sweep, most: i64) -> StoreFuture<'_, Vec<UserName>>;

    /// Records that everything that a user had before a time is deleted: until something else is as old, the user is not due.
    fn mark_swept<'a>(&'a self, user: &'a UserName, sweep: Sweep) -> StoreFuture<'a, ()>;

    /// Acquires or renews a lease, by which one process does something for all. Whether this process has it.
    fn acquire_lease<'a>(&'a self, name: &'a str, lease: Duration) -> StoreFuture<'a, bool>;

    /// A setting of the store, from when it was created.
    fn setting<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<i64>>;
}

/// Handle of an open store.
#[derive(Clone, Debug)]
pub struct ServiceStore(Arc<dyn StoreBackend>);

impl ServiceStore {
    /// Opens a store in a file, and creates it if it is missing.
    pub async fn sqlite(path: &Path) -> Result<Self, ServiceStoreError> {
        Ok(ServiceStore(Arc::new(SqliteStore::open(path).await?)))
    }

    /// Opens a store in a PostgreSQL database, and creates its tables if they are missing.
    pub async fn postgres(url: &str, options: PostgresOptions) -> Result<Self, ServiceStoreError> {
        Ok(ServiceStore(Arc::new(PostgresStore::open(url, options).await?)))
    }

    /// Retention of ended sessions that the store was created with; `None` keeps them.
    pub async fn session_retention(&self) -> Result<Option<Duration>, ServiceStoreError> {
        let millis = self.setting(KEEP_SESSIONS.0).await?;
        Ok(millis.and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis))
    }
}

impl Deref for ServiceStore {
    type Target = dyn StoreBackend;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
