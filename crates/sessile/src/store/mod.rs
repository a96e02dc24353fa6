//! The store: one SQLite file that the application owns.
//!
//! Opened only when something in it is needed: read-only by readers, who take no lock, and for writing by
//! writers, with `synchronous=FULL`. Each change is one short transaction. The schema grows by numbered
//! migrations that are only ever added.
//!
//! Not for what people edit: contexts and settings are files.

mod approvals;
mod migrate;
mod open;
mod pins;
mod pointers;
mod trusted;

pub use approvals::{ApprovalRow, NewApproval};
pub use migrate::VERSION;
pub use open::Store;
pub use pins::PinRow;
pub use pointers::{PointerKey, PointerRow, Scope};
