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
mod migrate;
mod old;
mod read;
mod role;
mod rows;
mod snapshot;
mod sql;
mod tls;
mod transaction;
mod upkeep;
mod write;

use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::fair::TokenOwners;
use super::wake::{self, Bells};
use super::{DbError, Old, Read, Request, Upkeep};
use crate::account::{Account, Administer, Asked, Collected, Login, Minted, Token};
use crate::change::{Done, Refusal};
use crate::model::UserId;
use crate::query::{Answer, Query};
use crate::rules::Dependencies;
use connect::{Address, FairPool};
use sql::{Sql, Texts};
use transaction::{Attempts, Link, Step, Trouble, params};

pub use connect::PostgresOptions;
pub use sql::Walls;

/// So many lanes; a session has one of them, and may share it.
const LANES: u64 = 1024;

/// A store in PostgreSQL.
#[derive(Clone, Debug)]
pub struct Postgres {
    inner: Arc<Inner>,
    bells: Bells,
    _listens: Arc<Listens>,
}

struct Inner {
    pool: FairPool,
    /// For users and tokens. Whatever else goes on, a token can be checked.
    accounts_pool: FairPool,
    owners: TokenOwners,
    texts: Texts,
    options: PostgresOptions,
    /// Stands for this process.
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
struct Listens(JoinHandle<()>);

impl Drop for Listens {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Postgres {
    pub(super) async fn open(url: &str, options: PostgresOptions) -> Result<Self, DbError> {
        let address = Address::parse(url, &options)?;
        let (pool, accounts_pool) = address.pools(&options)?;
        let inner = Inner {
            pool,
            accounts_pool,
            owners: TokenOwners::default(),
            texts: Texts::new(options.walls),
            lanes: (0..LANES).map(|_| Mutex::default()).collect(),
            notifies: OnceLock::new(),
            process: super::new_process()?,
            options,
        };
        let inner = Arc::new(inner);
        let role = tried(&inner, || role::Role::fit(&inner)).await?;
        tried(&inner, || migrate::migrate(&inner, &role)).await?;
        tried(&inner, || role::see_to_row_security(&inner)).await?;
        let notifies = tried(&inner, || listen::notifies(&inner)).await?;
        inner.notifies.get_or_init(|| notifies);
        let bells = Bells::new();
        let listens = Listens(tokio::spawn(listen::listen(address, bells.clone())));
        Ok(Postgres { inner, bells, _listens: Arc::new(listens) })
    }

    pub(super) async fn change(&self, request: Request) -> Result<Result<Done, Refusal>, DbError> {
        let store = self.clone();
        // Who asked may go away; what was begun is finished, so that its connection can be used again.
        let made = tokio::spawn(async move { store.make(&request).await });
        made.await.map_err(|error| DbError::Unavailable(error.to_string()))?
    }

    async fn make(&self, request: &Request) -> Result<Result<Done, Refusal>, DbError> {
        let inner = &self.inner;
        let mut attempts = Attempts::new(inner.options.patience);
        let mut unknown = false;
        loop {
            let tried = {
                let dependencies = Dependencies::of(&request.change);
                let lane = dependencies.serialized_by().map(|lane| wake::hash(&request.user, lane) % LANES);
                let lane = lane.and_then(|lane| inner.lanes.get(usize::try_from(lane).unwrap_or(0)));
                let _alone = match lane {
                    Some(lane) => Some(attempts.wait_for(lane.lock()).await?),
                    None => None,
                };
                apply::attempt(inner, request, unknown).await
            };
            match tried {
                Ok((outcome, next)) => {
                    if let Some(next) = next {
                        self.bells.ring(next);
                    }
                    return Ok(outcome);
                }
                Err(Trouble::Again(why)) => attempts.again(why).await?,
                Err(Trouble::Unknown(why)) => {
                    unknown = true;
                    attempts.again(why).await?;
                }
                // Somebody took the name, or used the key, between the look and the write.
                Err(Trouble::Twice(what)) if what == "answered_pkey" || what == "session_live_name" => {
                    attempts.again(what).await?;
                }
                // An earlier attempt was made after all: under its key it is found.
                Err(Trouble::Twice(what)) if unknown && request.key.is_some() => attempts.again(what).await?,
                Err(Trouble::Twice(_)) if unknown => {
                    let made = "the connection was lost, and the change was made or refused: what came of it is not known";
                    return Err(DbError::Unavailable(made.to_owned()));
                }
                Err(Trouble::Twice(what)) => {
                    return Err(self.failed(request, format!("{what} is there already")).await);
                }
                Err(Trouble::Over(DbError::Failed(why))) => return Err(self.failed(request, why).await),
                Err(Trouble::Over(error)) => return Err(error),
            }
        }
    }

    /// Records a failure, if that can be done.
    async fn failed(&self, request: &Request, why: String) -> DbError {
        let _ = apply::record_failure(&self.inner, request).await;
        DbError::Failed(why)
    }

    pub(super) async fn ask(&self, user: &UserId, query: Query) -> Result<Result<Answer, Refusal>, DbError> {
        tried(&self.inner, || read::answer(&self.inner, user, &query)).await
    }

    pub(super) async fn administer(&self, change: Administer) -> Result<Result<(), Refusal>, DbError> {
        tried(&self.inner, || accounts::administer(&self.inner, &change)).await
    }

    pub(super) async fn accounts(&self) -> Result<Vec<Account>, DbError> {
        tried(&self.inner, || accounts::all(&self.inner)).await
    }

    pub(super) async fn tokens(&self, user: &UserId) -> Result<Vec<Token>, DbError> {
        tried(&self.inner, || accounts::tokens(&self.inner, user)).await
    }

    pub(super) async fn token(&self, hash: &str) -> Result<Option<Token>, DbError> {
        tried(&self.inner, || accounts::usable(&self.inner, hash)).await
    }

    pub(super) async fn owner(&self, token: &str) -> Result<Option<UserId>, DbError> {
        tried(&self.inner, || accounts::owner(&self.inner, token)).await
    }

    pub(super) async fn forget(
        &self,
        user: &UserId,
        what: Old,
        before_ms: i64,
        most: i64,
    ) -> Result<usize, DbError> {
        tried(&self.inner, || old::forget(&self.inner, user, what, before_ms, most)).await
    }

    pub(super) async fn due(
        &self,
        what: Upkeep,
        before_ms: i64,
        now_ms: i64,
        most: i64,
    ) -> Result<Vec<UserId>, DbError> {
        tried(&self.inner, || upkeep::due(&self.inner, what, before_ms, now_ms, most)).await
    }

    pub(super) async fn swept(
        &self,
        user: &UserId,
        what: Upkeep,
        before_ms: i64,
        now_ms: i64,
    ) -> Result<(), DbError> {
        tried(&self.inner, || upkeep::swept(&self.inner, user, what, before_ms, now_ms)).await
    }

    pub(super) async fn lead(&self, name: &str, lease_ms: i64) -> Result<bool, DbError> {
        tried(&self.inner, || upkeep::lead(&self.inner, name, lease_ms)).await
    }

    pub(super) async fn setting(&self, name: &str) -> Result<Option<i64>, DbError> {
        tried(&self.inner, || upkeep::setting(&self.inner, name)).await
    }

    pub(super) async fn over(
        &self,
        user: &UserId,
        before_ms: i64,
        most: i64,
    ) -> Result<Vec<String>, DbError> {
        tried(&self.inner, || old::over(&self.inner, user, before_ms, most)).await
    }

    pub(super) async fn forget_session(
        &self,
        user: &UserId,
        session: &str,
        before_ms: i64,
        most: i64,
    ) -> Result<bool, DbError> {
        tried(&self.inner, || old::forget_session(&self.inner, user, session, before_ms, most)).await
    }

    pub(super) async fn begin_login(&self, asked: Asked, most: i64) -> Result<bool, DbError> {
        tried(&self.inner, || logins::begin(&self.inner, &asked, most)).await
    }

    pub(super) async fn login(&self, code_hash: &str) -> Result<Option<Login>, DbError> {
        tried(&self.inner, || logins::get(&self.inner, code_hash)).await
    }

    pub(super) async fn collect_login(
        &self,
        device_hash: &str,
        minted: Minted,
    ) -> Result<Collected, DbError> {
        tried(&self.inner, || logins::collect(&self.inner, device_hash, &minted)).await
    }

    pub(super) async fn record(&self, reads: Vec<Read>) -> Result<(), DbError> {
        let mut steps = vec![Step::Plain(apply::BEGIN)];
        for read in reads {
            let Read { user, access, action, session, outcome, at_ms } = read;
            steps.push(Step::Run(Sql::As, params![user.0.clone()]));
            // It is the same however often it is said.
            let nothing = None::<String>;
            let params = params![user.0, access.id, at_ms, access.token, action, session, outcome, nothing];
            steps.push(Step::Run(Sql::PutAudit, params));
        }
        steps.push(Step::Plain("COMMIT"));
        let record = || async {
            let mut link = Link::for_service(&self.inner).await?;
            link.send(&steps).await.map(drop).map_err(|error| transaction::trouble(&error, false))
        };
        tried(&self.inner, record).await
    }

    pub(super) async fn keep(&self) -> Result<(), DbError> {
        tried(&self.inner, || heartbeat::send(&self.inner)).await
    }

    pub(super) async fn token_hashes(&self) -> Result<Vec<String>, DbError> {
        tried(&self.inner, || accounts::usable_hashes(&self.inner)).await
    }

    pub(super) async fn check_writable(&self) -> Result<(), DbError> {
        heartbeat::send(&self.inner).await.map_err(given_up)
    }

    /// Whether the database answers, now: it is not waited for.
    pub(super) async fn ready(&self) -> Result<(), DbError> {
        accounts::ready(&self.inner).await.map_err(given_up)
    }

    pub(super) fn bells(&self) -> &Bells {
        &self.bells
    }
}

/// Tries until it is done, or nothing is to be gained by trying again.
async fn tried<T, F: Future<Output = Result<T, Trouble>>>(
    inner: &Inner,
    attempt: impl Fn() -> F,
) -> Result<T, DbError> {
    let mut attempts = Attempts::new(inner.options.patience);
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(Trouble::Again(why)) => attempts.again(why).await?,
            Err(other) => return Err(given_up(other)),
        }
    }
}

fn given_up(trouble: Trouble) -> DbError {
    match trouble {
        Trouble::Again(why) | Trouble::Unknown(why) => DbError::Unavailable(why),
        Trouble::Twice(what) => DbError::Failed(format!("{what} is there already")),
        Trouble::Over(error) => error,
    }
}
