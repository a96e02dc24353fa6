//! Sessions: owned, expiring, isolated stretches of work, each pinned to one context for its whole life.
//!
//! [`Sessions`] is one user's view of them: every query carries the user, so that another user's session does not
//! exist. [`Room`] is a session's private directory, with the kernel lock that running commands hold; [`lifecycle`]
//! decides what has expired; [`Turn`] is an exclusive step on a session's messages; [`entries`] keeps small values
//! with revisions.
//!
//! A session is a row and a room. A start creates the room first, an end closes the row first. So a live session
//! always has a room, and `session gc` removes a room without a live session. A call that changes something ends a few
//! expired sessions.
//!
//! Not for: running commands in a session, which is [`crate::run`].

mod approval_watch;
mod command_log;
pub mod entries;
pub mod lifecycle;
mod operations;
mod output_log;
mod owner;
pub(crate) mod resolve;
pub mod room;
mod sessions;
pub(crate) mod sockets;
pub(crate) mod spare_room;
mod stop;
pub mod transfer;
mod turn;
mod watch;
mod withdraw;

pub use approval_watch::ApprovalWatch;
pub use command_log::StartedCommand;
pub use entries::SessionEntry;
pub use lifecycle::Lifecycle;
pub use operations::{SETTINGS, StoppedSession};
pub use output_log::{LoggedOutput, OutputLog, OutputRedactor, plain_output};
pub use owner::Owner;
pub use resolve::{CurrentSession, EndedSelection, PendingSession, TerminalSelection};
pub use room::{Room, RunningProcess};
pub use sessions::{NewSession, Session, SessionSnapshot, Sessions};
pub use stop::{end_marked, end_others};
pub use turn::{Message, Turn};
pub use watch::{MaxAction, RoomWatch, max_reached};

pub use crate::names::{SessionId, SessionName};
pub use crate::store::EntryKind;
