//! Locks for people and agents: named mutual exclusion with a holder, an expiry and a fencing token.
//!
//! A lock is a queue of tickets in the store, first come first served; a ticket's number is the fencing token and only
//! ever grows. A ticket is backed by the kernel while its process lives: it holds the lock on a file of the ticket's
//! own, and the next in line waits for that. Or it is a lease, backed by an expiry. Turns of a session use the same
//! queue.
//!
//! Not for protecting files (see [`crate::files`]).

mod holder;
mod locks;
mod queue;

pub use holder::LockHolder;
pub use locks::{LockName, LockStatus, Locks};
pub use queue::HeldTicket;

pub(crate) use queue::{TicketQueue, forget_ticket_file};
