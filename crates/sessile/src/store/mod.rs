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

mod answers;
mod approvals;
mod backup;
mod check;
pub(crate) mod conversations;
mod entries;
mod group_commit;
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
mod vacancy;

pub use backup::{BackupSnapshot, column_list, is_unfit_row, new_in_memory, raise_revisions, save_revisions};
pub use check::{SENT_CHANGE, missing_column};
pub use entries::EntryKind;
pub use operations::OperationFilter;

#[cfg(any(test, fuzzing))]
pub(crate) use answers::fuzz_lines;
pub(crate) use answers::path_beside as answers_beside;
pub(crate) use approvals::{ApprovalRow, NewApproval};
pub(crate) use conversations::{
    ConversationChange, ConversationFilter, ConversationKey, ConversationRow, ItemRow, RenameOutcome,
};
pub(crate) use entries::{EntryChange, EntryPlace, EntryRow};
pub(crate) use messages::{Commit, MessageRow};
pub(crate) use open::Store;
pub(crate) use operations::OperationRow;
pub(crate) use pins::{PinAttempt, PinReservation};
pub(crate) use pointers::{PointerKey, PointerKind, Scope};
pub(crate) use sessions::{InitialContent, SessionRow};
pub(crate) use tickets::{LOCK_PREFIX, LeaseEnd, TicketRow, TurnInLine, turn_resource};
