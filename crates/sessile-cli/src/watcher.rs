//! Limits of a session's life around a command: the parent that stays, and the watcher beside a command that replaced this
//! program.
//!
//! A deadline within [`NEAR`] keeps this program as the command's parent, which ends the command exactly then and exits with 124.
//! A command with a later deadline takes the place of this program, and a watcher process is started beside it unless the
//! session has one (see `sessile::session::RoomWatch`). The watcher is a grandchild in a session of its own, with no descriptor of
//! the caller: the command has no child that it did not start, Ctrl-C does not reach the watcher, and no pipe stays open.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sessile::World;
use sessile::run::{RunSession, RunSessionArgs};
use sessile::session::{MaxAction, RoomWatch, Session};

use crate::error::{Failure, Outcome};

/// Name that the program has for itself as a watcher.
pub(crate) const PROGRAM: &str = "sessile-watch";

/// Second name: that of the process that stays.
const DETACHED: &str = "detached";

/// Time to a session's end within which a parent stays with a command.
const NEAR: Duration = Duration::from_secs(10 * 60);

/// Limit that a session's life sets to a command.
pub(crate) struct LifeLimit {
    watch: RoomWatch,
    label: String,
    max_ms: i64,
    /// Time until the end, if commands are ended then.
    remaining: Option<Duration>,
}

impl LifeLimit {
    /// Limit of a command in a session.
    pub(crate) fn new(session: &Session, world: &World, action: MaxAction) -> Self {
        let remaining = session.remaining_life(world);
        LifeLimit {
            watch: session.watch(world, action),
            label: session.label().to_owned(),
            max_ms: session.max_ms,
            remaining: Some(remaining).filter(|_| action == MaxAction::End),
        }
    }

    /// Limit of a command that `run` or `shell` prepares.
    pub(crate) fn of(run: &RunSession<'_>, args: &RunSessionArgs) -> Result<Self, Failure> {
        Ok(LifeLimit::new(run.session(), run.state().world(), run.max_action(args)?))
    }

    /// Whether the end is so near that a parent stays with the command.
    pub(crate) fn is_near(&self) -> bool {
        self.remaining.is_some_and(|remaining| remaining <= NEAR)
    }

    /// Time after which a parent ends the command, by its own timeout or the session's life.
    pub(crate) fn timeout(&self, timeout: Option<Duration>) -> Option<Duration> {
        timeout.into_iter().chain(self.remaining).min()
    }

    /// Outcome of a command that a parent ended: the session's end, if that came before its own timeout.
    pub(crate) fn explain(&self, ended: Outcome, timeout: Option<Duration>) -> Outcome {
        match (ended, self.remaining) {
            (Err(Failure::TimedOut(_)), Some(left)) if timeout.is_none_or(|timeout| left < timeout) => {
                Err(Failure::MaxReached { session: self.label.clone(), max_ms: self.max_ms })
            }
            (ended, _) => ended,
        }
    }

    /// Starts the session's watcher, unless there is one. If that fails, the session's idle time counts from the last use that is
    /// known.
    pub(crate) fn start_watcher(&self) -> Option<Child> {
        if self.watch.is_watched() {
            return None;
        }
        let program = std::env::current_exe().ok()?;
        spawn(program, None, &self.watch.to_args())
    }
}

fn spawn(program: impl Into<OsString>, mode: Option<&str>, args: &[String]) -> Option<Child> {
    let mut command = Command::new(program.into());
    // The caller's variables may hold secrets, and its directory must not stay in use.
    command.arg0(PROGRAM).args(mode).args(args).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}

/// Waits until a watcher has detached itself.
pub(crate) fn detach(watcher: Option<Child>) {
    // Reaped here, because the command takes this process's place and would have a zombie for a child.
    let _ = watcher.map(|mut child| child.wait());
}

/// The program as a watcher.
pub(crate) fn main(args: impl Iterator<Item = OsString>) -> u8 {
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    match args.split_first() {
        Some((mode, args)) if mode == DETACHED => {
            let watched = RoomWatch::of_args(args).map(|watch| watch.run(&World::from_process()));
            u8::from(!matches!(watched, Some(Ok(()))))
        }
        _ => {
            // The terminal's signals are for the command.
            let _ = rustix::process::setsid();
            sessile::process::close_inherited();
            let started =
                std::env::current_exe().ok().and_then(|program| spawn(program, Some(DETACHED), &args));
            u8::from(started.is_none())
        }
    }
}
