//! Errors of sessions and their state.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{quoted, shown};

/// Errors of sessions and their state.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No such session.
    #[error("session {} not found", quoted(.0))]
    NotFound(String),
    /// A session that can no longer be used.
    #[error("session {} {}", quoted(session), if *ended { "has ended" } else { "has expired" })]
    Expired {
        /// Name or id.
        session: String,
        /// Whether it was ended rather than expired.
        ended: bool,
        /// Name, for the command that starts another.
        name: Option<String>,
        /// The context it was pinned to.
        context: Option<String>,
    },
    /// Session that the terminal has selected and that is over.
    #[error("session {} of terminal {} {end}", quoted(session), shown(device.display()))]
    SelectionOver {
        /// Name or id.
        session: String,
        /// The terminal's device.
        device: PathBuf,
        /// Reason.
        end: SessionEnd,
        /// Name, for the command that starts another.
        name: Option<String>,
        /// The context it was pinned to.
        context: Option<String>,
    },
    /// Call without a session.
    #[error("no session selected")]
    Required(String),
    /// An id that is too short.
    #[error("more than one session has an id that begins with {}", quoted(.0))]
    Ambiguous(String),
    /// The name is taken.
    #[error("a live session named {} already exists", quoted(.0))]
    Exists(String),
    /// Context of the call that differs from the session's.
    #[error(
        "session {} is pinned to {}, but the call requests {}",
        quoted(session),
        pinned.as_ref().map_or_else(|| "no context".to_owned(), |name| format!("context {}", quoted(name))),
        quoted(asked)
    )]
    ContextFixed {
        /// The session.
        session: String,
        /// The context it has.
        pinned: Option<String>,
        /// Requested id or name.
        asked: String,
    },
    /// Not stopped.
    #[error("cannot stop session {}: {} still running", quoted(session), pids(left))]
    StopFailed {
        /// The session.
        session: String,
        /// Processes that still run.
        left: Vec<i32>,
    },
    /// Value that another process changed first.
    #[error(
        "{}: revision conflict: expected {expected}, found {}",
        quoted(key),
        found.map_or_else(|| "no value".to_owned(), |found| found.to_string())
    )]
    RevisionConflict {
        /// The key.
        key: String,
        /// Expected revision.
        expected: i64,
        /// Found value.
        found: Option<i64>,
    },
    /// Refused in a session.
    #[error("{what} is refused inside a session")]
    RefusedInside {
        /// Requested action.
        what: String,
        /// Reason and alternative.
        instead: &'static str,
    },
    /// A room that may be another's.
    #[error("unsafe room {}: {reason}", shown(path.display()))]
    UnsafeRoom {
        /// The directory.
        path: PathBuf,
        /// Reason.
        reason: &'static str,
    },
    /// A room whose plan names a directory of another user, or of another `HOME`.
    #[error(
        "cannot move files from room {} to {}: not your home or configuration directory",
        shown(room.display()),
        shown(target.display())
    )]
    ForeignTarget {
        /// The room.
        room: PathBuf,
        /// The directory.
        target: PathBuf,
    },
}

/// End of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// A limit of its life was reached.
    Expired,
    /// Stopped before the end of its life.
    Stopped,
    /// Over, and deleted from the store.
    Deleted,
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "has expired",
            Self::Stopped => "was stopped",
            Self::Deleted => "was deleted",
        })
    }
}

impl Diagnostic for SessionError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound(_) => Code::SessionNotFound,
            Self::Expired { .. } | Self::SelectionOver { .. } => Code::SessionExpired,
            Self::Required(_) => Code::SessionRequired,
            Self::Ambiguous(_) => Code::AmbiguousSession,
            Self::Exists(_) => Code::SessionExists,
            Self::ContextFixed { .. } => Code::ContextFixed,
            Self::StopFailed { .. } => Code::StopFailed,
            Self::RevisionConflict { .. } => Code::RevisionConflict,
            Self::RefusedInside { .. } => Code::InSession,
            Self::UnsafeRoom { .. } | Self::ForeignTarget { .. } => Code::RoomUnsafe,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        let prefix = app.prefix();
        Some(match self {
            Self::NotFound(url) if url.contains("://") => {
                format!("{url:?} is the URL of an agent; show its conversation: {name} conversation show {url}")
            }
            Self::NotFound(_) => format!("list the sessions: {name} session list"),
            Self::Expired { .. } => {
                let start = self.fix_command(app).unwrap_or_default();
                format!("start a new session: {start}; or pass --new to `{name} run` or `{name} shell`")
            }
            Self::SelectionOver { .. } => {
                let start = self.fix_command(app).unwrap_or_default();
                format!("start a new session: {start}; or leave this one: {name} session detach")
            }
            Self::Required(_) => {
                format!("pass --session NAME or set {prefix}_SESSION; list the sessions: {name} session list")
            }
            Self::Ambiguous(_) => "pass a longer part of the id, or the name".to_owned(),
            Self::Exists(_) => {
                format!("choose another name, or use the session: --session, {prefix}_SESSION")
            }
            Self::ContextFixed { .. } => {
                "the context of a session never changes; start another session".to_owned()
            }
            Self::StopFailed { .. } => "stop the process yourself, then stop the session again".to_owned(),
            Self::RevisionConflict { .. } => "read the value again, then retry".to_owned(),
            Self::RefusedInside { instead, .. } => (*instead).to_owned(),
            Self::UnsafeRoom { .. } => "check who created the directory, and remove it".to_owned(),
            Self::ForeignTarget { .. } => {
                "set HOME and XDG_CONFIG_HOME as they were when the session started, or move the files yourself"
                    .to_owned()
            }
        })
    }

    fn fix_command(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::Expired { name: session, context, .. }
            | Self::SelectionOver { name: session, context, .. } => {
                let session =
                    session.as_ref().map_or_else(String::new, |session| format!(" --name {session}"));
                let context =
                    context.as_ref().map_or_else(String::new, |context| format!(" --context {context}"));
                format!("{name} session start{session}{context}")
            }
            _ => return None,
        })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RevisionConflict { .. } => Some(Duration::ZERO),
            _ => None,
        }
    }
}

fn pids(pids: &[i32]) -> String {
    let words: Vec<String> = pids.iter().map(|pid| format!("pid {pid}")).collect();
    // Processes of other users or in other pid namespaces hold the lock without being visible in `/proc`.
    if words.is_empty() { "a hidden process".to_owned() } else { words.join(", ") }
}
