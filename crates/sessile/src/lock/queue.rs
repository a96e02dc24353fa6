//! The queue behind locks and turns.
//!
//! Drawing a ticket inserts a row, whose number is the fencing token: `AUTOINCREMENT` assigns none twice. Before the
//! row is visible the file `tickets/N` is created and locked. A ticket waits for the lock of the last ticket before
//! its own that conflicts with it, in the kernel and without polling. When that lock is released, its owner is done
//! or dead: the ticket is deleted, and the wait continues with the previous one until none remains. A lease has no
//! file. It has an expiry on both clocks, and waiters poll it.
//!
//! A shared ticket conflicts only with earlier exclusive ones; an exclusive ticket conflicts with all. A waiting
//! ticket of a stopped process (Ctrl-Z, a debugger) does not block others. A ticket that becomes held before such a
//! one deletes it in the same transaction, so that held tokens keep growing; its owner draws a new ticket when it
//! continues.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::Moment;
use crate::error::{Error, FileError, LockError, Result};
use crate::files::{Locker, create_private_dir, open_lock_file};
use crate::lock::holder::StoredHolder;
use crate::lock::wait::{LineProgress, first_holder, lock_name};
use crate::lock::{LockHolder, LockMode};
use crate::store::{LeaseEnd, Store, TicketRow, TurnInLine};
use crate::world::World;

/// Poll interval for the end of a lease, because its release wakes no waiter.
const LEASE_POLL: Duration = Duration::from_millis(20);

/// Queues of tickets below a state directory.
#[derive(Clone)]
pub(crate) struct TicketQueue {
    dir: PathBuf,
    world: World,
    locker: Locker,
}

/// A ticket whose turn has come. Dropping it without giving it back is like dying: the next one finds out.
#[derive(Debug)]
pub struct HeldTicket {
    /// The fencing token.
    pub token: i64,
    lock: File,
}

impl TicketQueue {
    /// The queues of a state directory.
    pub(crate) fn new(state_dir: &Path, world: World, locker: Locker) -> Self {
        TicketQueue { dir: state_dir.join("tickets"), world, locker }
    }

    /// Waits for a resource, as long as the locker says.
    pub(crate) fn wait(
        &self,
        store: &mut Store,
        resource: &str,
        holder: &LockHolder,
        mode: LockMode,
    ) -> Result<HeldTicket> {
        create_private_dir(&self.dir)?;
        let text = StoredHolder { holder: holder.clone(), mode }.to_json();
        let mut progress = LineProgress::new(&self.locker, resource, holder);
        loop {
            let now = self.world.now().as_millisecond();
            // Drawn anew after a later ticket has passed this one: held tokens must keep growing.
            let (token, lock) = store.draw_ticket(resource, &text, now, |token| self.make_file(token))?;
            let held = HeldTicket { token, lock };
            match self.wait_in_line(store, resource, token, mode, &mut progress) {
                Ok(true) => return Ok(held),
                // The later ticket has removed the row already.
                Ok(false) => self.forget_file(token),
                Err(error) => {
                    self.give_back(store, held)?;
                    return Err(error);
                }
            }
        }
    }

    /// Gives a ticket back; returns false if it had been taken away.
    pub(crate) fn give_back(&self, store: &mut Store, held: HeldTicket) -> Result<bool> {
        // Row first: a row whose file is gone counts as a dead holder's.
        let dropped = store.drop_ticket(held.token)?;
        self.forget_file(held.token);
        drop(held);
        Ok(dropped)
    }

    /// Leaves a ticket. Releases it if no other process has its descriptor.
    pub(crate) fn leave(&self, store: &mut Store, held: HeldTicket) -> Result<bool> {
        let (token, path) = (held.token, self.file(held.token));
        // Closed first: only then does the lock tell whether another process has inherited the descriptor.
        drop(held);
        match File::open(&path).map(|file| Locker::new(Duration::ZERO).lock(file, &path)) {
            // Who comes next waits for that process, and finds out when it ends.
            Ok(Err(Error::File(FileError::Locked { .. }))) => Ok(false),
            _ => {
                let dropped = store.drop_ticket(token)?;
                self.forget_file(token);
                Ok(dropped)
            }
        }
    }

    /// Removes the file of a ticket whose row was deleted, which wakes the next waiter.
    pub(crate) fn forget(&self, held: &HeldTicket) {
        self.forget_file(held.token);
    }

    /// Turns a held ticket into a lease, which outlives this process.
    pub(crate) fn lease(&self, store: &mut Store, held: HeldTicket, time: Duration) -> Result<i64> {
        let token = held.token;
        // The row becomes a lease before the file goes: without either, a waiter would take the holder for
        // dead.
        let kept =
            store.hold_ticket(token, self.world.now().as_millisecond(), Some(&self.lease_end(time)))?;
        self.forget_file(token);
        drop(held);
        // The row may have been removed by `break` while the process still held the file.
        if kept { Ok(token) } else { Err(LockError::Lost(token).into()) }
    }

    /// The end of a lease that begins now.
    pub(crate) fn lease_end(&self, time: Duration) -> LeaseEnd {
        let now = Moment::now(&self.world);
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        LeaseEnd {
            expires_ms: now.wall_ms.saturating_add(millis),
            boot: now.boot,
            expires_boot_ms: now.boot_ms.saturating_add(millis),
        }
    }

    /// Whether a ticket is alive: its lease has not expired, or its process lives.
    pub(crate) fn is_alive(&self, ticket: &TicketRow) -> bool {
        match ticket.expires_ms {
            Some(_) => lease_holds(ticket, &Moment::now(&self.world)),
            None => match File::open(self.file(ticket.token)) {
                // The lock is taken only to ask, and is free again at the end of this expression.
                Ok(file) => Locker::new(Duration::ZERO).lock(file, &self.dir).is_err(),
                // Only a file that is gone says that its owner is.
                Err(error) => error.kind() != std::io::ErrorKind::NotFound,
            },
        }
    }

    /// Waits until a ticket is held. Returns false if a later one passed it.
    fn wait_in_line(
        &self,
        store: &mut Store,
        resource: &str,
        token: i64,
        mode: LockMode,
        progress: &mut LineProgress<'_>,
    ) -> Result<bool> {
        let blocker =
            |store: &Store| store.last_ticket_before(resource, token, |before| blocks(before, mode));
        let mut is_first_look = true;
        loop {
            let Some(before) = blocker(store)? else {
                let passed = |before: &TicketRow| match (blocks(before, mode), conflicts(before, mode)) {
                    (true, _) => None,
                    (false, is_passed) => Some(is_passed),
                };
                // Checked again in the transaction: a ticket that was stopped when it was looked at may run
                // again by now.
                match store.hold_next(resource, token, self.world.now().as_millisecond(), passed)? {
                    TurnInLine::Held(removed) => {
                        removed.into_iter().for_each(|token| self.forget_file(token));
                        return Ok(true);
                    }
                    TurnInLine::Blocked => continue,
                    TurnInLine::Passed => return Ok(false),
                }
            };
            if std::mem::take(&mut is_first_look)
                && let Some(ancestor) = self.holding_ancestor(store, resource, token, mode)?
            {
                return Err(Error::Lock(LockError::Held {
                    name: lock_name(resource).to_owned(),
                    holder: Some(format!("a parent of this process ({})", ancestor.short())),
                    is_own: true,
                    waited: progress.waited(),
                }));
            }
            let remaining = progress.remaining();
            if before.expires_ms.is_some() {
                if lease_holds(&before, &Moment::now(&self.world)) {
                    if remaining.is_zero() {
                        return Err(self.held_by(store, resource, progress));
                    }
                    progress.report(store, token);
                    std::thread::sleep(LEASE_POLL.min(remaining));
                    continue;
                }
            } else {
                let path = self.file(before.token);
                let file = match File::open(&path) {
                    Ok(file) => Some(file),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                    Err(error) => return Err(Error::io("open", path, error)),
                };
                if let Some(file) = file {
                    // Without the locker's own callback: the position in the queue is reported here, not the
                    // holder of a file.
                    let wait = Locker::new(remaining);
                    // A lock that was broken is still held by the kernel, and a stopped waiter blocks nobody.
                    let shared = RefCell::new(&mut *progress);
                    let is_over = || {
                        shared.borrow_mut().report(store, token);
                        blocker(store).is_ok_and(|now| now.is_none_or(|now| now.token != before.token))
                    };
                    match wait.lock_unless(file, Path::new(resource), is_over) {
                        Ok(Some(_)) => {}
                        Ok(None) => continue,
                        Err(Error::File(FileError::Locked { .. })) => {
                            return Err(self.held_by(store, resource, progress));
                        }
                        Err(other) => return Err(other),
                    }
                }
                // It may have become a lease while it was waited for.
                if store.ticket(before.token)?.is_some_and(|ticket| ticket.expires_ms.is_some()) {
                    continue;
                }
            }
            // A lease that was renewed in this very moment stays.
            store.drop_ticket_of(before.token, before.expires_ms)?;
            self.forget_file(before.token);
        }
    }

    /// Holder that a ticket conflicts with and that is an ancestor of this process: it waits for this process to end.
    fn holding_ancestor(
        &self,
        store: &Store,
        resource: &str,
        token: i64,
        mode: LockMode,
    ) -> Result<Option<LockHolder>> {
        // Another thread of this process releases it by itself.
        let ancestors = crate::process::lineage().split_off(1);
        let is_ancestor = |before: &TicketRow| {
            let is_held = before.held_ms.is_some() && before.expires_ms.is_none() && conflicts(before, mode);
            let process = is_held.then(|| StoredHolder::of_json(&before.holder).holder.process).flatten();
            process.is_some_and(|process| ancestors.contains(&process.pid) && process.is_alive())
        };
        let found = store.last_ticket_before(resource, token, is_ancestor)?;
        // A pid may have been reused since the ticket was drawn.
        let found = found.filter(|ticket| self.is_alive(ticket));
        Ok(found.map(|ticket| StoredHolder::of_json(&ticket.holder).holder))
    }

    fn held_by(&self, store: &Store, resource: &str, progress: &LineProgress<'_>) -> Error {
        // The error to report is the timeout; the holder's name is only added to it.
        let holder = first_holder(&store.tickets(resource).unwrap_or_default(), resource);
        let waiter = progress.holder();
        Error::Lock(LockError::Held {
            name: lock_name(resource).to_owned(),
            is_own: holder.as_ref().is_some_and(|holder| holder.is_same_session(waiter)),
            holder: holder.map(|holder| holder.described_to(waiter)),
            waited: progress.waited(),
        })
    }

    fn make_file(&self, token: i64) -> Result<File> {
        let path = self.file(token);
        // Nobody knows the file yet, so a lock that is taken already means a fault, not a wait.
        Locker::new(Duration::ZERO).lock(open_lock_file(&path)?, &path)
    }

    fn file(&self, token: i64) -> PathBuf {
        // One file per token: a token is never reused, so a stale file cannot be mistaken for a new ticket.
        self.dir.join(token.to_string())
    }

    fn forget_file(&self, token: i64) {
        remove_file(&self.file(token));
    }
}

/// Removes the file of a ticket whose row was deleted.
pub(crate) fn forget_ticket_file(state_dir: &Path, token: i64) {
    remove_file(&state_dir.join("tickets").join(token.to_string()));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ticket's file is useless after its row is deleted, so it needs no sync"
)]
fn remove_file(path: &Path) {
    // `session gc` finds a file that cannot be removed now.
    let _ = std::fs::remove_file(path);
}

impl HeldTicket {
    /// The descriptor whose lock backs the ticket. As long as any process has it open, the ticket holds.
    pub fn descriptor(&self) -> &File {
        &self.lock
    }
}

/// Whether a ticket before another excludes it.
fn conflicts(before: &TicketRow, mode: LockMode) -> bool {
    !mode.is_shared() || !StoredHolder::of_json(&before.holder).mode.is_shared()
}

/// Whether a ticket before another must be waited for.
fn blocks(before: &TicketRow, mode: LockMode) -> bool {
    conflicts(before, mode)
        && (before.held_ms.is_some() || !StoredHolder::of_json(&before.holder).holder.is_stopped())
}

fn lease_holds(ticket: &TicketRow, now: &Moment) -> bool {
    // Systems without a boot id cannot tell two boots apart, so the wall clock decides there.
    let same_boot = ticket.boot.as_deref() == Some(now.boot.as_str()) && !now.boot.is_empty();
    match (ticket.expires_ms, ticket.expires_boot_ms) {
        // The boot clock cannot be set, so it decides within one boot; the wall clock decides across boots.
        (_, Some(end)) if same_boot => now.boot_ms < end,
        (Some(end), _) => now.wall_ms < end,
        _ => false,
    }
}
