//! Named locks: `acquire`, `renew`, `release`, `break`, and holding one while a command lives.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

use crate::clock::rfc3339;
use crate::error::{Error, LockError, Result, UsageError};
use crate::lock::{HeldTicket, LockHolder, TicketQueue};
use crate::state::State;
use crate::store::{Store, TicketRow};

/// The longest lease.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// The name of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct LockName(String);

impl LockName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LockName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        crate::names::check(name, "lock").map(|()| LockName(name.to_owned()))
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A lock that someone has.
#[derive(Clone, Debug, Serialize)]
pub struct LockStatus {
    /// Its name.
    pub name: String,
    /// The fencing token; it also names the holder to `break`.
    pub token: i64,
    /// Who has it.
    pub holder: LockHolder,
    /// Since when.
    pub since: String,
    /// Until when, for a lease.
    pub expires_at: Option<String>,
    /// How many wait for it.
    pub waiting: usize,
}

/// The named locks of a state directory.
pub struct Locks {
    store: Store,
    queue: TicketQueue,
}

const PREFIX: &str = "lock:";

impl Locks {
    fn of(state: &State, store: Store) -> Result<Self> {
        let queue = TicketQueue::new(state.dirs().state()?, state.world().clone(), state.locker()?);
        Ok(Locks { store, queue })
    }

    /// Waits for a lock and holds it while this process has the result.
    pub fn hold(&mut self, name: &LockName, holder: &LockHolder) -> Result<HeldTicket> {
        self.queue.wait(&mut self.store, &resource(name), holder)
    }

    /// Gives a held lock back.
    pub fn give_back(&mut self, held: HeldTicket) -> Result<bool> {
        self.queue.give_back(&mut self.store, held)
    }

    /// Gives a held lock back, unless another process has inherited it.
    pub fn leave(&mut self, held: HeldTicket) -> Result<bool> {
        self.queue.leave(&mut self.store, held)
    }

    /// Waits for a lock and takes it for a time; returns the fencing token.
    pub fn acquire(&mut self, name: &LockName, holder: &LockHolder, time: Duration) -> Result<i64> {
        check_time(time)?;
        let held = self.hold(name, holder)?;
        self.queue.lease(&mut self.store, held, time)
    }

    /// Begins the time of a lease anew.
    pub fn renew(&mut self, name: &LockName, token: i64, time: Duration) -> Result<LockStatus> {
        check_time(time)?;
        self.owned(name, token)?;
        let end = self.queue.lease_end(time);
        if !self.store.hold_ticket(token, 0, Some(&end))? {
            return Err(LockError::Lost(token).into());
        }
        self.view(name)?.ok_or(Error::Lock(LockError::Lost(token)))
    }

    /// Gives a lease back.
    pub fn release(&mut self, name: &LockName, token: i64) -> Result<()> {
        self.owned(name, token)?;
        if self.store.drop_ticket(token)? { Ok(()) } else { Err(LockError::Lost(token).into()) }
    }

    /// Takes a lock away from its holder, who must be named by the token, so that nobody breaks a lock that has
    /// changed hands in the meantime.
    pub fn break_lock(&mut self, name: &LockName, token: i64) -> Result<LockStatus> {
        let view = self.view(name)?.ok_or_else(|| LockError::NotFound(name.to_string()))?;
        if view.token != token {
            return Err(
                LockError::OtherHolder { name: name.to_string(), asked: token, found: view.token }.into()
            );
        }
        self.store.drop_ticket(token)?;
        Ok(view)
    }

    /// The locks that someone has, in the order of their names.
    pub fn list(&self) -> Result<Vec<LockStatus>> {
        let mut views: Vec<LockStatus> = Vec::new();
        for ticket in self.store.tickets(PREFIX)?.into_iter().filter(|ticket| self.queue.is_alive(ticket)) {
            let name = ticket.resource.trim_start_matches(PREFIX).to_owned();
            match views.last_mut() {
                Some(view) if view.name == name => view.waiting += 1,
                _ => views.push(view_of(&ticket, name)),
            }
        }
        Ok(views)
    }

    /// One lock, if someone has it.
    pub fn view(&self, name: &LockName) -> Result<Option<LockStatus>> {
        Ok(self.list()?.into_iter().find(|view| view.name == name.as_str()))
    }

    fn owned(&self, name: &LockName, token: i64) -> Result<()> {
        match self.view(name)? {
            Some(view) if view.token == token && view.expires_at.is_some() => Ok(()),
            Some(view) if view.token == token => {
                Err(UsageError::Arguments("the lock is held by a running command, not by a lease".into())
                    .into())
            }
            _ => Err(LockError::Lost(token).into()),
        }
    }
}

impl State {
    /// The named locks.
    pub fn locks(&self) -> Result<Locks> {
        Locks::of(self, self.store_for_writing()?)
    }

    /// The named locks, for reading; `None` if there is no state yet.
    pub fn locks_for_reading(&self) -> Result<Option<Locks>> {
        self.fresh_store()?.map(|store| Locks::of(self, store)).transpose()
    }
}

fn resource(name: &LockName) -> String {
    format!("{PREFIX}{name}")
}

fn check_time(time: Duration) -> Result<()> {
    if time.is_zero() || time > LONGEST {
        return Err(UsageError::InvalidValue {
            place: "--ttl".into(),
            value: crate::duration::short(time),
            expected: "more than nothing and at most 7 days".into(),
        }
        .into());
    }
    Ok(())
}

fn view_of(ticket: &TicketRow, name: String) -> LockStatus {
    LockStatus {
        name,
        token: ticket.token,
        holder: LockHolder::of_json(&ticket.holder),
        since: rfc3339(ticket.held_ms.unwrap_or(ticket.asked_ms)),
        expires_at: ticket.expires_ms.map(rfc3339),
        waiting: 0,
    }
}
