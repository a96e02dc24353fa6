//! Errors of sessions and their state.

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
    #[error("session {} {}", quoted(session), if *ended { "was ended" } else { "has expired" })]
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
    /// No session in force.
    #[error("{0} needs a session, and none is in force here")]
    Required(String),
    /// An id that is too short.
    #[error("more than one session has an id that begins with {}", quoted(.0))]
    Ambiguous(String),
    /// The name is taken.
    #[error("a live session is named {} already", quoted(.0))]
    Exists(String),
    /// Another context was asked for.
    #[error(
        "session {} is pinned to {}, and {} was asked for",
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
    #[error("session {} is not stopped: {} still run(s) in it", quoted(session), pids(left))]
    StopFailed {
        /// The session.
        session: String,
        /// Processes that still run.
        left: Vec<i32>,
    },
    /// Someone else was quicker.
    #[error(
        "{}: revision {expected} was expected, and it is {}",
        quoted(key),
        found.map_or_else(|| "not there".to_owned(), |found| format!("at {found}"))
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
    #[error("{} cannot be used as a room: {reason}", shown(path.display()))]
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

impl Diagnostic for SessionError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound(_) => Code::SessionNotFound,
            Self::Expired { .. } => Code::SessionExpired,
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
            Self::NotFound(_) => format!("`{name} session list` shows those there are"),
            Self::Expired { .. } => {
                let start = self.fix_command(app).unwrap_or_default();
                format!("start a new one: {start}; `{name} run` and `{name} shell` do so with --new")
            }
            Self::Required(_) => {
                format!("name one with --session or {prefix}_SESSION; `{name} session list` shows them")
            }
            Self::Ambiguous(_) => "give more of the id, or the name".to_owned(),
            Self::Exists(_) => {
                format!("choose another name, or work in it: --session, {prefix}_SESSION")
            }
            Self::ContextFixed { .. } => {
                "a session never changes its context: start another session".to_owned()
            }
            Self::StopFailed { .. } => "end it by hand, then stop the session again".to_owned(),
            Self::RevisionConflict { .. } => "read it again and decide anew".to_owned(),
            Self::RefusedInside { instead, .. } => (*instead).to_owned(),
            Self::UnsafeRoom { .. } => "look who made it, and remove it".to_owned(),
            Self::ForeignTarget { .. } => {
                "set HOME and XDG_CONFIG_HOME as they were when the session started, or move the files yourself"
                    .to_owned()
            }
        })
    }

    fn fix_command(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::Expired { name: session, context, .. } => {
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
    if words.is_empty() { "a process that cannot be seen".to_owned() } else { words.join(", ") }
}
