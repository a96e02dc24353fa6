//! Typed views of sessions, locks, conversations, replies and operations.
//!
//! A view is built from a type of the library (this machine) or of `sessile-wire` (a session service). Text and JSON are rendered
//! from it, and JSON is the last step: nothing here reads a JSON value that this program built.

mod change;
mod conversation;
mod lock;
mod operation;
mod reply;
mod session;
mod state_value;

pub(crate) use change::{ChangePlace, ChangeReport, ChangeView};
pub(crate) use conversation::{
    ConversationSummary, ConversationView, CredentialPresence, FoundMessage, ServiceConversation, texts,
};
pub(crate) use lock::{LeaseView, LockView};
pub(crate) use operation::{CommandView, OperationView, operation_fields, operation_text};
pub(crate) use reply::{AgentOutput, ArtifactView, EventView, ReplyView, TaskView, event_kind};
pub(crate) use session::{
    AGENT_LABEL, LoggedCommand, ServiceSessionSnapshot, SessionDetailView, SessionListing, SessionRenameView,
    SessionStartView, SessionStopView, SessionView,
};
pub(crate) use state_value::ValueChangeView;
