//! Turns: exclusive read-think-append steps on a session's messages.
//!
//! A turn has the session's messages to itself until it commits or is abandoned. Turns of one session come in the order
//! in which they were requested. A commit is one transaction: it checks that the ticket is still the first, deletes it
//! and appends the messages. So messages are appended as a whole or not at all, and never after the turn was lost.

use std::fs::File;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, LockError, Result};
use crate::lock::{HeldTicket, LockHolder, LockMode, TicketQueue};
use crate::session::lifecycle::Lifecycle;
use crate::session::{Session, Sessions};
use crate::store::{Commit, MessageRow, turn_resource};

/// A message of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Number in the session, from 1.
    pub number: i64,
    /// Body.
    pub body: Value,
}

/// A turn that has begun. Dropping it abandons it.
pub struct Turn<'a> {
    sessions: &'a mut Sessions,
    session: Session,
    held: Option<HeldTicket>,
    queue: TicketQueue,
    messages: Vec<String>,
    /// While a turn waits or thinks, its session does not lie idle.
    _busy: File,
}

impl Sessions {
    /// Waits for the session's turn and begins it.
    pub fn begin_turn(&mut self, session: &Session) -> Result<Turn<'_>> {
        let session = self.get_live(session.id.as_str())?;
        // Before the wait: a session must not expire while a turn stands in its queue.
        let busy = session.room().keep_busy(&self.world)?;
        let queue = TicketQueue::new(&self.dir, self.world.clone(), self.locker.clone());
        let holder = LockHolder::own(&self.world, Some(session.id.to_string()), "turn");
        let resource = turn_resource(&self.user, session.id.as_str());
        let held = queue.wait(&mut self.store, &resource, &holder, LockMode::Exclusive)?;
        Ok(Turn { sessions: self, session, held: Some(held), queue, messages: Vec::new(), _busy: busy })
    }

    /// Appends messages atomically as one turn, after the turns that hold or wait. Returns the number of the last.
    pub fn append(&mut self, session: &Session, bodies: &[Value]) -> Result<i64> {
        // The limits of a session never change, and the transaction refuses one that has ended: reading the row first would be
        // a second transaction for each append.
        let (Lifecycle::Live, used) = session.life_and_use(&self.world) else {
            return Err(self.not_live(session));
        };
        let messages: Arc<[String]> = bodies.iter().map(Value::to_string).collect();
        // Nobody needs a ticket where nobody queues: that would be two more writes.
        match self.store.append_alone(&self.user, session.id.as_str(), &messages, self.now_ms())? {
            Some(Commit::Done(last)) => {
                // The messages are stored; a lost mark of use only lets the session expire earlier.
                let _ = session.mark_use(&self.world, used.as_ref());
                Ok(last)
            }
            Some(Commit::NoSession) => Err(self.not_live(session)),
            Some(Commit::Lost) | None => {
                let mut turn = self.begin_turn(session)?;
                turn.messages = messages.to_vec();
                turn.commit()
            }
        }
    }

    /// The error that a session can no longer be used, as its row says now.
    fn not_live(&self, session: &Session) -> Error {
        self.get_live(session.id.as_str()).err().unwrap_or_else(|| session.over(true))
    }

    /// The last messages of a session, oldest first.
    pub fn messages(&self, session: &Session, limit: usize) -> Result<Vec<Message>> {
        let rows = self.store.last_messages(&self.user, session.id.as_str(), limit)?;
        let message = |row: MessageRow| {
            let damaged = |_| {
                self.store.damaged(format!("message {} of session {} is not JSON", row.number, session.id))
            };
            Ok(Message { number: row.number, body: crate::json::from_str(&row.body).map_err(damaged)? })
        };
        rows.into_iter().map(message).collect()
    }
}

impl Turn<'_> {
    /// The fencing token: larger than that of every turn before.
    pub fn token(&self) -> i64 {
        self.held.as_ref().map_or(0, |held| held.token)
    }

    /// The last messages, oldest first, without those of this turn.
    pub fn read(&self, limit: usize) -> Result<Vec<Message>> {
        self.sessions.messages(&self.session, limit)
    }

    /// Adds a message; it is written when the turn is committed.
    pub fn append(&mut self, body: &Value) {
        self.messages.push(body.to_string());
    }

    /// Ends the turn and writes all it appended. Returns the number of the last message.
    pub fn commit(mut self) -> Result<i64> {
        let Some(held) = self.held.take() else { return Err(LockError::Lost(0).into()) };
        let now = self.sessions.now_ms();
        let id = self.session.id.as_str().to_owned();
        let user = self.sessions.user.clone();
        let messages = std::mem::take(&mut self.messages);
        let committed = self.sessions.store.commit_turn(&user, &id, held.token, &messages, now)?;
        let token = held.token;
        // The row went with the commit, so only the file is left, which wakes the next waiter.
        self.queue.forget(&held);
        drop(held);
        match committed {
            Commit::Done(last) => {
                let _ = self.session.room().touch(&self.sessions.world);
                Ok(last)
            }
            Commit::Lost => Err(LockError::Lost(token).into()),
            Commit::NoSession => Err(self.session.over(true)),
        }
    }

    /// Ends the turn and discards its messages.
    pub fn abandon(mut self) -> Result<()> {
        match self.held.take() {
            Some(held) => self.queue.give_back(&mut self.sessions.store, held).map(drop),
            None => Ok(()),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // The rest of the ticket counts as a dead holder's.
            let _ = self.queue.give_back(&mut self.sessions.store, held);
        }
    }
}
