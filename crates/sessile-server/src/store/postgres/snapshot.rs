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
use crate::model::MessageRecord;
use crate::request::Request;
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
    turn: Option<usize>,
    settings: Option<usize>,
    entry: Option<usize>,
    conversation: Option<usize>,
    answered: Option<usize>,
    history: Option<usize>,
}

impl<'a> SnapshotLoad<'a> {
    /// The statements for a change of a user.
    pub(super) fn new(request: &'a Request, dependencies: &'a Dependencies<'a>) -> Self {
        let user = request.user.as_str();
        let mut loading = SnapshotLoad {
            steps: vec![Step::Plain(BEGIN), Step::Run(Sql::As, params![user])],
            dependencies,
            sessions: None,
            next: None,
            places: None,
            turn: None,
            settings: None,
            entry: None,
            conversation: None,
            answered: None,
            history: None,
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
        if let Some((resource, QueueLock::Session)) = queue {
            loading.turn = loading.push(Sql::TurnQueue, params![user, resource]);
        } else if let Some((resource, lock)) = queue {
            let sql = if *lock == QueueLock::Insert { Sql::LockQueue } else { Sql::Queue };
            loading.next = loading.push(sql, params![user, resource]);
            loading.places = loading.push(Sql::Places, params![user, resource]);
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
        if let Some(key) = request.key.as_deref() {
            loading.answered = loading.push(Sql::Answered, params![user, key]);
        }
        // Read with the rest: most who ask for a turn get it.
        if let (Some(session), limit @ 1..) = (*session, request.change.turn_history()) {
            loading.history =
                loading.push(Sql::LastMessages, params![user, session.as_str(), limit, i64::MAX]);
        }
        loading
    }

    fn push(&mut self, sql: Sql, params: super::transaction::SqlParams<'a>) -> Option<usize> {
        self.steps.push(Step::Run(sql, params));
        Some(self.steps.len() - 1)
    }

    /// The messages that come with a turn.
    pub(super) fn history(&self, found: &[Vec<Row>]) -> Result<Vec<MessageRecord>, Error> {
        self.history.and_then(|at| found.get(at)).map_or(Ok(Vec::new()), |rows| rows::messages(rows))
    }

    /// Statement that tells which processes are alive, if places of other processes than `process` were found.
    pub(super) fn presence(&self, found: &[Vec<Row>], process: &str) -> Result<Option<Step<'a>>, Error> {
        for row in self.places.or(self.turn).and_then(|at| found.get(at)).into_iter().flatten() {
            let owner: Option<&str> = row.try_get(7)?;
            if owner.is_some_and(|owner| owner != process) {
                return Ok(Some(Step::Other(heartbeat::PRESENT, params![PRESENT_MS])));
            }
        }
        Ok(None)
    }

    /// Snapshot from the rows of the statements, for a change that a process makes, and the rows of the processes that are alive.
    pub(super) fn read(
        &self,
        found: &[Vec<Row>],
        present: &[Row],
        process: &str,
    ) -> Result<ChangeSnapshot, Error> {
        let rows = |at: Option<usize>| at.and_then(|at| found.get(at)).map_or(&[][..], Vec::as_slice);
        let now = rows(Some(1)).first().map_or(Ok(0), |row| row.try_get(1))?;
        let mut sessions = rows::sessions(rows(self.sessions))?;
        rows::with_settings(&mut sessions, rows(self.settings))?;
        let (session, named): (Vec<_>, Vec<_>) =
            sessions.into_iter().partition(|record| Some(&record.session.id) == self.dependencies.session);
        let present: Vec<&str> = present.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let place = |row: &Row| {
            // The row of a turn without places has none.
            let Some(owner): Option<String> = row.try_get(7)? else { return Ok(None) };
            // This process is alive whether or not its heartbeat has arrived.
            let is_present = owner == process || present.contains(&owner.as_str());
            let ticket = rows::ticket(row)?;
            Ok(Some(QueuePlace { ticket, process: owner, claim: row.try_get(8)?, is_present }))
        };
        let places = rows(self.places.or(self.turn)).iter();
        let places = places.filter_map(|row| place(row).transpose()).collect::<Result<_, Error>>()?;
        let next = match (rows(self.next).first(), rows(self.turn).first()) {
            (Some(row), _) => row.try_get(0)?,
            (None, Some(row)) => row.try_get::<_, Option<i64>>(9)?.unwrap_or(1),
            (None, None) => 1,
        };
        let entry = |row: &Row| Ok(StoredEntry::new(row.try_get(0)?, row.try_get(1)?));
        let conversation =
            rows(self.conversation).first().map(|row| row.try_get::<_, &str>(0)).transpose()?;
        let answered = |row: &Row| Ok(StoredAnswer { change: row.try_get(0)?, done: row.try_get(1)? });
        Ok(ChangeSnapshot {
            now,
            session: session.into_iter().next(),
            named: named.into_iter().next(),
            queue: QueueSnapshot { next, places },
            entry: rows(self.entry).first().map(entry).transpose()?,
            conversation: conversation.and_then(|stored| serde_json::from_str(stored).ok()),
            answered: rows(self.answered).first().map(answered).transpose()?,
        })
    }
}
