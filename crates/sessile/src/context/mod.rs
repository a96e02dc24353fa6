//! Contexts: named targets, one TOML file each, with the guard that stands before them.
//!
//! [`Contexts`] finds and changes them, [`SelectedContext`] says which one a call is about and why, [`Guard`] what it
//! demands before it is used, [`approval`] how a person gives that, `weaken` who may lower it,
//! [`transfer`] how they travel.
//!
//! Not for: carrying a context out (that is a tool's or a session's work).

pub mod approval;
mod catalog;
mod change;
mod definition;
mod guard;
mod identity;
mod pin;
mod selection;
pub mod transfer;
pub(crate) mod weaken;

pub use catalog::{ContextLocation, Contexts};
pub use change::{ContextEdit, Removed};
pub use definition::{Bindings, Context, ContextContent, Variable, is_variable_name};
pub use guard::{Guard, GuardState};
pub use pin::{is_pin_set, set_pin, verify_pin};
pub use selection::{SelectedContext, SwitchScope, Switched, switch};

pub(crate) use catalog::toml_files;
pub(crate) use selection::{refuse_untrusted, select};
