//! The history: every change of state is an operation, and most operations can be undone.
//!
//! A change is a list of [`Effect`]s. Each names a thing (a key, a file, a selection, a value or the name of a session,
//! trust), its value before and its value after. [`perform`] makes the change:
//!
//! 1. `context::guard_weakening::authorize` checks the call: without an approval or a person no effect may weaken a guard, and
//!    from inside a session none may redirect others.
//! 2. The operation is stored in state `intent`, with the process that makes it. An effect that looks like a secret is
//!    stored as an [`Effect::Event`], which records only that something happened.
//! 3. An operation of several effects gets a marker: an empty file in `intents/`.
//! 4. Each effect goes from *before* to *after* by compare-and-set under its own lock. If one has changed meanwhile,
//!    those already made are rolled back and the error is `CONCURRENT_CHANGE`.
//! 5. The operation is closed as `done` and the marker is removed. If closing fails, on a full disk for example, the
//!    change stands and the next writer closes the operation.
//!
//! [`settle`] recovers from crashes. It finds intents whose process is dead, by pid, start time and boot id. If all
//! effects are at *after*, the operation is done; otherwise it is rolled back. An operation that cannot be rolled back
//! is closed as `unknown`. A single effect needs no marker: it is whole or absent by itself, and the next writer
//! settles its intent. Every call begins with [`settle_if_marked`].
//!
//! [`undo`] checks that every effect is at *after* and performs the effects with the sides exchanged, as an operation
//! of its own. State values of a session take a shorter path: value, revision and operation are one transaction. A
//! change that cannot be expressed as effects is recorded after it happened, by [`record`]; if that fails, the error is
//! `NOT_RECORDED` and states that the change was made.
//!
//! No secret is recorded, and an operation that holds one cannot be undone.

mod effect;
mod operation;
mod perform;
mod rewrite;
mod table;
mod undo;

pub use effect::{Effect, PointerValue};
pub use operation::{Operation, find, list};
pub use perform::{perform, record, settle, settle_if_marked};
pub use rewrite::{change_text, value_in_file};
pub use table::{COMMANDS, RecordedCommand, Undo, recorded};
pub use undo::{check_undo, undo};

pub use crate::store::OperationFilter;

pub(crate) use operation::recorded_text;
pub(crate) use perform::unless_overtaken;
pub(crate) use perform::{entry_hides, row};
