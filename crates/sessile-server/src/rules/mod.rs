//! Rules of the store, without I/O.
//!
//! A store loads a [`ChangeSnapshot`] of the [`Dependencies`] of a change, calls [`decide`], and executes the
//! [`Write`]s of the decision in the same transaction. So both stores follow the same rules, and the rules are tested
//! without a database.
//!
//! Not for SQL, locks or retries: these differ from store to store.

pub(crate) mod audit;
mod decision;
pub(crate) mod idempotency;
mod messages;
mod queue;
#[cfg(test)]
mod queue_properties;
mod sessions;
mod snapshot;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use decision::decide;
pub(crate) use queue::{QueuePlace, QueueSnapshot, QueueState};
pub(crate) use snapshot::{
    ChangeSnapshot, Dependencies, LoadedSession, QueueLock, StoredAnswer, StoredEntry,
};
pub(crate) use write::Write;
