//! Changes, carried out in two rounds: what a change depends on is locked and read, then all that it comes to is written,
//! recorded and committed.
//!
//! Locks are taken in one order: the session, or two by their ids; then the queue. Places, messages, values and events are
//! changed only by who has the lock on their session, or on their queue where there is no session.

use std::sync::Arc;

use tokio_postgres::{Error, Row};

use super::Inner;
use super::make::Make;
use super::queue::{self, Queue};
use super::rows;
use super::sql::Sql;
use super::transaction::{Link, Step, Trouble, params, trouble};
use crate::change::{Change, Done, PRESENT_MS, Refusal};
use crate::db::record::{self, Noted};
use crate::db::wake;
use crate::db::{DbError, Request};
use crate::model::Resource;

/// Begins a change. Rows are seen as they are once they are locked, whatever the database's default is.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Who listens hears of it when the transaction is committed.
const NOTIFY: &str = "SELECT pg_notify('sessile', $1)";

/// Tries to make a change once. `again` if an earlier attempt may have made it. With the mark of who is next by it.
pub(super) async fn attempt(
    inner: &Arc<Inner>,
    request: &Request,
    again: bool,
) -> Result<(Result<Done, Refusal>, Option<u64>), Trouble> {
    let user = request.user.0.as_str();
    let failed = |error: serde_json::Error| Trouble::Over(DbError::Failed(error.to_string()));
    let text = request.key.as_ref().map(|_| record::written(&request.change));
    let text = text.transpose().map_err(failed)?;
    let needs = Needs::of(&request.change);
    let mut link = Link::take(inner, user).await?;

    let (steps, order) = needs.steps(user, request.key.as_deref());
    let found = link.send(&steps).await.map_err(|error| trouble(&error, false))?;
    let Read { now, mut make, answered } =
        order.read(&found, user, &inner.process, &needs).map_err(|error| trouble(&error, false))?;

    let (mut writes, mut next) = (Vec::new(), None);
    let before = match (answered, &text) {
        (Some((before, done)), Some(text)) => Some(record::again(&before, text, &done)),
        _ => None,
    };
    let outcome = match before {
        // Nothing is to be written.
        Some(Ok(done)) if !matches!(request.change, Change::Ask { .. }) => Ok(done),
        Some(Err(refusal)) => Err(refusal),
        before => {
            let is_new = before.is_none();
            let mut outcome = match before {
                Some(Ok(done)) => make.again(&request.change, done),
                _ => make.change(&request.change),
            };
            if let Ok(Done::Ticket { history: Some(history), .. }) = &mut outcome
                && let Change::Ask { history: limit, .. } | Change::Wait { history: limit, .. } =
                    &request.change
            {
                let session = make.session_id().unwrap_or_default();
                let params = params![user.to_owned(), session, (*limit).max(0), i64::MAX];
                let rows = link.send(&[Step::Run(Sql::LastMessages, params)]).await;
                let messages =
                    rows.and_then(|rows| rows.first().map_or(Ok(Vec::new()), |rows| rows::messages(rows)));
                *history = messages.map_err(|error| trouble(&error, false))?;
            }
            if let Ok(done) = &outcome {
                next = wake::moves(&request.change)
                    .zip(make.next_to_hold())
                    .map(|(resource, place)| wake::mark(&request.user, &resource, place));
                make.write(&mut writes);
                if let (Some(key), Some(text), true) = (&request.key, text, is_new) {
                    let done = serde_json::to_string(done).map_err(failed)?;
                    let params = params![user.to_owned(), key.clone(), text, done, now];
                    writes.push(Step::Run(Sql::InsertAnswered, params));
                }
                if let Some(next) = next
                    && inner.notifies.get().is_some_and(|notifies| *notifies)
                {
                    writes.push(Step::Other(NOTIFY, params![next.to_string()]));
                }
            }
            outcome
        }
    };
    if record::is_noted(request, &outcome) {
        // Without a key it is the record that keeps a change from being made twice.
        let put = if again && request.key.is_some() { Sql::PutAudit } else { Sql::InsertAudit };
        writes.push(on_record(put, request, &record::word(&outcome), now));
    }
    writes.push(Step::Plain("COMMIT"));
    link.send(&writes).await.map_err(|error| trouble(&error, true))?;
    Ok((outcome, next))
}

fn on_record(sql: Sql, request: &Request, word: &str, now: i64) -> Step {
    let Noted { action, session, subject } = record::noted(request);
    let (user, access) = (request.user.0.clone(), request.access.clone());
    Step::Run(sql, params![user, access.id, now, access.token, action, session, word.to_owned(), subject])
}

/// Puts on the record that a change failed. The transaction that it failed in is gone.
pub(super) async fn record_failure(inner: &Arc<Inner>, request: &Request) -> Result<(), Trouble> {
    let mut link = Link::take(inner, &request.user.0).await?;
    let sent = async {
        let steps = [Step::Plain(BEGIN), Step::Run(Sql::As, params![request.user.0.clone()])];
        let now: i64 = match link.send(&steps).await?.get(1).and_then(|rows| rows.first()) {
            Some(row) => row.try_get(1)?,
            None => 0,
        };
        link.send(&[on_record(Sql::InsertAudit, request, "failed", now), Step::Plain("COMMIT")]).await
    };
    sent.await.map(drop).map_err(|error| trouble(&error, true))
}

/// What a change depends on.
#[derive(Default)]
pub(super) struct Needs<'a> {
    session: Option<&'a str>,
    /// The session that has this name.
    name: Option<&'a str>,
    settings: bool,
    queue: Option<(String, Lock)>,
    entry: Option<&'a str>,
    conversation: bool,
}

/// How a queue is locked.
#[derive(Clone, Copy, PartialEq)]
enum Lock {
    /// By its session.
    Session,
    /// By its row, which is made if there is none.
    Made,
    /// By its row; without one there is nobody in it.
    Row,
}

impl<'a> Needs<'a> {
    pub(super) fn of(change: &'a Change) -> Self {
        let none = Needs::default();
        let turn =
            |session: &str| Some((Resource::Turn { session: session.to_owned() }.key(), Lock::Session));
        let of = |resource: &'a Resource, lock| match resource {
            Resource::Turn { session } => {
                Needs { session: Some(session), queue: turn(session), ..Needs::default() }
            }
            Resource::Lock { .. } => Needs { queue: Some((resource.key(), lock)), ..Needs::default() },
        };
        match change {
            Change::StartSession { name, .. } => Needs { name: name.as_deref(), ..none },
            Change::EditSession { session, name, .. } | Change::Fork { session, name, .. } => {
                Needs { session: Some(session), name: name.as_deref(), settings: true, ..none }
            }
            Change::EndSession { session, .. } => Needs { session: Some(session), settings: true, ..none },
            Change::Append { session, .. }
            | Change::Rewind { session, .. }
            | Change::CommitTurn { session, .. } => {
                Needs { session: Some(session), queue: turn(session), ..none }
            }
            Change::TakeConversation { session, .. } => {
                Needs { session: Some(session), queue: turn(session), conversation: true, ..none }
            }
            Change::SetEntry { session, key, .. } => {
                Needs { session: Some(session), entry: Some(key), ..none }
            }
            Change::Ask { resource, .. } => of(resource, Lock::Made),
            Change::Wait { resource, .. }
            | Change::Renew { resource, .. }
            | Change::Leave { resource, .. }
            | Change::StepAside { resource, .. }
            | Change::Release { resource, .. } => of(resource, Lock::Row),
        }
    }

    /// What must not be changed by two at once: changes of one are made one after the other.
    pub(super) fn lane(&self) -> Option<&str> {
        self.session.or(self.queue.as_ref().map(|(resource, _)| resource.as_str()))
    }

    fn steps(&self, user: &str, key: Option<&str>) -> (Vec<Step>, Order) {
        let user = || user.to_owned();
        let mut steps = vec![Step::Plain(BEGIN), Step::Run(Sql::As, params![user()])];
        let mut order = Order::default();
        let mut push = |step| {
            steps.push(step);
            Some(steps.len() - 1)
        };
        match (self.session, self.name) {
            (Some(id), None) => {
                order.sessions = push(Step::Run(Sql::LockSession, params![user(), id.to_owned()]));
            }
            (None, None) => {}
            (id, name) => {
                let params = params![user(), id.map(str::to_owned), name.map(str::to_owned)];
                order.sessions = push(Step::Run(Sql::LockSessions, params));
            }
        }
        if let Some((resource, lock)) = &self.queue {
            let sql = if *lock == Lock::Made { Sql::LockQueue } else { Sql::Queue };
            order.next = push(Step::Run(sql, params![user(), resource.clone()]));
            order.places = push(Step::Run(Sql::Places, params![user(), resource.clone()]));
            order.present = push(Step::Other(queue::PRESENT, params![PRESENT_MS]));
        }
        if self.settings {
            let ids: Vec<String> = self.session.iter().map(|id| (*id).to_owned()).collect();
            order.settings = push(Step::Run(Sql::Settings, params![user(), ids]));
        }
        if let (Some(session), Some(key)) = (self.session, self.entry) {
            order.entry = push(Step::Run(Sql::Entry, params![user(), session.to_owned(), key.to_owned()]));
        }
        if let (Some(session), true) = (self.session, self.conversation) {
            order.conversation = push(Step::Run(Sql::Conversation, params![user(), session.to_owned()]));
        }
        if let Some(key) = key {
            order.answered = push(Step::Run(Sql::Answered, params![user(), key.to_owned()]));
        }
        (steps, order)
    }
}

/// Where in what was found is what.
#[derive(Default)]
struct Order {
    sessions: Option<usize>,
    next: Option<usize>,
    places: Option<usize>,
    present: Option<usize>,
    settings: Option<usize>,
    entry: Option<usize>,
    conversation: Option<usize>,
    answered: Option<usize>,
}

/// What was found.
struct Read {
    now: i64,
    make: Make,
    answered: Option<(String, String)>,
}

impl Order {
    fn read(&self, found: &[Vec<Row>], user: &str, process: &str, needs: &Needs<'_>) -> Result<Read, Error> {
        let rows = |at: Option<usize>| at.and_then(|at| found.get(at)).map_or(&[][..], Vec::as_slice);
        let now = rows(Some(1)).first().map_or(Ok(0), |row| row.try_get(1))?;
        let mut sessions = rows::sessions(rows(self.sessions))?;
        rows::with_settings(&mut sessions, rows(self.settings))?;
        let (session, named): (Vec<_>, Vec<_>) =
            sessions.into_iter().partition(|found| Some(found.session.id.as_str()) == needs.session);
        let queue = match &needs.queue {
            Some((resource, _)) => Queue::read(
                (resource.clone(), now),
                rows(self.next),
                rows(self.places),
                process,
                rows(self.present),
            )?,
            None => Queue::default(),
        };
        let pair = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
        let entry = rows(self.entry).first().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()?;
        let kept = rows(self.conversation).first().map(|row| row.try_get::<_, &str>(0)).transpose()?;
        let make = Make::new(user, now, session.into_iter().next(), named.into_iter().next(), queue, entry)
            .with_conversation(kept.and_then(|kept| serde_json::from_str(kept).ok()));
        let answered = rows(self.answered).first().map(pair).transpose()?;
        Ok(Read { now, make, answered })
    }
}
