//! Failures of calls: exit statuses and reports.

use std::io;

use sessile::error::{Diagnostic, RunError};
use sessile::session::max_reached;
use sessile::{App, Code, Error, Report, exit};

use crate::error::{AgentError, CommandError, RequestError, ServiceError};

/// Failure of a call.
#[derive(Debug)]
pub enum Failure {
    /// Error of the library.
    Library(Error),
    /// Error of the command itself.
    Command(CommandError),
    /// Error of a request to a server.
    Request(RequestError),
    /// Error of an agent.
    Agent(AgentError),
    /// Error of the store, the users or the logins of the session service.
    Service(ServiceError),
    /// Arguments that could not be parsed.
    Arguments(Box<clap::Error>),
    /// Standard output that could not be written.
    Output(io::Error),
    /// Exit status of a result that was printed and is itself bad news; nothing more is reported.
    Told(u8),
    /// Command that an interrupt ended: this process ends by the same signal, so that a loop around it ends too.
    Interrupted,
    /// Failure of a command that runs another, in its own part: the exit status tells the two apart.
    Own(Box<Failure>),
    /// Finished report: a problem of a session service in its own words, or an error with a hint of the command.
    Remote(Box<Report>),
    /// Command that could not be started, with a report that says what was probably meant.
    NotStarted {
        /// The report.
        report: Box<Report>,
        /// Exit status, as shells give it.
        status: u8,
    },
    /// Timeout of the command that was run.
    TimedOut {
        /// The timeout.
        time: std::time::Duration,
        /// Exit status of the command that was ended.
        status: u8,
    },
    /// A command was ended because its session reached its maximum lifetime.
    MaxReached {
        /// Name or id of the session.
        session: String,
        /// Maximum lifetime.
        max_ms: i64,
        /// Exit status of the command, as its caller sees it where no parent stays with it.
        status: u8,
    },
}

/// Command that was probably meant instead of one that was not found.
#[derive(Debug)]
pub(crate) struct CommandHint {
    /// The hint.
    pub(crate) text: String,
    /// Command that can be pasted.
    pub(crate) command: String,
}

/// Exit status if the command was found but could not be executed.
const NOT_EXECUTABLE: u8 = 126;

/// Exit status if the command was not found.
const NOT_FOUND: u8 = 127;

/// Exit status after the timeout of a command.
const TIMED_OUT: u8 = 124;

/// Exit status of a command that an interrupt ended.
const INTERRUPTED: u8 = 130;

/// Exit status of a command that runs another, if the failure is its own.
const OWN_FAILURE: u8 = 125;

/// Result of a command.
pub(crate) type Outcome = Result<(), Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Library(error)
    }
}

macro_rules! from_areas {
    ($($area:ident),+ $(,)?) => {$(
        impl From<sessile::error::$area> for Failure {
            fn from(error: sessile::error::$area) -> Self {
                Failure::Library(error.into())
            }
        }
    )+};
}

from_areas!(
    ContextError,
    ConversationError,
    CredentialError,
    FileError,
    GuardError,
    HistoryError,
    LockError,
    ProjectError,
    RunError,
    SessionError,
    SettingsError,
    StoreError,
    ToolError,
    UsageError,
    VaultError,
);

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        Failure::Command(error)
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        Failure::Request(error)
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        Failure::Agent(error)
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Failure::Service(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

impl Failure {
    /// The same as the failure of a command that runs another.
    pub(crate) fn into_own(self) -> Self {
        match self {
            Failure::Remote(_) => Failure::Own(Box::new(self)),
            // The status of a shell tells that the command itself is the problem.
            _ if self.start_error().is_some() => self,
            _ if self.diagnostic().is_some() => Failure::Own(Box::new(self)),
            other => other,
        }
    }

    /// The error of an area, if the failure is one.
    fn diagnostic(&self) -> Option<&dyn Diagnostic> {
        match self {
            Failure::Library(error) => Some(error.diagnostic()),
            Failure::Command(error) => Some(error),
            Failure::Request(error) => Some(error),
            Failure::Agent(error) => Some(error),
            Failure::Service(error) => Some(error),
            _ => None,
        }
    }

    /// The library's error, if the failure is one.
    pub(crate) fn library_error(&self) -> Option<&Error> {
        match self {
            Failure::Library(error) => Some(error),
            Failure::Own(failure) => failure.library_error(),
            _ => None,
        }
    }

    /// The failure with a better hint, if it is a command that was not found.
    pub(crate) fn with_command_hint(self, app: &App, hint: impl FnOnce() -> Option<CommandHint>) -> Self {
        let is_missing = self.start_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
        let Some(hint) = is_missing.then(hint).flatten() else { return self };
        let Some(report) = self.report(app) else { return self };
        let (hint, fix_command) = (Some(hint.text), Some(hint.command));
        Failure::NotStarted { report: Box::new(Report { hint, fix_command, ..report }), status: self.exit() }
    }

    /// Error of the operating system for a command that could not be started.
    fn start_error(&self) -> Option<&io::Error> {
        match self {
            Failure::Library(Error::Run(RunError::NotStarted { source, .. })) => Some(source),
            _ => None,
        }
    }

    /// Whether an error on this machine kept the command from running.
    pub(crate) fn is_before_start(&self) -> bool {
        match self {
            Failure::Own(failure) => failure.is_before_start(),
            other => other.diagnostic().is_some(),
        }
    }

    /// Exit status of the call.
    pub(crate) fn exit(&self) -> u8 {
        match self {
            Failure::Arguments(error) => {
                if error.use_stderr() {
                    exit::USAGE
                } else {
                    exit::DONE
                }
            }
            // Whoever closed the pipe has read enough.
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::DONE,
            Failure::Output(_) => exit::FAILED,
            Failure::Told(exit) => *exit,
            Failure::Interrupted => INTERRUPTED,
            Failure::Own(_) => OWN_FAILURE,
            Failure::Remote(report) => report.code.exit(),
            Failure::NotStarted { status, .. } => *status,
            Failure::TimedOut { .. } => TIMED_OUT,
            Failure::MaxReached { status, .. } => *status,
            Failure::Library(_)
            | Failure::Command(_)
            | Failure::Request(_)
            | Failure::Agent(_)
            | Failure::Service(_) => match self.start_error() {
                // As shells do: 127 if it was not found, 126 if it could not be executed.
                Some(error) if error.kind() == io::ErrorKind::NotFound => NOT_FOUND,
                Some(_) => NOT_EXECUTABLE,
                None => self.diagnostic().map_or(exit::FAILED, |error| error.code().exit()),
            },
        }
    }

    /// Report of the failure; none if the output has it already or its reader has closed the pipe.
    pub(crate) fn report(&self, app: &App) -> Option<Report> {
        match self {
            Failure::Library(_)
            | Failure::Command(_)
            | Failure::Request(_)
            | Failure::Agent(_)
            | Failure::Service(_) => self.diagnostic().map(|error| Report::of(error, app)),
            Failure::Own(failure) => failure.report(app),
            Failure::Remote(report) | Failure::NotStarted { report, .. } => Some((**report).clone()),
            Failure::Arguments(error) => Some(arguments(error)),
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Failure::Output(error) => {
                let is_full = error.kind() == io::ErrorKind::StorageFull;
                let code = if is_full { Code::DiskFull } else { Code::Io };
                Some(Report::new(code, format!("cannot write the output: {error}")))
            }
            Failure::Told(_) | Failure::Interrupted => None,
            Failure::MaxReached { session, max_ms, .. } => {
                let message = format!("{}; stopped the command", max_reached(session, *max_ms));
                Some(Report::new(Code::TimedOut, message))
            }
            Failure::TimedOut { time, .. } => {
                let time = sessile::duration::short(*time);
                Some(Report::new(Code::TimedOut, format!("the command timed out after {time} (--timeout)")))
            }
        }
    }
}

/// Report of clap's error: the first paragraph is the message, tips and usage are the hint.
pub(crate) fn arguments(error: &clap::Error) -> Report {
    let text = error.render().to_string();
    let mut message = Vec::new();
    let mut hint = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix("error: ") {
            Some(first) => message.push(first),
            None if line.starts_with("tip: ") => hint.push(line.trim_start_matches("tip: ")),
            None if line.starts_with("Usage: ") => hint.push(line),
            None if line.starts_with("For more information") => hint.push("add --help for details"),
            // clap breaks long messages into lines, and lists missing arguments below.
            None if hint.is_empty() => message.push(line),
            None => {}
        }
    }
    Report {
        hint: Some(hint.join("; ")).filter(|hint| !hint.is_empty()),
        ..Report::new(Code::Usage, message.join(" "))
    }
}
