//! The store in a file: the library's schema, and what the service adds to it.
//!
//! SQLite store: one writer thread with batched transactions, and parallel readers.

mod accounts;
mod apply;
pub mod backup;
mod bulk;
mod handover;
mod heartbeat;
mod listing;
mod logins;
mod maintenance;
mod read;
mod readers;
mod retention;
mod rows;
mod short_reads;
mod snapshot;
mod write;
mod writer;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use sessile::files::Locker;

use super::fair_queue::{SERVICE, TokenOwners, cores};
use super::retention::KEEP_SESSIONS;
use super::wakeups::{self, Wakeups};
use super::{ExpiringRows, PendingWait, ServiceStoreError, StoreBackend, StoreFuture, Sweep, SweepLimit};
use crate::account::{Account, AccountChange, Login, LoginCollection, NewLogin, NewTokenHash, Token};
use crate::change::{ChangeOutcome, Refusal, StoreChange};
use crate::clock::now_ms;
use crate::ids::{Position, SecretHash, SessionId, TokenId, UserName};
use crate::model::Resource;
use crate::query::{Query, QueryAnswer};
use crate::request::{AuditedRead, Request};
use crate::rules::QueueState;
use readers::{Priority, Readers};
use short_reads::ShortReads;
use snapshot::QueueView;
use writer::SqliteWriter;

/// Connections that read users and tokens, so that a token can be checked under any load.
const ACCOUNT_READERS: usize = 2;

/// Time for which other processes are waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Migrations of the service, in order; each is run once.
const ADDED: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("contexts.sql"),
    include_str!("logins.sql"),
    include_str!("history.sql"),
    include_str!("retention.sql"),
    include_str!("listing.sql"),
    include_str!("bulk.sql"),
    include_str!("upkeep.sql"),
    include_str!("removed.sql"),
    include_str!("shared_locks.sql"),
    include_str!("locks_of_sessions.sql"),
];

/// A store in a file.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    writer: SqliteWriter,
    readers: Readers,
    account_readers: Readers,
    short_reads: ShortReads,
    owners: TokenOwners,
    wakeups: Wakeups,
    /// Id of this process.
    process: Arc<str>,
}

impl SqliteStore {
    pub(super) async fn open(path: &Path) -> Result<Self, ServiceStoreError> {
        let path = path.to_owned();
        let no_thread =
            |error| ServiceStoreError::Failed(format!("cannot start a thread of the store: {error}"));
        let open = move || -> Result<_, ServiceStoreError> {
            let writer = connect(&path)?;
            extend(&writer, &path)?;
            let abandoned = bulk::abandoned(&writer, now_ms()).map_err(|error| describe(&error))?;
            let readers = |count: usize, priority| {
                let connections = (0..count).map(|_| connect(&path)).collect::<Result<Vec<_>, _>>()?;
                // One user has half of them at most.
                Readers::start(connections, count / 2, priority).map_err(no_thread)
            };
            let users = readers((2 * cores()).clamp(2, 16), Priority::Low)?;
            // One for each thread of the runtime.
            let short = (0..cores()).map(|_| connect(&path)).collect::<Result<Vec<_>, _>>()?;
            let short = ShortReads::new(short).map_err(|error| describe(&error))?;
            Ok((writer, users, readers(ACCOUNT_READERS, Priority::Normal)?, short, abandoned))
        };
        let (done, opened) = tokio::sync::oneshot::channel();
        // Opening may wait for locks of other processes, and a migration for the disk. Not on a thread of the runtime,
        // which panics if it gets none.
        let opening = move || {
            // Nobody waits for a store that was given up.
            let _ = done.send(open());
        };
        std::thread::Builder::new().spawn(opening).map_err(no_thread)?;
        let (writer, readers, account_readers, short_reads, abandoned) =
            opened.await.map_err(|error| ServiceStoreError::Failed(error.to_string()))??;
        let store = SqliteStore {
            writer: SqliteWriter::start(writer).map_err(no_thread)?,
            readers,
            account_readers,
            short_reads,
            owners: TokenOwners::default(),
            wakeups: Wakeups::new(),
            process: super::new_process()?,
        };
        for (user, session) in abandoned {
            tokio::spawn(store.clone().clean_up(user, session));
        }
        Ok(store)
    }

    /// Copies what a fork takes along, all but the last slice. The session that may have rows afterwards which do not count.
    async fn prepare(&self, request: &Request) -> Result<Option<(String, String)>, ServiceStoreError> {
        let user = request.user.to_string();
        match &request.change {
            StoreChange::Rewind { session, .. } => Ok(Some((user, session.to_string()))),
            StoreChange::Fork { session, at, id, .. } => {
                let (from, to, key) = (session.to_string(), id.to_string(), request.key.clone());
                let fork = bulk::Fork { user: user.clone(), from, at: *at, to: to.clone(), key };
                loop {
                    let fork = fork.clone();
                    if !self.writer.run(move |connection, now| fork.copy_slice(connection, now)).await? {
                        return Ok(Some((user, to)));
                    }
                }
            }
            _ => Ok(None),
        }
    }

    /// Removes obsolete rows of a session in slices. The next start retries after a failure.
    async fn clean_up(self, user: String, session: String) {
        loop {
            let (user, session) = (user.clone(), session.clone());
            let remove = move |connection: &Connection, _| bulk::remove_slice(connection, &user, &session);
            if !self.writer.run(remove).await.unwrap_or(false) {
                return;
            }
        }
    }

    /// Does something in the writer's next transaction.
    fn write<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.writer.run(what))
    }

    /// Reads users and tokens, on the service's own account.
    fn read_accounts<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.account_readers.read(SERVICE, what))
    }
}

impl StoreBackend for SqliteStore {
    fn change(&self, request: Request) -> StoreFuture<'_, Result<ChangeOutcome, Refusal>> {
        Box::pin(async move {
            let freed = request.change.freed_queue().map(|resource| (request.user.clone(), resource));
            let leaves = self.prepare(&request).await?;
            let applied = self.writer.change(Arc::clone(&self.process), request).await;
            if let Some((user, session)) = leaves {
                // Nobody waits for it: these rows do not count.
                tokio::spawn(self.clone().clean_up(user, session));
            }
            let (outcome, next) = applied?;
            if let (Some((user, resource)), Some(next)) = (freed, next) {
                self.wakeups.wake(wakeups::mark(&user, &resource, next));
            }
            Ok(outcome)
        })
    }

    fn wait_with_release(&self, request: Request) -> PendingWait {
        self.writer.wait_with_release(request)
    }

    fn ask<'a>(&'a self, user: &'a UserName, query: Query) -> StoreFuture<'a, Result<QueryAnswer, Refusal>> {
        Box::pin(async move {
            if query.is_short() {
                let answer = |connection: &Connection| read::answer(connection, user, &query, now_ms());
                if let Some(answer) = self.short_reads.try_read_snapshot(answer) {
                    return answer.map_err(|error| describe(&error));
                }
            }
            let owner = user.clone();
            let answer = move |connection: &Connection| read::answer(connection, &owner, &query, now_ms());
            self.readers.read(user.as_str(), answer).await
        })
    }

    /// Other processes cannot wake this one, so it looks, with a reader that keeps no writer waiting.
    fn wait_for_wakeup(
        &self,
        user: &UserName,
        resource: &Resource,
        place: Position,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (store, user, resource) = (self.clone(), user.clone(), resource.key());
        let mark = wakeups::mark(&user, &resource, place);
        let mut wakeup = self.wakeups.wait(mark);
        Box::pin(async move {
            loop {
                wakeup.await;
                // Registered before the look, so that a wake-up between look and wait is not lost.
                wakeup = store.wakeups.wait(mark);
                let (owner, resource) = (user.to_string(), resource.clone());
                let process = Arc::clone(&store.process);
                let look = move |connection: &Connection| {
                    let now = now_ms();
                    let view =
                        QueueView { connection, user: &owner, resource: &resource, process: &process, now };
                    let snapshot = view.load(Some(place), None)?;
                    Ok(QueueState::new(resource.clone(), snapshot, &process, now).is_due(place))
                };
                let due = match store.short_reads.try_read_snapshot(&look) {
                    Some(due) => due.map_err(|error| describe(&error)),
                    None => store.readers.read(user.as_str(), look).await,
                };
                // A failed read counts as due: the next change finds out, and reports the failure.
                if due.unwrap_or(true) {
                    return;
                }
            }
        })
    }

    fn heartbeat(&self) -> StoreFuture<'_, ()> {
        let process = Arc::clone(&self.process);
        self.write(move |connection, now| {
            heartbeat::delete_dead(connection, now)?;
            heartbeat::send(connection, &process, now)
        })
    }

    fn record(&self, reads: Vec<AuditedRead>) -> StoreFuture<'_, ()> {
        self.write(move |connection, _| apply::record_reads(connection, &reads))
    }

    fn ready(&self) -> StoreFuture<'_, ()> {
        self.read_accounts(accounts::ready)
    }

    fn check_writable(&self) -> StoreFuture<'_, ()> {
        self.heartbeat()
    }

    fn administer(&self, change: AccountChange) -> StoreFuture<'_, Result<(), Refusal>> {
        self.write(move |connection, now| accounts::administer(connection, &change, now))
    }

    fn accounts(&self) -> StoreFuture<'_, Vec<Account>> {
        self.read_accounts(accounts::all)
    }

    fn tokens<'a>(&'a self, user: &'a UserName) -> StoreFuture<'a, Vec<Token>> {
        let user = user.clone();
        self.read_accounts(move |connection| accounts::tokens(connection, &user))
    }

    fn token<'a>(&'a self, hash: &'a SecretHash) -> StoreFuture<'a, Option<Token>> {
        Box::pin(async move {
            let short = self.short_reads.try_read(|connection| accounts::usable(connection, hash, now_ms()));
            let token = match short {
                Some(token) => token.map_err(|error| describe(&error))?,
                None => {
                    let (lane, key) = (self.owners.lane(hash), hash.clone());
                    let usable = move |connection: &Connection| accounts::usable(connection, &key, now_ms());
                    self.account_readers.read(&lane, usable).await?
                }
            };
            self.owners.remember(hash, token.as_ref().map(|token| &token.user));
            Ok(token)
        })
    }

    fn token_hashes(&self) -> StoreFuture<'_, Vec<SecretHash>> {
        self.read_accounts(|connection| accounts::usable_hashes(connection, now_ms()))
    }

    fn owner<'a>(&'a self, token: &'a TokenId) -> StoreFuture<'a, Option<UserName>> {
        let id = token.clone();
        self.read_accounts(move |connection| Ok(accounts::with_id(connection, &id)?.map(|token| token.user)))
    }

    fn begin_login(&self, asked: NewLogin, most: i64) -> StoreFuture<'_, bool> {
        self.write(move |connection, now| logins::begin(connection, &asked, most, now))
    }

    fn login<'a>(&'a self, code_hash: &'a SecretHash) -> StoreFuture<'a, Option<Login>> {
        let code_hash = code_hash.clone();
        let login = move |connection: &Connection| logins::get(connection, &code_hash, now_ms());
        Box::pin(self.account_readers.read(TokenOwners::STRANGERS, login))
    }

    fn collect_login<'a>(
        &'a self,
        device_hash: &'a SecretHash,
        minted: NewTokenHash,
    ) -> StoreFuture<'a, LoginCollection> {
        Box::pin(async move {
            let device = device_hash.clone();
            // Most who ask have to wait, and need not wait for the disk in order to hear it.
            let look = move |connection: &Connection| logins::look(connection, &device, now_ms());
            match self.account_readers.read(TokenOwners::STRANGERS, look).await? {
                Some(nothing_to_take) => Ok(nothing_to_take),
                None => {
                    let device = device_hash.clone();
                    self.write(move |connection, now| logins::take(connection, &device, &minted, now)).await
                }
            }
        })
    }

    fn delete_expired<'a>(
        &'a self,
        user: &'a UserName,
        rows: ExpiringRows,
        limit: SweepLimit,
    ) -> StoreFuture<'a, usize> {
        let user = user.clone();
        self.write(move |connection, _| retention::delete_expired(connection, &user, rows, limit))
    }

    fn expired_sessions<'a>(
        &'a self,
        user: &'a UserName,
        limit: SweepLimit,
    ) -> StoreFuture<'a, Vec<SessionId>> {
        let user = user.clone();
        let sessions = move |connection: &Connection| retention::expired_sessions(connection, &user, limit);
        Box::pin(self.readers.read(SERVICE, sessions))
    }

    fn delete_session<'a>(
        &'a self,
        user: &'a UserName,
        session: &'a SessionId,
        limit: SweepLimit,
    ) -> StoreFuture<'a, bool> {
        let (user, session) = (user.clone(), session.clone());
        self.write(move |connection, _| retention::delete_session(connection, &user, &session, limit))
    }

    fn due(&self, sweep: Sweep, most: i64) -> StoreFuture<'_, Vec<UserName>> {
        let due = move |connection: &Connection| maintenance::due(connection, sweep, most);
        Box::pin(self.readers.read(SERVICE, due))
    }

    fn mark_swept<'a>(&'a self, user: &'a UserName, sweep: Sweep) -> StoreFuture<'a, ()> {
        let user = user.clone();
        self.write(move |connection, _| maintenance::mark_swept(connection, &user, sweep))
    }

    fn acquire_lease<'a>(&'a self, name: &'a str, lease: Duration) -> StoreFuture<'a, bool> {
        let (name, process) = (name.to_owned(), Arc::clone(&self.process));
        let lease_ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        self.write(move |connection, now| {
            maintenance::acquire_lease(connection, &name, &process, now, lease_ms)
        })
    }

    fn setting<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<i64>> {
        let name = name.to_owned();
        self.read_accounts(move |connection| maintenance::setting(connection, &name))
    }
}

/// Opens the library's store, in which the service's is.
fn connect(path: &Path) -> Result<Connection, ServiceStoreError> {
    let mut connection = sessile::database::connect(path, &Locker::new(PATIENCE)).map_err(unopened)?;
    connection.busy_handler(Some(wait_a_little)).map_err(|error| describe(&error))?;
    // The default of 16 is fewer than the statements of this store, which would be parsed again and again.
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Error of a file that cannot be opened, without the library's words for its own store.
fn unopened(error: sessile::Error) -> ServiceStoreError {
    use sessile::error::StoreError;
    let sessile::Error::Store(error) = error else { return ServiceStoreError::Failed(error.to_string()) };
    match error {
        StoreError::Corrupt { path, .. } if !is_database(&path) => {
            ServiceStoreError::Unfit(format!("{} is not a store: not an SQLite database", path.display()))
        }
        StoreError::Corrupt { path, detail } => {
            ServiceStoreError::Failed(format!("{} is damaged: {detail}", path.display()))
        }
        StoreError::Failed { path, detail } => {
            ServiceStoreError::Failed(format!("{}: {detail}", path.display()))
        }
        StoreError::TooNew { path, found, known } => {
            ServiceStoreError::TooNew { store: path.display().to_string(), found, known }
        }
        other => ServiceStoreError::Failed(other.to_string()),
    }
}

/// Whether a file begins as every SQLite database does; also if that cannot be seen.
fn is_database(path: &Path) -> bool {
    use std::io::Read;
    let mut begins = [0; 16];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut begins));
    match read {
        Ok(()) => begins == *b"SQLite format 3\0",
        Err(error) => error.kind() != std::io::ErrorKind::UnexpectedEof,
    }
}

/// SQLite's own waiting grows to a tenth of a second; among many writers that is where the time would go.
fn wait_a_little(times: i32) -> bool {
    let micros = 50 * u64::try_from(times.clamp(1, 20)).unwrap_or(1);
    std::thread::sleep(Duration::from_micros(micros));
    // A wait is a millisecond at most, so this is about a minute.
    times < 60_000
}

/// Adds what the service needs, once. A store that a newer version has extended is left alone.
fn extend(connection: &Connection, path: &Path) -> Result<(), ServiceStoreError> {
    let failed = |error: rusqlite::Error| describe(&error);
    let known = i64::try_from(ADDED.len()).unwrap_or(i64::MAX);
    // Immediate, so that of two processes that start at once one migrates and the other waits.
    let begin = "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS service (version INTEGER NOT NULL) STRICT;";
    connection.execute_batch(begin).map_err(failed)?;
    let version: i64 = connection
        .query_row("SELECT coalesce(max(version), 0) FROM service", [], |row| row.get(0))
        .map_err(failed)?;
    if version > known {
        // The connection, and with it the transaction, ends here.
        return Err(ServiceStoreError::TooNew { store: path.display().to_string(), found: version, known });
    }
    for (number, sql) in (1_i64..).zip(ADDED).skip(usize::try_from(version).unwrap_or(0)) {
        connection.execute_batch(sql).map_err(failed)?;
        connection.execute("INSERT INTO service (version) VALUES (?1)", [number]).map_err(failed)?;
    }
    // A store that was made before keeps what it kept.
    if version == 0 {
        let setting = "INSERT INTO store_setting (name, value) VALUES (?1, ?2)";
        connection.execute(setting, KEEP_SESSIONS).map_err(failed)?;
    }
    connection.execute_batch("COMMIT").map_err(failed)
}

fn describe(error: &rusqlite::Error) -> ServiceStoreError {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull, FileLockingProtocolFailed};
    match error.sqlite_error_code() {
        // The last one is said when others, or their crashes, keep a reader from beginning for too long.
        Some(DatabaseBusy | DatabaseLocked | DiskFull | FileLockingProtocolFailed) => {
            ServiceStoreError::Unavailable(error.to_string())
        }
        _ => ServiceStoreError::Failed(error.to_string()),
    }
}
