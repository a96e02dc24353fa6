//! Loads and locks the dependencies of a change, in one round trip.
//!
//! Locks are taken in one order: the session, or two by their ids; then the queue. Only the holder of the lock on a
//! session changes its places, messages, values and events; without a session, the holder of the lock on the queue.

use tokio_postgres::{Error, Row};

use super::apply::BEGIN;
use super::heartbeat;
use super::rows;
use super::sql::Sql;
use super::transaction::{Step, params};
use crate::change::PRESENT_MS;
use crate::ids::SessionId;
use crate::rules::{
    ChangeSnapshot, Dependencies, QueueLock, QueuePlace, QueueSnapshot, StoredAnswer, StoredEntry,
};

/// The statements that load a snapshot, and which of them loads what.
pub(super) struct SnapshotLoad<'a> {
    pub(super) steps: Vec<Step<'a>>,
    dependencies: &'a Dependencies<'a>,
    sessions: Option<usize>,
    next: Option<usize>,
    places: Option<usize>,
    present: Option<usize>,
    settings: Option<usize>,
    entry: Option<usize>,
    conversation: Option<usize>,
    answered: Option<usize>,
}

/// Snapshot that was loaded.
pub(super) struct LoadedSnapshot {
    pub(super) snapshot: ChangeSnapshot,
    /// Whether this process has a recent heartbeat; not known, and so not, for a change without a queue.
    pub(super) has_heartbeat: bool,
}

impl<'a> SnapshotLoad<'a> {
    /// The statements for a change of a user, sent under an idempotency key.
    pub(super) fn new(user: &'a str, dependencies: &'a Dependencies<'a>, key: Option<&'a str>) -> Self {
        let mut loading = SnapshotLoad {
            steps: vec![Step::Plain(BEGIN), Step::Run(Sql::As, params![user])],
            dependencies,
            sessions: None,
            next: None,
            places: None,
            present: None,
            settings: None,
            entry: None,
            conversation: None,
            answered: None,
        };
        let Dependencies { session, name, settings, queue, entry, conversation, .. } = dependencies;
        match (*session, *name) {
            (Some(id), None) => {
                loading.sessions = loading.push(Sql::LockSession, params![user, id.as_str()]);
            }
            (None, None) => {}
            (id, name) => {
                let id = id.map(SessionId::as_str);
                loading.sessions = loading.push(Sql::LockSessions, params![user, id, name]);
            }
        }
        if let Some((resource, lock)) = queue {
            let sql = if *lock == QueueLock::Insert { Sql::LockQueue } else { Sql::Queue };
            loading.next = loading.push(sql, params![user, resource]);
            loading.places = loading.push(Sql::Places, params![user, resource]);
            loading.steps.push(Step::Other(heartbeat::PRESENT, params![PRESENT_MS]));
            loading.present = Some(loading.steps.len() - 1);
        }
        if *settings {
            let ids: Vec<&str> = session.iter().map(|session| session.as_str()).collect();
            loading.settings = loading.push(Sql::Settings, params![user, ids]);
        }
        if let (Some(session), Some(key)) = (*session, *entry) {
            loading.entry = loading.push(Sql::Entry, params![user, session.as_str(), key]);
        }
        if let (Some(session), true) = (*session, *conversation) {
            loading.conversation = loading.push(Sql::Conversation, params![user, session.as_str()]);
        }
        if let Some(key) = key {
            loading.answered = loading.push(Sql::Answered, params![user, key]);
        }
        loading
    }

    fn push(&mut self, sql: Sql, params: super::transaction::SqlParams<'a>) -> Option<usize> {
        self.steps.push(Step::Run(sql, params));
        Some(self.steps.len() - 1)
    }

    /// Snapshot from the rows of the statements, for a change that a process makes.
    pub(super) fn read(&self, found: &[Vec<Row>], process: &str) -> Result<LoadedSnapshot, Error> {
        let rows = |at: Option<usize>| at.and_then(|at| found.get(at)).map_or(&[][..], Vec::as_slice);
        let now = rows(Some(1)).first().map_or(Ok(0), |row| row.try_get(1))?;
        let mut sessions = rows::sessions(rows(self.sessions))?;
        rows::with_settings(&mut sessions, rows(self.settings))?;
        let (session, named): (Vec<_>, Vec<_>) =
            sessions.into_iter().partition(|record| Some(&record.session.id) == self.dependencies.session);
        let present: Vec<&str> =
            rows(self.present).iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let place = |row: &Row| {
            let owner: String = row.try_get(7)?;
            // This process is alive whether or not its heartbeat has arrived.
            let is_present = owner == process || present.contains(&owner.as_str());
            let ticket = rows::ticket(row)?;
            Ok(QueuePlace { ticket, process: owner, claim: row.try_get(8)?, is_present })
        };
        let places = rows(self.places).iter().map(place).collect::<Result<_, Error>>()?;
        let next = rows(self.next).first().map_or(Ok(1), |row| row.try_get(0))?;
        let entry = |row: &Row| Ok(StoredEntry::new(row.try_get(0)?, row.try_get(1)?));
        let conversation =
            rows(self.conversation).first().map(|row| row.try_get::<_, &str>(0)).transpose()?;
        let answered = |row: &Row| Ok(StoredAnswer { change: row.try_get(0)?, done: row.try_get(1)? });
        let snapshot = ChangeSnapshot {
            now,
            session: session.into_iter().next(),
            named: named.into_iter().next(),
            queue: QueueSnapshot { next, places },
            entry: rows(self.entry).first().map(entry).transpose()?,
            conversation: conversation.and_then(|stored| serde_json::from_str(stored).ok()),
            answered: rows(self.answered).first().map(answered).transpose()?,
        };
        Ok(LoadedSnapshot { snapshot, has_heartbeat: present.contains(&process) })
    }
}
