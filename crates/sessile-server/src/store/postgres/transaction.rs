//! Transactions with few round trips: independent statements are pipelined.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::{Object, PoolError};
use sessile_wire::backoff::Backoff;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::Inner;
use super::connect::FairPool;
use super::sql::Sql;
use crate::store::ServiceStoreError;
pub(super) use crate::store::fair_queue::SERVICE;
use crate::store::fair_queue::Slot;

/// Parameters of a statement.
pub(super) type SqlParams<'a> = Vec<Box<dyn ToSql + Sync + Send + 'a>>;

/// Gathers parameters of different types.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as Box<dyn tokio_postgres::types::ToSql + Sync + Send + '_>),*]
    };
}
pub(super) use params;

/// Statement to send.
pub(super) enum Step<'a> {
    /// Statement without parameters and result: `BEGIN`, `COMMIT`.
    Plain(&'static str),
    Run(Sql, SqlParams<'a>),
    /// Statement on tables of the service.
    Other(&'static str, SqlParams<'a>),
}

/// Failure of a transaction.
#[derive(Debug)]
pub(super) enum TxError {
    /// Not written; a retry is safe.
    Retryable(String),
    /// The connection was lost while committing: it may have been written.
    Ambiguous(String),
    /// A unique key exists already; the name of the constraint. Nothing was written.
    UniqueViolation(String),
    /// Retrying does not help.
    Fatal(ServiceStoreError),
}

impl From<PoolError> for TxError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => TxError::of(&error, false),
            // The pool has waited for its own timeout already.
            error => TxError::Fatal(ServiceStoreError::Unavailable(error.to_string())),
        }
    }
}

impl TxError {
    /// Classifies an error, from before or after the commit was sent.
    pub(super) fn of(error: &Error, is_committing: bool) -> Self {
        let text = describe(error);
        let lost = |text| if is_committing { TxError::Ambiguous(text) } else { TxError::Retryable(text) };
        let Some(db) = error.as_db_error() else {
            // The driver has no other names for these.
            if text.contains("password missing") {
                return TxError::Fatal(ServiceStoreError::NoPassword);
            }
            if text.contains("server does not support TLS") {
                let why = "the database does not support TLS, but sslmode requires it: enable TLS there, or remove sslmode on a trusted network";
                return TxError::Fatal(ServiceStoreError::Unfit(why.to_owned()));
            }
            let io = std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>());
            return if io || error.is_closed() || text.contains("timeout") || text.contains("connecting") {
                lost(text)
            } else {
                TxError::Fatal(ServiceStoreError::Failed(text))
            };
        };
        match db.code().code() {
            // Serialization failure, deadlock, read-only standby after a failover, too many connections, starting up:
            // each ends without this process doing anything.
            "40001" | "40P01" | "25006" | "53300" | "57P03" => TxError::Retryable(text),
            "28P01" | "28000" => TxError::Fatal(ServiceStoreError::Refused(text)),
            "23505" => TxError::UniqueViolation(db.constraint().unwrap_or_default().to_owned()),
            // Statement timeout, lock timeout, disk full, out of memory: a retry at once would make it worse.
            "57014" | "55P03" | "53100" | "53200" => TxError::Fatal(ServiceStoreError::Unavailable(text)),
            // Connection lost, or closed by an administrator, a crash or the idle timeout: after COMMIT was sent, the
            // outcome is unknown.
            code if code.starts_with("08") || code.starts_with("57P") || code == "25P03" => lost(text),
            _ => TxError::Fatal(ServiceStoreError::Failed(text)),
        }
    }

    /// The error of the store, for a caller that does not retry.
    pub(super) fn into_store_error(self) -> ServiceStoreError {
        match self {
            TxError::Retryable(why) | TxError::Ambiguous(why) => ServiceStoreError::Unavailable(why),
            TxError::UniqueViolation(what) => ServiceStoreError::Failed(format!("{what} already exists")),
            TxError::Fatal(error) => error,
        }
    }
}

fn describe(error: &Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(db), _) => format!("{} ({})", db.message(), db.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// A connection of the pool. One that is dropped in the middle of a transaction is closed, and not used again.
pub(super) struct PooledConnection {
    connection: Option<Object>,
    inner: Arc<Inner>,
    idle: bool,
    /// Given back after the connection.
    _slot: Slot,
}

impl PooledConnection {
    /// A connection for what belongs to a user, in the user's turn.
    pub(super) async fn take(inner: &Arc<Inner>, user: &str) -> Result<Self, TxError> {
        Self::of(inner, &inner.pool, user).await
    }

    /// A connection for what the service does on its own account.
    pub(super) async fn for_service(inner: &Arc<Inner>) -> Result<Self, TxError> {
        Self::of(inner, &inner.pool, SERVICE).await
    }

    /// A connection for users and tokens. No other statement can keep these busy.
    pub(super) async fn for_accounts(inner: &Arc<Inner>, lane: &str) -> Result<Self, TxError> {
        Self::of(inner, &inner.accounts_pool, lane).await
    }

    async fn of(inner: &Arc<Inner>, pool: &FairPool, lane: &str) -> Result<Self, TxError> {
        let (connection, slot) = pool.get(lane).await?;
        Ok(PooledConnection {
            connection: Some(connection),
            inner: Arc::clone(inner),
            idle: true,
            _slot: slot,
        })
    }

    /// The connection itself.
    pub(super) fn raw(&self) -> Result<&tokio_postgres::Client, TxError> {
        let lost = || TxError::Retryable("the transaction has no connection".to_owned());
        self.connection.as_ref().map(|connection| &***connection).ok_or_else(lost)
    }

    /// Marks the connection as one with an open transaction.
    pub(super) fn busy(&mut self) {
        self.idle = false;
    }

    /// Sends everything at once and waits for all of it; the rows of each.
    pub(super) async fn send(&mut self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, Error> {
        let Some(connection) = &self.connection else { return Ok(Vec::new()) };
        // Prepared before anything is sent, because preparing waits for a response and would break the pipeline.
        let mut statements = Vec::with_capacity(steps.len());
        for step in steps {
            statements.push(match step {
                Step::Plain(_) => None,
                Step::Run(sql, _) => Some(connection.prepare_cached(self.inner.texts.get(*sql)).await?),
                Step::Other(sql, _) => Some(connection.prepare_cached(sql).await?),
            });
        }
        // Until all answers are in: if this future is dropped, the connection must not be reused.
        let was_idle = std::mem::replace(&mut self.idle, false);
        let mut sent = Vec::with_capacity(steps.len());
        for (step, statement) in steps.iter().zip(&statements) {
            sent.push(Box::pin(async move {
                match (step, statement) {
                    (Step::Run(_, params) | Step::Other(_, params), Some(statement)) => {
                        let params: Vec<&(dyn ToSql + Sync)> =
                            params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
                        connection.query(statement, &params).await
                    }
                    (Step::Plain(sql), _) => connection.batch_execute(sql).await.map(|()| Vec::new()),
                    _ => Ok(Vec::new()),
                }
            }));
        }
        // The first error is the cause of those after it.
        let rows = in_order(sent).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        // A statement alone changes nothing about it: it may be one of an open transaction.
        self.idle = match steps.iter().rfind(|step| matches!(step, Step::Plain(_))) {
            None => was_idle,
            Some(last) => matches!(last, Step::Plain("COMMIT")),
        };
        Ok(rows)
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && !self.idle
        {
            // Taken out of the pool: a transaction may still be open on it, and the next user must not inherit it.
            drop(Object::take(connection));
        }
    }
}

/// Runs futures concurrently, started in the order given, which is the order of execution.
async fn in_order<F: Future>(futures: Vec<Pin<Box<F>>>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    poll_fn(|cx| {
        let mut all = true;
        for (future, output) in waiting.iter_mut().filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(cx) {
                Poll::Ready(ready) => *output = Some(ready),
                Poll::Pending => all = false,
            }
        }
        if all { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, output)| output).collect()
}

/// First and longest delay between two attempts.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(500));

/// Backoff between attempts, until a deadline.
pub(super) struct RetryTimer {
    deadline: Instant,
    backoff: Backoff,
}

impl RetryTimer {
    /// Retries for a time.
    pub(super) fn new(time: Duration) -> Self {
        let (first, max) = RETRY_DELAYS;
        RetryTimer { deadline: Instant::now() + time, backoff: Backoff::new(first, max) }
    }

    /// Waits for something until the deadline.
    pub(super) async fn within<T>(&self, what: impl Future<Output = T>) -> Result<T, ServiceStoreError> {
        let busy = |_| ServiceStoreError::Unavailable("too many pending changes of this session".to_owned());
        tokio::time::timeout_at(self.deadline, what).await.map_err(busy)
    }

    /// Waits before the next attempt. Fails if that would be after the deadline.
    pub(super) async fn wait(&mut self, why: String) -> Result<(), ServiceStoreError> {
        // Fails now instead of sleeping into a deadline that is certain to pass.
        if Instant::now() + self.backoff.upper_bound() >= self.deadline {
            return Err(ServiceStoreError::Unavailable(why));
        }
        let delay = self.backoff.next_delay();
        tracing::debug!(reason = why, ?delay, "retrying transaction");
        tokio::time::sleep(delay).await;
        Ok(())
    }
}
