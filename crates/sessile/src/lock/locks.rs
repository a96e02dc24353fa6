//! Named locks: `acquire`, `renew`, `release`, `break`, and holding one while a command lives.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

use crate::clock::rfc3339;
use crate::error::{Error, LockError, Result, UsageError};
use crate::lock::holder::StoredHolder;
use crate::lock::{HeldTicket, LockHolder, LockMode, TicketQueue};
use crate::state::State;
use crate::store::{LOCK_PREFIX, Store, TicketRow};

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

/// A lock that is held.
#[derive(Clone, Debug, Serialize)]
pub struct LockStatus {
    /// Name of the lock.
    pub name: String,
    /// Mode in which it is held.
    pub mode: LockMode,
    /// Holders, in the order of their tokens; one if the lock is exclusive.
    pub holders: Vec<LockLease>,
    /// Number of waiters.
    pub waiting: usize,
}

/// Hold of one holder on a lock.
#[derive(Clone, Debug, Serialize)]
pub struct LockLease {
    /// Fencing token; it also names the holder to `break`.
    pub token: i64,
    /// Holder of the lock.
    pub holder: LockHolder,
    /// Time of the acquisition.
    pub since: String,
    /// Expiry of a lease; none while a command holds the lock.
    pub expires_at: Option<String>,
}

impl LockStatus {
    /// The hold with a fencing token.
    pub fn with_token(&self, token: i64) -> Option<&LockLease> {
        self.holders.iter().find(|lease| lease.token == token)
    }
}

/// The named locks of a state directory.
pub struct Locks {
    store: Store,
    queue: TicketQueue,
}

impl Locks {
    fn of(state: &State, store: Store) -> Result<Self> {
        let queue = TicketQueue::new(state.dirs().state()?, state.world().clone(), state.locker()?);
        Ok(Locks { store, queue })
    }

    /// Waits for a lock and holds it while this process has the result.
    pub fn hold(&mut self, name: &LockName, mode: LockMode, holder: &LockHolder) -> Result<HeldTicket> {
        self.queue.wait(&mut self.store, &resource(name), holder, mode)
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
    pub fn acquire(
        &mut self,
        name: &LockName,
        mode: LockMode,
        holder: &LockHolder,
        time: Duration,
    ) -> Result<i64> {
        check_time(time)?;
        let held = self.hold(name, mode, holder)?;
        self.queue.lease(&mut self.store, held, time)
    }

    /// Extends a lease.
    pub fn renew(&mut self, name: &LockName, token: i64, time: Duration) -> Result<LockLease> {
        check_time(time)?;
        // A ticket of a running command is backed by the kernel; a lease would outlive the command.
        self.owned(name, token)?;
        let end = self.queue.lease_end(time);
        // The time of acquisition is kept by the statement, so the 0 is never stored.
        if !self.store.hold_ticket(token, 0, Some(&end))? {
            return Err(LockError::Lost(token).into());
        }
        let renewed = self.view(name)?.and_then(|lock| lock.with_token(token).cloned());
        renewed.ok_or(Error::Lock(LockError::Lost(token)))
    }

    /// Gives a lease back.
    pub fn release(&mut self, name: &LockName, token: i64) -> Result<()> {
        self.owned(name, token)?;
        if self.store.drop_ticket(token)? { Ok(()) } else { Err(LockError::Lost(token).into()) }
    }

    /// Names of the locks that a session holds.
    pub fn held_in(&self, session: &str) -> Result<Vec<String>> {
        let is_in = |lease: &LockLease| lease.holder.session.as_deref() == Some(session);
        let held = self.list()?.into_iter().filter(|lock| lock.holders.iter().any(is_in));
        Ok(held.map(|lock| lock.name).collect())
    }

    /// Breaks the lock of the holder with this token. The token prevents breaking a lock that has changed hands
    /// since.
    pub fn break_lock(&mut self, name: &LockName, token: i64) -> Result<LockLease> {
        let view = self.view(name)?.ok_or_else(|| LockError::NotFound(name.to_string()))?;
        let Some(lease) = view.with_token(token) else {
            return Err(LockError::OtherHolder { name: name.to_string(), token }.into());
        };
        // The holder's file stays locked. Waiters look at the row now and then, and see that it is gone.
        self.store.drop_ticket(token)?;
        Ok(lease.clone())
    }

    /// The locks that are held, in the order of their names.
    pub fn list(&self) -> Result<Vec<LockStatus>> {
        let mut views: Vec<LockStatus> = Vec::new();
        for ticket in
            // Rows of killed processes stay until somebody waits for their lock, so they are left out here.
            self.store.tickets(LOCK_PREFIX)?.into_iter().filter(|ticket| self.queue.is_alive(ticket))
        {
            let name = lock_of(&ticket.resource);
            if views.last().is_none_or(|view| view.name != name) {
                views.push(LockStatus { name, mode: LockMode::Exclusive, holders: Vec::new(), waiting: 0 });
            }
            let Some(view) = views.last_mut() else { continue };
            if ticket.held_ms.is_some() {
                let StoredHolder { holder, mode } = StoredHolder::of_json(&ticket.holder);
                view.mode = mode;
                view.holders.push(lease_of(&ticket, holder));
            } else {
                view.waiting += 1;
            }
        }
        // A lock with waiters alone is not held: its holder has died, and one of them is about to take it.
        views.retain(|view| !view.holders.is_empty());
        Ok(views)
    }

    /// One lock, if it is held.
    pub fn view(&self, name: &LockName) -> Result<Option<LockStatus>> {
        Ok(self.list()?.into_iter().find(|view| view.name == name.as_str()))
    }

    fn owned(&self, name: &LockName, token: i64) -> Result<()> {
        let view = self.view(name)?;
        match view.as_ref().and_then(|view| view.with_token(token)) {
            Some(lease) if lease.expires_at.is_some() => Ok(()),
            Some(_) => {
                Err(UsageError::Arguments("the lock is held by a running command, not by a lease".into())
                    .into())
            }
            None => Err(LockError::Lost(token).into()),
        }
    }
}

impl State {
    /// The named locks.
    pub fn locks(&self) -> Result<Locks> {
        Locks::of(self, self.store_for_writing()?)
    }

    /// Named locks for reading; `None` without a store.
    pub fn locks_for_reading(&self) -> Result<Option<Locks>> {
        self.fresh_store()?.map(|store| Locks::of(self, store)).transpose()
    }
}

fn resource(name: &LockName) -> String {
    format!("{LOCK_PREFIX}{name}")
}

fn check_time(time: Duration) -> Result<()> {
    if time.is_zero() || time > LONGEST {
        return Err(UsageError::InvalidValue {
            place: "--ttl".into(),
            value: crate::duration::short(time),
            expected: "a duration above 0 and at most 7 days".into(),
        }
        .into());
    }
    Ok(())
}

fn lock_of(resource: &str) -> String {
    resource.strip_prefix(LOCK_PREFIX).unwrap_or(resource).to_owned()
}

fn lease_of(ticket: &TicketRow, holder: LockHolder) -> LockLease {
    LockLease {
        token: ticket.token,
        holder,
        since: rfc3339(ticket.held_ms.unwrap_or(ticket.asked_ms)),
        expires_at: ticket.expires_ms.map(rfc3339),
    }
}
