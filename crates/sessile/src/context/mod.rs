//! Contexts: named targets with an optional guard, one TOML file each.
//!
//! [`Contexts`] finds and changes them. [`SelectedContext`] is the context of a call with its origin, [`Guard`] its
//! requirements before use, [`approval`] a person's consent. `guard_weakening` checks changes that reduce a guard,
//! [`transfer`] exports and imports, [`anonymous`] makes a context of `--bind` without a file.
//!
//! Not for applying a context to tools: see [`crate::tool`] and [`crate::session`].

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
