//! Who carries out changes and answers questions. Both stores do the same, and one suite of tests holds for both.

mod fair;
mod lists;
mod postgres;
mod sqlite;
mod wake;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::account::{Account, Administer, Asked, Collected, Login, Minted, Token};
use crate::change::{Change, Done, Refusal};
use crate::clock;
use crate::model::{Resource, UserId};
use crate::query::{Answer, Query};

pub use postgres::{Postgres, PostgresOptions, Walls};
pub use sqlite::{Sqlite, backup};

/// A change, by whom, and how it is told from others.
#[derive(Clone, Debug)]
pub struct Request {
    /// Whose.
    pub user: UserId,
    /// What.
    pub change: Change,
    /// The same key and the same change come to the same, however often they are sent.
    pub key: Option<String>,
    /// What the record of accesses says of it.
    pub access: Access,
}

/// Who did it, for the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// An id of the access, which no other has.
    pub id: String,
    /// The id of the token that it was done with.
    pub token: Option<String>,
}

/// Something that was read, or done by who administers the store, for the record.
#[derive(Clone, Debug)]
pub struct Read {
    /// By whom.
    pub user: UserId,
    /// With what.
    pub access: Access,
    /// What: the name of the query.
    pub action: String,
    /// The session it was about.
    pub session: Option<String>,
    /// `done`, or why not.
    pub outcome: String,
    /// When.
    pub at_ms: i64,
}

/// What is not kept for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// What changes came to that were made under an idempotency key.
    Answered,
    /// Events of sessions.
    Events,
    /// The record of accesses.
    Audit,
}

/// What a sweep removes, user by user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Rows that are old.
    Rows(Old),
    /// Sessions that are over.
    Sessions,
}

impl Upkeep {
    /// The name in the store.
    fn kind(self) -> &'static str {
        match self {
            Upkeep::Rows(Old::Answered) => "answered",
            Upkeep::Rows(Old::Events) => "events",
            Upkeep::Rows(Old::Audit) => "audit",
            Upkeep::Sessions => "sessions",
        }
    }
}

/// Days for which a store that is made now keeps sessions after their end.
const KEEP_SESSIONS_DAYS: i64 = 30;

/// The setting of a store for it, in milliseconds.
const KEEP_SESSIONS: (&str, i64) = ("keep_sessions_ms", KEEP_SESSIONS_DAYS * 86_400_000);

/// A store could not do what it was asked; whether the change was made is then not known, unless it says so.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DbError {
    /// It cannot be reached, or is too busy. Trying again may help; with an idempotency key nothing is done twice.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// Something is wrong with it.
    #[error("the store failed: {0}")]
    Failed(String),
    /// It does not let this program in: the role or the password is not one of its own.
    #[error("the store lets nobody in with this role and password: {0}")]
    Refused(String),
    /// It wants a password, and none was given.
    #[error("the store wants a password, and none was given")]
    NoPassword,
    /// A newer version of this program has changed the tables.
    #[error("{store} has schema version {found}; this program supports versions up to {known}")]
    TooNew {
        /// The store: a path, or `the database`.
        store: String,
        /// Its schema version.
        found: i64,
        /// The newest schema version that this program knows.
        known: i64,
    },
    /// The address is none, or leads to what must not be used.
    #[error("the store cannot be used: {0}")]
    Unfit(String),
}

/// What stands for this process in a store.
fn new_process() -> Result<Arc<str>, DbError> {
    clock::new_id().map(Arc::from).map_err(|error| DbError::Failed(error.to_string()))
}

/// The same on whichever store it is.
macro_rules! on {
    ($db:expr, $store:ident => $what:expr) => {
        match $db {
            Db::Sqlite($store) => $what,
            Db::Postgres($store) => $what,
        }
    };
}

/// A store.
#[derive(Clone, Debug)]
pub enum Db {
    /// A file on this machine.
    Sqlite(Sqlite),
    /// A PostgreSQL database, which other processes may use too.
    Postgres(Postgres),
}

impl Db {
    /// Opens a store in a file, and makes it if there is none.
    pub async fn sqlite(path: &Path) -> Result<Self, DbError> {
        Sqlite::open(path).await.map(Db::Sqlite)
    }

    /// Opens a store in a PostgreSQL database, and makes its tables if there are none.
    pub async fn postgres(url: &str, options: PostgresOptions) -> Result<Self, DbError> {
        Postgres::open(url, options).await.map(Db::Postgres)
    }

    /// Makes a change, whole or not at all. It is on the disk when this returns.
    pub async fn change(&self, request: Request) -> Result<Result<Done, Refusal>, DbError> {
        on!(self, store => store.change(request).await)
    }

    /// Answers a question.
    pub async fn ask(&self, user: &UserId, query: Query) -> Result<Result<Answer, Refusal>, DbError> {
        on!(self, store => store.ask(user, query).await)
    }

    /// Changes who there is. Only for who administers the service: it is not bound to one user.
    pub async fn administer(&self, change: Administer) -> Result<Result<(), Refusal>, DbError> {
        on!(self, store => store.administer(change).await)
    }

    /// The users, in order.
    pub async fn accounts(&self) -> Result<Vec<Account>, DbError> {
        on!(self, store => store.accounts().await)
    }

    /// The tokens of a user, the oldest first.
    pub async fn tokens(&self, user: &UserId) -> Result<Vec<Token>, DbError> {
        on!(self, store => store.tokens(user).await)
    }

    /// The token with a hash, if it may be used now: neither it nor its user was shut out, and its time is not over.
    pub async fn token(&self, hash: &str) -> Result<Option<Token>, DbError> {
        on!(self, store => store.token(hash).await)
    }

    /// The hashes of all tokens that may be used now.
    pub async fn token_hashes(&self) -> Result<Vec<String>, DbError> {
        on!(self, store => store.token_hashes().await)
    }

    /// Whose token has an id.
    pub async fn owner(&self, token: &str) -> Result<Option<UserId>, DbError> {
        on!(self, store => store.owner(token).await)
    }

    /// Removes what a user has that is older than a time, `most` rows of it at most; how many it were. Nobody waits long for a
    /// few of them.
    pub async fn forget(
        &self,
        user: &UserId,
        what: Old,
        before_ms: i64,
        most: i64,
    ) -> Result<usize, DbError> {
        on!(self, store => store.forget(user, what, before_ms, most).await)
    }

    /// Users who may have something of a kind that is older than a time, `most` of them at most. Who was visited by a clock
    /// that was ahead is due too.
    pub async fn due(
        &self,
        what: Upkeep,
        before_ms: i64,
        now_ms: i64,
        most: i64,
    ) -> Result<Vec<UserId>, DbError> {
        on!(self, store => store.due(what, before_ms, now_ms, most).await)
    }

    /// Notes that everything of a kind that a user had before a time was removed: until something else is as old, the user is
    /// not due again.
    pub async fn swept(
        &self,
        user: &UserId,
        what: Upkeep,
        before_ms: i64,
        now_ms: i64,
    ) -> Result<(), DbError> {
        on!(self, store => store.swept(user, what, before_ms, now_ms).await)
    }

    /// Acquires or renews a lease, by which one process does something for all. Whether this process has it.
    pub async fn lead(&self, name: &str, lease: Duration) -> Result<bool, DbError> {
        on!(self, store => store.lead(name, i64::try_from(lease.as_millis()).unwrap_or(i64::MAX)).await)
    }

    /// Retention of ended sessions that the store was made with; none if it keeps them for ever.
    pub async fn session_retention(&self) -> Result<Option<Duration>, DbError> {
        let millis = on!(self, store => store.setting(KEEP_SESSIONS.0).await)?;
        Ok(millis.and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis))
    }

    /// Sessions of a user that ended or expired before a time, `most` of them at most.
    pub async fn over(&self, user: &UserId, before_ms: i64, most: i64) -> Result<Vec<String>, DbError> {
        on!(self, store => store.over(user, before_ms, most).await)
    }

    /// Removes a session that was over before a time, with all that it has. Not more than `most` messages at once, the last
    /// ones first; whether it is gone.
    pub async fn forget_session(
        &self,
        user: &UserId,
        session: &str,
        before_ms: i64,
        most: i64,
    ) -> Result<bool, DbError> {
        on!(self, store => store.forget_session(user, session, before_ms, most).await)
    }

    /// Puts down a machine that asks to be let in. Not if there are so many already that one more is too many.
    pub async fn begin_login(&self, asked: Asked, most: i64) -> Result<bool, DbError> {
        on!(self, store => store.begin_login(asked, most).await)
    }

    /// The machine that asks to be let in under a code, by what that hashes to, if it can still be decided on.
    pub async fn login(&self, code_hash: &str) -> Result<Option<Login>, DbError> {
        on!(self, store => store.login(code_hash).await)
    }

    /// Makes the token of a machine that was let in, once, however many ask for it.
    pub async fn collect_login(&self, device_hash: &str, minted: Minted) -> Result<Collected, DbError> {
        on!(self, store => store.collect_login(device_hash, minted).await)
    }

    /// Puts on the record what was read.
    pub async fn record(&self, reads: Vec<Read>) -> Result<(), DbError> {
        on!(self, store => store.record(reads).await)
    }

    /// Says that this process is alive. When nothing is heard of it for [`PRESENT_MS`](crate::change::PRESENT_MS), those who
    /// wait in it are passed over.
    pub async fn keep(&self) -> Result<(), DbError> {
        on!(self, store => store.keep().await)
    }

    /// Fails unless the store takes a write, now: nothing is tried again.
    pub async fn check_writable(&self) -> Result<(), DbError> {
        on!(self, store => store.check_writable().await)
    }

    /// Whether it can be reached.
    pub async fn ready(&self) -> Result<(), DbError> {
        on!(self, store => store.ready().await)
    }

    /// Returns when a place that waits may have come to be the first, or a little later anyway. Counted from the call, so
    /// that nothing is missed by who calls it, looks, and then awaits it.
    pub fn woken(
        &self,
        user: &UserId,
        resource: &Resource,
        place: i64,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match self {
            Db::Sqlite(store) => Box::pin(store.woken(user, resource.key(), place)),
            Db::Postgres(store) => Box::pin(store.bells().heard(wake::mark(user, &resource.key(), place))),
        }
    }
}
