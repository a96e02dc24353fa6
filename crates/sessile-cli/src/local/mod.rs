//! Sessions, state values, locks, conversations and history of this machine, as views.
//!
//! The counterpart of `remote`: the same operations against the library's stores.

mod conversation;
mod history;
mod lock;
mod session;
mod values;

use crate::cli::Cx;

pub(crate) use conversation::{conversation_views, find_conversation, session_filter};
pub(crate) use lock::holder;

/// Stores of this machine, for one call.
pub(crate) struct LocalBackend<'a> {
    pub(crate) cx: &'a Cx,
}
