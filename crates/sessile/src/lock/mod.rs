//! Locks for people and agents: named exclusion, exclusive or shared, with holders, an expiry and fencing tokens.
//!
//! A lock is a queue of tickets in the store, first come first served; a ticket's number is the fencing token and only
//! ever grows. A ticket is backed by the kernel while its process lives: it holds the lock on a file of the ticket's
//! own, and the next in line waits for that. Or it is a lease, backed by an expiry. Turns of a session use the same
//! queue.
//!
//! Shared tickets do not exclude each other. A shared ticket waits for every exclusive one before it, waiting or held, so
//! a stream of readers does not starve a writer.
//!
//! Not for protecting files (see [`crate::files`]).

mod holder;
mod locks;
mod queue;
mod wait;

pub use holder::LockHolder;
pub use locks::{LockLease, LockName, LockStatus, Locks};
pub use queue::HeldTicket;
pub use sessile_wire::lock_mode::LockMode;

pub(crate) use queue::{TicketQueue, forget_ticket_file};
