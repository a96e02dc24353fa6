//! Commands that are ready to start in their session.
//!
//! Arguments and values reach a command as they are: no shell evaluates them. The guard is checked last, because the
//! approval may have expired or the context's file may have changed while the command waited for a lock, a room or a
//! credential. Without the guard `approval` and without a wait this check reads nothing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::error::{Error, Result, RunError};
use crate::run::{RunRequest, RunSession};
use crate::session::room::Presence;
use crate::state::State;
use crate::vault::TokenRefresher;

/// Command in a session, with its variables. While it exists, the session is busy.
pub struct IsolatedCommand<'a> {
    guard: GuardCheck<'a>,
    presence: Presence,
    command: Command,
}

/// Last check before a command starts: the guard of its context. A command that passes it is logged.
#[derive(Clone, Copy)]
pub struct GuardCheck<'a> {
    run: &'a RunSession<'a>,
    words: &'a [OsString],
    has_credentials: bool,
}

impl GuardCheck<'_> {
    /// Fails if the context may no longer be used: its approval may have expired during the wait for a lock or a
    /// credential.
    pub fn check(&self, has_waited: bool) -> Result<()> {
        // Reading a credential can take as long as a helper or a login takes.
        self.run.state().contexts().recheck(has_waited || self.has_credentials)?;
        // The room of a session for one command goes with the command, and its log with it.
        if !self.run.is_ephemeral() {
            self.run.session().room().log_command(self.run.state().world(), self.words);
        }
        Ok(())
    }
}

impl<'a> IsolatedCommand<'a> {
    pub(super) fn new(
        run: &'a RunSession<'a>,
        presence: Presence,
        words: &'a [OsString],
        variables: BTreeMap<OsString, OsString>,
        has_credentials: bool,
    ) -> Self {
        let (program, arguments) =
            words.split_first().map_or((OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
        let mut command = Command::new(program);
        // The variables are complete; those that the process itself inherited must not be added.
        command.args(arguments).env_clear().envs(variables);
        // If that fails the command runs all the same; this process keeps the session busy for it.
        let _ = presence.descriptor().map(|lock| fcntl_setfd(lock, FdFlags::empty()));
        IsolatedCommand { guard: GuardCheck { run, words, has_credentials }, presence, command }
    }

    /// Sets one more variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: String) -> Self {
        self.command.env(name, value);
        self
    }

    /// Check of the guard, for a caller that starts the command by its own means.
    pub fn guard(&self) -> GuardCheck<'a> {
        self.guard
    }

    /// The command for a caller that starts it by its own means, after [`GuardCheck::check`]. The session is busy as
    /// long as the presence or the started command lives.
    pub fn into_parts(self) -> (Command, Presence) {
        (self.command, self.presence)
    }

    /// Checks the guard and becomes the command. Returns only if that fails.
    pub fn exec(mut self) -> Result<Infallible> {
        // `exec` waits for nothing itself; a caller that does uses `guard` and `into_parts`.
        self.guard.check(false)?;
        tracing::info!(program = %self.command.get_program().display(), "executing command");
        self.guard.run.state().save_answers();
        let source = self.command.exec();
        Err(not_started(&self.command, source))
    }

    /// Checks the guard, starts the command and waits for its end.
    pub fn status(mut self) -> Result<ExitStatus> {
        self.guard.check(false)?;
        self.command.status().map_err(|source| not_started(&self.command, source))
    }
}

fn not_started(command: &Command, source: std::io::Error) -> Error {
    RunError::NotStarted { program: command.get_program().to_string_lossy().into_owned(), source }.into()
}

/// Becomes a command in its session; where that would leave a session behind that is for the command alone, use
/// [`status`]. Returns only if the command cannot be started.
pub fn exec(state: &State, request: &RunRequest<'_>, renew: &dyn TokenRefresher) -> Result<Infallible> {
    let run = RunSession::open(state, request)?;
    let failed = isolate(state, &run, request, renew).and_then(IsolatedCommand::exec);
    // `exec` returns on failure only: a session that was started for the command has no other use.
    close(state, &run, false);
    failed
}

/// Runs a command in its session to its end. A session for the command alone ends with it.
pub fn status(state: &State, request: &RunRequest<'_>, renew: &dyn TokenRefresher) -> Result<ExitStatus> {
    let run = RunSession::open(state, request)?;
    let status = isolate(state, &run, request, renew).and_then(IsolatedCommand::status);
    close(state, &run, status.is_ok());
    status
}

fn close(state: &State, run: &RunSession<'_>, has_run: bool) {
    if let Err(error) = run.close(has_run) {
        // A warning and not an error: the result of the command must not be lost.
        state.warn(format!("session {} is not removed: {error}", run.session().id), None);
    }
}

/// Prepares a command; warnings of its session are added to those of the call.
fn isolate<'a>(
    state: &State,
    run: &'a RunSession<'a>,
    request: &'a RunRequest<'_>,
    renew: &dyn TokenRefresher,
) -> Result<IsolatedCommand<'a>> {
    let prepared = run.prepare(request)?;
    let variables = prepared.variables(renew)?;
    // A session that exists shares the state of the call, whose warnings are there already.
    if !std::ptr::eq(state, run.state()) {
        for warning in run.state().take_warnings() {
            state.warn(warning.message, warning.hint);
        }
    }
    Ok(prepared.into_command(request.words, variables))
}
