//! The store: one SQLite file that the application owns.
//!
//! Opened only when something in it is needed: read-only by readers, who take no lock, and for writing by writers, with
//! `synchronous=FULL`. Each change is one short transaction. The schema grows by numbered migrations that are only ever
//! added.
//!
//! SQLite parses the whole schema at every open. Each table or index costs the hot commands about 35,000 instructions,
//! so a new one needs a reason; settings and state values of a session share a table for this reason. Every query whose
//! answer reaches a user carries that user. Only sweeping and settling look at all users.
//!
//! Not for what people edit: contexts and settings are files.

mod approvals;
mod backup;
mod check;
pub(crate) mod conversations;
mod entries;
mod messages;
mod migrate;
mod open;
mod operations;
mod pins;
mod pointers;
mod recover;
mod sessions;
mod tickets;
mod trusted;

pub use approvals::{ApprovalRow, NewApproval};
pub use backup::{Snapshot, column_list, raise_revisions, save_revisions};
pub use conversations::{ConversationChange, ConversationFilter, ConversationKey, ConversationRow, ItemRow};
pub use entries::{EntryChange, EntryPlace, EntryRow};
pub use messages::{Commit, MessageRow};
pub use migrate::VERSION;
pub use open::Store;
pub use operations::{OperationFilter, OperationRow};
pub use pins::{PinAttempt, PinReservation, PinRow};
pub use pointers::{PointerKey, PointerKind, PointerRow, PointerState, Scope};
pub use recover::Recovered;
pub use sessions::{Contents, SessionRow};
pub use tickets::{LeaseEnd, TicketRow};
