//! The stores that everything is tested with.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use sessile_server::change::{Busy, ChangeOutcome, LockMode, Refusal, StoreChange};
use sessile_server::ids::{FencingToken, Position, SessionId, UserName};
use sessile_server::model::{MessageRecord, Resource, SessionRecord, Ticket};
use sessile_server::query::{Query, QueryAnswer};
use sessile_server::request::{Access, Request};
use sessile_server::store::{PostgresOptions, ServiceStore, ServiceStoreError, SweepLimit, UserIsolation};
use testkit::{Database, Postgres};

/// A store that is thrown away.
pub(crate) struct Throwaway {
    pub(crate) db: ServiceStore,
    of: StoreOwner,
}

enum StoreOwner {
    Sqlite { path: PathBuf, _dir: tempfile::TempDir },
    Postgres { url: String, options: PostgresOptions, database: Database<'static> },
}

impl Throwaway {
    pub(crate) async fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("service.db");
        Throwaway {
            db: ServiceStore::sqlite(&path).await.unwrap(),
            of: StoreOwner::Sqlite { path, _dir: dir },
        }
    }

    /// In the database of a role that is neither superuser nor exempt from row security.
    pub(crate) async fn postgres() -> Self {
        Self::with_isolation(UserIsolation::Both).await
    }

    /// The same with some of the isolation between users turned off.
    pub(crate) async fn with_isolation(isolation: UserIsolation) -> Self {
        let database = server().database();
        // The tables belong to their role, whoever uses them.
        let db = ServiceStore::postgres(&database.url(), PostgresOptions::default()).await.unwrap();
        let options = PostgresOptions { isolation, ..PostgresOptions::default() };
        let url = match isolation {
            UserIsolation::Both | UserIsolation::OnlyRowSecurity => database.url(),
            UserIsolation::OnlyStatements | UserIsolation::Neither => database.exempt_url(),
        };
        drop(db);
        let db = ServiceStore::postgres(&url, options.clone()).await.unwrap();
        Throwaway { db, of: StoreOwner::Postgres { url, options, database } }
    }

    /// The same store as another process would see it.
    pub(crate) async fn another(&self) -> ServiceStore {
        match &self.of {
            StoreOwner::Sqlite { path, .. } => ServiceStore::sqlite(path).await.unwrap(),
            StoreOwner::Postgres { url, options, .. } => {
                ServiceStore::postgres(url, options.clone()).await.unwrap()
            }
        }
    }

    /// Opens the same store once more, or fails.
    pub(crate) async fn reopened(&self) -> Result<ServiceStore, ServiceStoreError> {
        match &self.of {
            StoreOwner::Sqlite { path, .. } => ServiceStore::sqlite(path).await,
            StoreOwner::Postgres { url, options, .. } => ServiceStore::postgres(url, options.clone()).await,
        }
    }

    /// Says that a program of a later version has added to the tables.
    pub(crate) fn set_schema_version(&self, version: i64) {
        match &self.of {
            StoreOwner::Sqlite { path, .. } => {
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.execute("INSERT INTO service (version) VALUES (?1)", [version]).unwrap();
            }
            StoreOwner::Postgres { database, .. } => {
                drop(database.sql(&format!("UPDATE sessile_schema SET version = {version}")));
            }
        }
    }

    /// Everything that is kept about accounts, as far as it is text.
    pub(crate) fn text(&self) -> String {
        match &self.of {
            StoreOwner::Sqlite { _dir: dir, .. } => {
                let files = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path());
                let bytes = files.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap());
                bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
            }
            StoreOwner::Postgres { database, .. } => ["account", "audit", "login", "token"]
                .map(|table| database.sql(&format!("SELECT string_agg(one::text, ' ') FROM {table} AS one")))
                .join(" "),
        }
    }

    /// How many rows of a session there are, but for what is on the record.
    pub(crate) fn left_of(&self, session: &SessionId) -> i64 {
        let rows = [
            ("session", "id", session.to_string()),
            ("message", "session", session.to_string()),
            ("entry", "session", session.to_string()),
            ("event", "session", session.to_string()),
            ("queue", "resource", format!("turn:{session}")),
            ("place", "resource", format!("turn:{session}")),
        ];
        let count = |(table, column, value): (&str, &str, String)| {
            let sql = format!("SELECT count(*) FROM {table} WHERE {column} = '{value}'");
            match &self.of {
                StoreOwner::Sqlite { path, .. } => {
                    let connection = rusqlite::Connection::open(path).unwrap();
                    connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
                }
                StoreOwner::Postgres { database, .. } => database.sql(&sql).parse::<i64>().unwrap(),
            }
        };
        rows.map(count).into_iter().sum()
    }

    /// Does something to the store that no user can.
    pub(crate) fn sql(&self, sqlite: &str, postgres: &str) {
        match &self.of {
            StoreOwner::Sqlite { path, .. } => {
                rusqlite::Connection::open(path).unwrap().execute_batch(sqlite).unwrap();
            }
            StoreOwner::Postgres { database, .. } => drop(database.sql(postgres)),
        }
    }

    /// Gives a user `count` sessions that expire at a time, with ids that begin with `prefix` (four hex digits) and, if there
    /// is one, a label.
    pub(crate) fn add_sessions(
        &self,
        user: &str,
        prefix: &str,
        count: u32,
        expires_ms: i64,
        label: Option<(&str, &str)>,
    ) {
        let labels = label.map_or("{}".to_owned(), |(key, value)| format!(r#"{{"{key}":"{value}"}}"#));
        let index = |user_column: &str, from: &str| match label {
            None => String::new(),
            Some((key, value)) => format!(
                "INSERT INTO label ({user_column}, key, value, session) SELECT '{user}', '{key}', '{value}', {from};"
            ),
        };
        let numbers = format!(
            "FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n) AS n"
        );
        let id = format!("printf('{prefix}0000-0000-7000-8000-%012x', i)");
        let sqlite = format!(
            "INSERT INTO session (user, id, owner, labels, idle_ms, max_ms, started_ms, boot, started_boot_ms,
                                  started_awake_ms, check_ms, used_ms)
             SELECT '{user}', {id}, '{{}}', '{labels}', {expires_ms}, {expires_ms}, 0, '', 0, 0, 0, 0 {numbers}; {}",
            index("user", &format!("{id} {numbers}"))
        );
        let id = format!("'{prefix}0000-0000-7000-8000-' || lpad(to_hex(i), 12, '0')");
        let numbers = format!("FROM generate_series(1, {count}) AS i");
        let postgres = format!(
            "INSERT INTO session (user_id, id, labels, idle_ms, max_ms, started_ms, used_ms, revision, next_message,
                                  next_event)
             SELECT '{user}', {id}, '{labels}', {expires_ms}, {expires_ms}, 0, 0, 1, 1, 1 {numbers}; {}
             ANALYZE session",
            index("user_id", &format!("{id} {numbers}"))
        );
        self.sql(&sqlite, &postgres);
    }

    /// How many rows of messages a session has, whether or not they count.
    pub(crate) fn rows_of(&self, session: &SessionId) -> i64 {
        let sql = format!("SELECT count(*) FROM message WHERE session = '{session}'");
        self.with_file(|connection| connection.query_row(&sql, [], |row| row.get(0)).unwrap())
    }

    /// Whether rows are noted that do not count.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.with_file(|connection| connection.prepare("SELECT 1 FROM leftover").unwrap().exists([]).unwrap())
    }

    pub(crate) fn sqlite_batch(&self, sql: &str) {
        self.with_file(|connection| connection.execute_batch(sql).unwrap());
    }

    fn with_file<T>(&self, what: impl FnOnce(&rusqlite::Connection) -> T) -> T {
        let StoreOwner::Sqlite { path, .. } = &self.of else { panic!("the store is not SQLite") };
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        what(&connection)
    }

    /// The database behind it.
    pub(crate) fn database(&self) -> &Database<'static> {
        match &self.of {
            StoreOwner::Sqlite { .. } => panic!("the store is SQLite"),
            StoreOwner::Postgres { database, .. } => database,
        }
    }
}

/// The server that the tests of a run share.
fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(Postgres::shared)
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// An id that no other call has got.
pub(crate) fn id() -> SessionId {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("0199aaaa-0000-7000-8000-{number:012x}").parse().unwrap()
}

/// Bounds of a deletion of ten rows from before a time.
pub(crate) fn before(before_ms: i64) -> SweepLimit {
    SweepLimit { before_ms, most: 10 }
}

/// Who asks for a place, where it does not matter who.
pub(crate) const CLAIM: &str = "claim";

/// A user of a store.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) db: ServiceStore,
    pub(crate) id: UserName,
}

pub(crate) type Outcome = Result<ChangeOutcome, Refusal>;

impl User {
    pub(crate) fn new(db: &ServiceStore, name: &str) -> Self {
        User { db: db.clone(), id: name.parse().unwrap() }
    }

    pub(crate) async fn change(&self, change: StoreChange) -> Outcome {
        self.keyed(None, change).await
    }

    pub(crate) async fn keyed(&self, key: Option<&str>, change: StoreChange) -> Outcome {
        let request = Request { key: key.map(str::to_owned), ..self.request(change) };
        self.db.change(request).await.unwrap()
    }

    pub(crate) fn request(&self, change: StoreChange) -> Request {
        let access = Access { id: id().into(), token: None };
        Request { user: self.id.clone(), change, key: None, access }
    }

    pub(crate) async fn ask(&self, query: Query) -> Result<QueryAnswer, Refusal> {
        self.db.ask(&self.id, query).await.unwrap()
    }

    pub(crate) async fn start(&self, name: Option<&str>) -> SessionRecord {
        session(self.change(starting(name, 3_600_000)).await)
    }

    pub(crate) async fn append(&self, session: &SessionId, bodies: &[&str]) -> Outcome {
        let bodies = bodies.iter().map(|body| serde_json::json!(body).into()).collect();
        self.change(StoreChange::Append { session: session.clone(), bodies, if_last: None }).await
    }

    pub(crate) async fn texts(&self, session: &SessionId) -> Vec<String> {
        let query = Query::Messages { session: session.clone(), after: 0, limit: 1_000_000, bytes: i64::MAX };
        let Ok(QueryAnswer::Messages(messages)) = self.ask(query).await else { panic!("no messages") };
        let numbers: Vec<i64> = messages.iter().map(|message| message.number).collect();
        assert!(numbers.iter().copied().eq(1..=i64::try_from(numbers.len()).unwrap()), "{numbers:?}");
        let text = |message: &MessageRecord| message.body.to_value().as_str().unwrap_or_default().to_owned();
        messages.iter().map(text).collect()
    }

    pub(crate) async fn bodies(&self, session: &SessionId) -> Vec<serde_json::Value> {
        let query = Query::Messages { session: session.clone(), after: 0, limit: 1_000_000, bytes: i64::MAX };
        let Ok(QueryAnswer::Messages(messages)) = self.ask(query).await else { panic!("no messages") };
        messages.iter().map(|message| message.body.to_value()).collect()
    }

    pub(crate) async fn ask_for(&self, resource: &Resource, busy: Busy, ttl_ms: i64) -> Outcome {
        self.change(asking(resource, CLAIM, busy, ttl_ms)).await
    }

    pub(crate) async fn ask_in(
        &self,
        resource: &Resource,
        busy: Busy,
        mode: LockMode,
        ttl_ms: i64,
    ) -> Outcome {
        let (resource, holder, claim) = (resource.clone(), "test".to_owned(), CLAIM.to_owned());
        let wait_ms = 60_000;
        self.change(StoreChange::Ask {
            resource,
            holder,
            claim,
            busy,
            mode,
            ttl_ms,
            wait_ms,
            session: None,
            history: 0,
        })
        .await
    }

    pub(crate) async fn wait_for(&self, resource: &Resource, place: Position, ttl_ms: i64) -> Outcome {
        let (resource, claim) = (resource.clone(), CLAIM.to_owned());
        self.change(StoreChange::Wait { resource, place, claim, ttl_ms, session: None, history: 100 }).await
    }

    pub(crate) async fn leave(&self, resource: &Resource, place: Position) -> Outcome {
        let (resource, place, claim) = (resource.clone(), Some(place), CLAIM.to_owned());
        self.change(StoreChange::Leave { resource, place, claim, key: None }).await
    }

    pub(crate) async fn commit(
        &self,
        session: &SessionId,
        token: FencingToken,
        bodies: &[String],
    ) -> Outcome {
        let bodies = bodies.iter().map(|body| serde_json::json!(body).into()).collect();
        self.change(StoreChange::CommitTurn { session: session.clone(), token, bodies, conversation: None })
            .await
    }
}

pub(crate) fn asking(resource: &Resource, claim: &str, busy: Busy, ttl_ms: i64) -> StoreChange {
    let (resource, holder, claim) = (resource.clone(), "test".to_owned(), claim.to_owned());
    let mode = LockMode::Exclusive;
    StoreChange::Ask {
        resource,
        holder,
        claim,
        busy,
        mode,
        ttl_ms,
        wait_ms: 60_000,
        session: None,
        history: 100,
    }
}

pub(crate) fn starting(name: Option<&str>, idle_ms: i64) -> StoreChange {
    StoreChange::StartSession {
        id: id(),
        name: name.map(str::to_owned),
        context: None,
        labels: Default::default(),
        settings: Default::default(),
        idle_ms,
        max_ms: 86_400_000,
    }
}

pub(crate) fn session(outcome: Outcome) -> SessionRecord {
    match outcome {
        Ok(ChangeOutcome::Session(session)) => session,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn ticket(outcome: Outcome) -> Ticket {
    match outcome {
        Ok(ChangeOutcome::Ticket { ticket, .. }) => ticket,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn turn(session: &SessionRecord) -> Resource {
    Resource::Turn { session: session.id.clone() }
}

pub(crate) fn lock(name: &str) -> Resource {
    Resource::Lock { name: name.to_owned() }
}
