//! Contexts: named targets, one TOML file each, with the guard that stands before them.
//!
//! [`Contexts`] finds and changes them, [`SelectedContext`] says which one a call is about and why, [`Guard`] what it
//! demands before it is used, [`approval`] how a person gives that, `guard_weakening` who may lower it,
//! [`transfer`] how they travel, [`anonymous`] what stands for one that has no file.
//!
//! Not for: carrying a context out (that is a tool's or a session's work).

pub mod anonymous;
pub mod approval;
mod catalog;
pub(crate) mod change;
mod definition;
mod guard;
pub(crate) mod guard_weakening;
mod identity;
mod pin;
pub mod request;
mod selection;
mod switch;
pub mod transfer;
mod unprotect;

pub use catalog::{ContextLocation, Contexts};
pub use change::{ContextDeletion, ContextEdit};
pub use definition::{Bindings, Context, ContextContent, Variable, is_variable_name};
pub use guard::{Guard, GuardState};
pub use pin::{is_pin_set, set_pin, verify_pin};
pub use selection::SelectedContext;
pub use switch::{ContextSwitch, SelectionAuthor, SwitchScope, SwitchTarget, switch};

pub(crate) use catalog::toml_files;
pub(crate) use selection::{refuse_untrusted, select};
