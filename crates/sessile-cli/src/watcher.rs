//! Limits of a session's life around a command: the parent that stays, and the watcher beside a command that replaced this
//! program.
//!
//! With a deadline within [`NEAR`] this program stays as the command's parent. It ends the command at the deadline
//! and exits with the status that a watcher would cause: 143 after SIGTERM, 137 after SIGKILL. A command with a later
//! deadline replaces this program, and a watcher process is started beside it unless the session has one (see
//! `sessile::session::RoomWatch`). The watcher is a grandchild in a session of its own, with no descriptor of the
//! caller. So the command has no child that it did not start, Ctrl-C does not reach the watcher, and no pipe stays
//! open.
//!
//! A second kind of watcher waits for the end of the approval that opened the session's context (see
//! `sessile::session::ApprovalWatch`), whether a parent stays with the command or not. A hooked shell and a call that printed
//! the session's variables start one too.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sessile::call::ConfigSource;
use sessile::context::{Context, Guard};
use sessile::names::ContextName;
use sessile::run::{RunSession, RunSessionArgs};
use sessile::secrets::looks_secret;
use sessile::session::{ApprovalWatch, MaxAction, RoomWatch, Session};
use sessile::{State, StateArgs, World};

use crate::error::{Failure, Outcome};
use crate::settings::app;

/// Process name of a watcher.
pub(crate) const PROGRAM: &str = "sessile-watch";

/// Second name: that of the process that stays.
const DETACHED: &str = "detached";

/// First argument of a watcher of an approval.
const APPROVAL: &str = "approval";

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
            (Err(Failure::TimedOut { status, .. }), Some(left))
                if timeout.is_none_or(|timeout| left < timeout) =>
            {
                Err(Failure::MaxReached { session: self.label.clone(), max_ms: self.max_ms, status })
            }
            (ended, _) => ended,
        }
    }

    /// Starts the session's watcher, unless one runs. If that fails, the session's idle time counts from the last
    /// recorded use.
    pub(crate) fn start_watcher(&self) -> Option<Child> {
        if self.watch.is_watched() {
            return None;
        }
        let program = std::env::current_exe().ok()?;
        watcher(program, None, &self.watch.to_args()).spawn().ok()
    }
}

/// Starts a watcher of the approval that opens the context of a command, unless the session has one.
pub(crate) fn watch_approval(run: &RunSession<'_>) -> Result<(), Failure> {
    let context = run.state().context()?.filter(|context| context.guard == Guard::Approval);
    if let Some(context) = context {
        watch_context(run.state(), run.session(), context);
    }
    Ok(())
}

/// The same for a shell that the hook brought into a session: it may be idle when the approval ends.
pub(crate) fn watch_shell_approval(state: &State, session: &Session) -> Result<(), Failure> {
    let Some(name) = &session.context else { return Ok(()) };
    match state.contexts().find(&name.parse::<ContextName>()?)? {
        Some(context) if context.guard == Guard::Approval => watch_context(state, session, &context),
        _ => {}
    }
    Ok(())
}

fn watch_context(state: &State, session: &Session, context: &Context) {
    let watch = ApprovalWatch::new(session, context.name.clone());
    if watch.is_watched() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let args: Vec<String> = [APPROVAL.to_owned()].into_iter().chain(watch.to_args()).collect();
    let mut command = watcher(program, None, &args);
    // It finds the state and the tools' own files as this call does, and belongs to no session.
    let app = state.app();
    let own = ["SESSION", "CONTEXT", "CREDENTIAL"].map(|name| app.variable(name));
    let is_left_out = |name: &str| own.iter().any(|own| own == name) || looks_secret(name);
    let variables = state.world().variables();
    command.envs(variables.filter(|(name, _)| !name.to_str().is_some_and(is_left_out)));
    if let ConfigSource::File(file) = state.source() {
        command.env(app.variable("CONFIG"), file);
    }
    if let Some(cwd) = state.world().cwd() {
        command.current_dir(cwd);
    }
    detach(command.spawn().ok());
}

/// The program as a watcher, without variables.
fn watcher(program: impl Into<OsString>, mode: Option<&str>, args: &[String]) -> Command {
    let mut command = Command::new(program.into());
    // The caller's variables may hold secrets, and its directory must not stay in use.
    command.arg0(PROGRAM).args(mode).args(args).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
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
        Some((mode, args)) if mode == DETACHED => u8::from(!run_detached(args)),
        _ => {
            // The terminal's signals are for the command.
            let _ = rustix::process::setsid();
            sessile::process::close_inherited();
            let Ok(program) = std::env::current_exe() else { return 1 };
            let mut command = watcher(program, Some(DETACHED), &args);
            if args.first().is_some_and(|mode| mode == APPROVAL) {
                let world = World::from_process();
                command.envs(world.variables());
                let _ = world.cwd().map(|dir| command.current_dir(dir));
            }
            u8::from(command.spawn().is_err())
        }
    }
}

/// Watches what the arguments say. Returns whether that succeeded.
fn run_detached(args: &[String]) -> bool {
    let world = World::from_process();
    let watched = match args.split_first() {
        Some((mode, args)) if mode == APPROVAL => {
            // It may wait for hours, and the caller's directory must not stay in use.
            let _ = rustix::process::chdir("/");
            ApprovalWatch::of_args(args)
                .map(|watch| watch.run(|| State::open(&app(), world.clone(), StateArgs::default())))
        }
        _ => RoomWatch::of_args(args).map(|watch| watch.run(&app(), &world)),
    };
    matches!(watched, Some(Ok(())))
}
