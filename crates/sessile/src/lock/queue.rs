//! The queue behind locks and turns.
//!
//! Drawing a ticket inserts a row, whose number is the fencing token: `AUTOINCREMENT` assigns none twice. Before the
//! row is visible the file `tickets/N` is created and locked. The next in line waits for the lock of the ticket just
//! before its own, in the kernel and without polling. When that lock comes free, its owner is done or dead: the ticket
//! is deleted, and the wait continues with the one before it, until there is none. A lease has no file. It has an
//! expiry on both clocks, and waiters poll it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::clock::Moment;
use crate::error::{Error, FileError, LockError, Result};
use crate::files::{Locker, create_private_dir, open_lock_file};
use crate::lock::LockHolder;
use crate::store::{LeaseEnd, Store, TicketRow};
use crate::world::World;

/// How often the end of a lease is looked for: nobody is told when one is given back.
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
    pub(crate) fn wait(&self, store: &mut Store, resource: &str, holder: &LockHolder) -> Result<HeldTicket> {
        create_private_dir(&self.dir)?;
        let text = serde_json::to_string(holder).unwrap_or_default();
        let now = self.world.now().as_millisecond();
        let (token, lock) = store.draw_ticket(resource, &text, now, |token| self.make_file(token))?;
        let held = HeldTicket { token, lock };
        match self.wait_in_line(store, resource, token) {
            Ok(()) => Ok(held),
            Err(error) => {
                self.give_back(store, held)?;
                Err(error)
            }
        }
    }

    /// Gives a ticket back; returns false if it had been taken away.
    pub(crate) fn give_back(&self, store: &mut Store, held: HeldTicket) -> Result<bool> {
        let dropped = store.drop_ticket(held.token)?;
        self.forget_file(held.token);
        drop(held);
        Ok(dropped)
    }

    /// Lets go of a ticket; it is given back if no other process has its descriptor.
    pub(crate) fn leave(&self, store: &mut Store, held: HeldTicket) -> Result<bool> {
        let (token, path) = (held.token, self.file(held.token));
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

    /// Takes away what is left of a ticket whose row is gone, and lets the next one in.
    pub(crate) fn forget(&self, held: &HeldTicket) {
        self.forget_file(held.token);
    }

    /// Turns a held ticket into a lease, which outlives this process.
    pub(crate) fn lease(&self, store: &mut Store, held: HeldTicket, time: Duration) -> Result<i64> {
        let token = held.token;
        let kept =
            store.hold_ticket(token, self.world.now().as_millisecond(), Some(&self.lease_end(time)))?;
        self.forget_file(token);
        drop(held);
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

    /// Whether a ticket still stands for someone: a lease that has not ended, or a process that lives.
    pub(crate) fn is_alive(&self, ticket: &TicketRow) -> bool {
        match ticket.expires_ms {
            Some(_) => lease_holds(ticket, &Moment::now(&self.world)),
            None => match File::open(self.file(ticket.token)) {
                Ok(file) => Locker::new(Duration::ZERO).lock(file, &self.dir).is_err(),
                // Only a file that is gone says that its owner is.
                Err(error) => error.kind() != std::io::ErrorKind::NotFound,
            },
        }
    }

    fn wait_in_line(&self, store: &mut Store, resource: &str, token: i64) -> Result<()> {
        let begun = Instant::now();
        while let Some(before) = store.ticket_before(resource, token)? {
            let remaining = self.locker.timeout().saturating_sub(begun.elapsed());
            if before.expires_ms.is_some() {
                if lease_holds(&before, &Moment::now(&self.world)) {
                    if remaining.is_zero() {
                        return Err(self.held_by(store, resource, begun.elapsed()));
                    }
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
                    let wait = self.locker.clone().with_timeout(remaining);
                    // A lock that was broken is still held by the kernel.
                    let is_broken = || {
                        let now = store.ticket_before(resource, token);
                        now.is_ok_and(|now| now.is_none_or(|now| now.token != before.token))
                    };
                    match wait.lock_unless(file, Path::new(resource), is_broken) {
                        Ok(Some(_)) => {}
                        Ok(None) => continue,
                        Err(Error::File(FileError::Locked { .. })) => {
                            return Err(self.held_by(store, resource, begun.elapsed()));
                        }
                        Err(other) => return Err(other),
                    }
                }
                // It may have become a lease while it was waited for.
                if self.is_lease(store, resource, token, before.token)? {
                    continue;
                }
            }
            // A lease that was renewed in this very moment stays.
            store.drop_ticket_of(before.token, before.expires_ms)?;
            self.forget_file(before.token);
        }
        let now = self.world.now().as_millisecond();
        if store.hold_ticket(token, now, None)? { Ok(()) } else { Err(LockError::Lost(token).into()) }
    }

    fn is_lease(&self, store: &Store, resource: &str, token: i64, before: i64) -> Result<bool> {
        let now = store.ticket_before(resource, token)?;
        Ok(now.is_some_and(|ticket| ticket.token == before && ticket.expires_ms.is_some()))
    }

    fn held_by(&self, store: &Store, resource: &str, waited: Duration) -> Error {
        let first = store
            .tickets(resource)
            .unwrap_or_default()
            .into_iter()
            .find(|ticket| ticket.resource == resource && ticket.held_ms.is_some());
        let holder = first.map(|ticket| {
            format!("{} (token {})", LockHolder::of_json(&ticket.holder).short(), ticket.token)
        });
        Error::Lock(LockError::Held {
            name: resource.rsplit(':').next().unwrap_or(resource).to_owned(),
            holder,
            waited,
        })
    }

    fn make_file(&self, token: i64) -> Result<File> {
        let path = self.file(token);
        Locker::new(Duration::ZERO).lock(open_lock_file(&path)?, &path)
    }

    fn file(&self, token: i64) -> PathBuf {
        self.dir.join(token.to_string())
    }

    fn forget_file(&self, token: i64) {
        remove_file(&self.file(token));
    }
}

/// Removes the file of a ticket whose row is gone.
pub(crate) fn forget_ticket_file(state_dir: &Path, token: i64) {
    remove_file(&state_dir.join("tickets").join(token.to_string()));
}

#[expect(clippy::disallowed_methods, reason = "a ticket's file is worth nothing once its row is gone")]
fn remove_file(path: &Path) {
    let _ = std::fs::remove_file(path);
}

impl HeldTicket {
    /// The descriptor whose lock backs the ticket. As long as any process has it open, the ticket holds.
    pub fn descriptor(&self) -> &File {
        &self.lock
    }
}

fn lease_holds(ticket: &TicketRow, now: &Moment) -> bool {
    let same_boot = ticket.boot.as_deref() == Some(now.boot.as_str()) && !now.boot.is_empty();
    match (ticket.expires_ms, ticket.expires_boot_ms) {
        (_, Some(end)) if same_boot => now.boot_ms < end,
        (Some(end), _) => now.wall_ms < end,
        _ => false,
    }
}
