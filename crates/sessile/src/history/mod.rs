//! The history: every change of state is an operation, and most can be undone.
//!
//! A change is said first, as [`Effect`]s with what was and what will be; [`perform`] records that intent, makes each
//! effect with a compare-and-set under its own lock, and closes the operation. If the process dies in between, the
//! next call finds the intent and brings it to an end. [`undo`] is the same with the sides exchanged.
//!
//! No secret is recorded: what looks like one is left out, and the operation cannot be undone.

mod effect;
mod operation;
mod perform;
mod table;
mod undo;

pub use effect::{Effect, PointerValue};
pub use operation::{Operation, find, list};
pub use perform::{perform, record, settle, settle_if_marked};
pub use table::{COMMANDS, Recorded, Undo, recorded};
pub use undo::undo;

pub(crate) use perform::unless_overtaken;
pub(crate) use perform::{entry_hides, row};
