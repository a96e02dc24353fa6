//! Watching the approval of a guarded context that opened the room of a session.
//!
//! Revoking an approval withdraws its targets at once, in the revoking call. An approval expires without a call. So a
//! process (`watcher.rs` of the program) waits for the expiry, removes the targets from the room's copies, and reports it on
//! standard error of what runs there. It waits also while nothing runs: shells that evaluated the variables of the session
//! use the copies without a call. It reads the store once a minute, and finds an approval that was extended or revoked.
//!
//! The watcher never takes the room's lock, so that an ephemeral session can end at once.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::app::App;
use crate::context::approval;
use crate::error::Result;
use crate::names::ContextName;
use crate::session::watch::write_to_stderr_of;
use crate::session::{Room, Session};
use crate::state::State;
use crate::text::quoted;

/// Longest time between two looks at the room.
const POLL: Duration = Duration::from_secs(2);

/// Longest time between two looks at the approval. The machine may sleep meanwhile.
const CHECK: Duration = Duration::from_secs(60);

/// Lock file of the watcher in the room.
const LOCK: &str = "approval-watch";

/// Room whose approval is watched.
#[derive(Clone, Debug)]
pub struct ApprovalWatch {
    room: Room,
    label: String,
    context: ContextName,
}

impl ApprovalWatch {
    /// Watch of a session whose context has been approved.
    pub fn new(session: &Session, context: ContextName) -> Self {
        ApprovalWatch { room: session.room().clone(), label: session.label().to_owned(), context }
    }

    /// Arguments from which [`ApprovalWatch::of_args`] makes the same watch in another process.
    pub fn to_args(&self) -> [String; 3] {
        let room = self.room.dir().to_string_lossy().into_owned();
        [room, self.label.clone(), self.context.to_string()]
    }

    /// Watch from its arguments.
    pub fn of_args(args: &[String]) -> Option<Self> {
        let [dir, label, context] = args else { return None };
        let room = Room::at(PathBuf::from(dir));
        Some(ApprovalWatch { room, label: label.clone(), context: context.parse().ok()? })
    }

    /// Whether a process watches the room's approval.
    pub fn is_watched(&self) -> bool {
        matches!(self.room.try_watch(LOCK, false), Ok(None))
    }

    /// Watches until the room is removed, or the approval has expired and its targets are withdrawn. Returns at once if
    /// another process watches. `open` opens the state again, because another process may have changed it.
    pub fn run(&self, open: impl Fn() -> Result<State>) -> Result<()> {
        loop {
            let Some(watch) = self.room.try_watch(LOCK, true)? else { return Ok(()) };
            while let Some(left) = self.time_left(&open()?)? {
                if !self.exists_for(left.min(CHECK)) {
                    return Ok(());
                }
            }
            let state = open()?;
            if state.withdraw_unapproved(Some(&self.context))? > 0 {
                self.announce(state.app());
            }
            drop(watch);
            // A command with a new approval may have found this watcher in its last moment.
            if self.time_left(&open()?)?.is_none() {
                return Ok(());
            }
        }
    }

    /// Time until the last valid approval expires; `None` without one.
    fn time_left(&self, state: &State) -> Result<Option<Duration>> {
        let Some(context) = state.contexts().find(&self.context)? else { return Ok(None) };
        Ok(approval::in_force_of(state, &context)?.iter().map(|approval| approval.time_left).max())
    }

    /// Waits for a time. Returns `false` as soon as the room is removed.
    fn exists_for(&self, time: Duration) -> bool {
        let begun = Instant::now();
        loop {
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(POLL));
            if !self.room.dir().is_dir() {
                return false;
            }
        }
    }

    fn announce(&self, app: &App) {
        let (context, session) = (quoted(self.context.as_str()), quoted(&self.label));
        let message = format!(
            "{}: the approval of context {context} ended; its targets were removed from session {session}\n",
            app.name()
        );
        let running: Vec<i32> = self.room.running().iter().map(|running| running.process.pid).collect();
        for pid in &running {
            write_to_stderr_of(*pid, &message);
        }
        for pid in self.room.hooked_shells().into_iter().filter(|_| running.is_empty()) {
            // Below the prompt that waits for input.
            write_to_stderr_of(pid, &format!("\n{message}"));
        }
    }
}
