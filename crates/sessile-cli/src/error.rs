//! What can end a call, and what is told about it.

use std::io;

use sessile::{App, Code, Error, Report, exit};

/// The end of a call that did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The library's error.
    Library(Error),
    /// The arguments could not be parsed.
    Arguments(Box<clap::Error>),
    /// Standard output could not be written.
    Output(io::Error),
    /// The result was printed and is itself bad news; nothing more is said.
    Told(u8),
    /// A command that runs another could not do its own part; the status tells the two apart.
    Own(Error),
    /// What a session service refused, in its own words.
    Service {
        /// What is told.
        report: Box<Report>,
        /// Whether a command that runs another failed by it.
        own: bool,
    },
    /// The command that was run took longer than it was given.
    TimedOut(std::time::Duration),
    /// The command that was to be run could not be started.
    NotStarted {
        /// The status.
        exit: u8,
        /// The command.
        program: String,
        /// Why.
        error: io::Error,
    },
}

/// The status when a command's time was up.
const TIMED_OUT: u8 = 124;

/// The status of a command that runs another, when the failure is its own.
const OWN_FAILURE: u8 = 125;

/// A command's result.
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
    AgentError,
    CommandError,
    ContextError,
    ConversationError,
    CredentialError,
    FileError,
    GuardError,
    HistoryError,
    LockError,
    ProjectError,
    RequestError,
    ServiceError,
    SessionError,
    SettingsError,
    StoreError,
    ToolError,
    UsageError,
    VaultError,
);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

impl Failure {
    /// The same as the failure of a command that runs another.
    pub(crate) fn into_own(self) -> Self {
        match self {
            Failure::Library(error) => Failure::Own(error),
            Failure::Service { report, .. } => Failure::Service { report, own: true },
            other => other,
        }
    }

    pub(crate) fn exit(&self) -> u8 {
        match self {
            Failure::Library(error) => error.code().exit(),
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
            Failure::Own(_) | Failure::Service { own: true, .. } => OWN_FAILURE,
            Failure::Service { report, .. } => report.code.exit(),
            Failure::TimedOut(_) => TIMED_OUT,
            Failure::NotStarted { exit, .. } => *exit,
        }
    }

    /// What is told about it; nothing if the output has said it or nobody is there to read it.
    pub(crate) fn report(&self, app: &App) -> Option<Report> {
        match self {
            Failure::Library(error) | Failure::Own(error) => Some(error.report(app)),
            Failure::Service { report, .. } => Some((**report).clone()),
            Failure::Arguments(error) => Some(arguments(error)),
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Failure::Output(error) => {
                let is_full = error.kind() == io::ErrorKind::StorageFull;
                let code = if is_full { Code::DiskFull } else { Code::Io };
                Some(Report::new(code, format!("cannot write the output: {error}")))
            }
            Failure::Told(_) => None,
            Failure::TimedOut(time) => {
                let time = sessile::duration::short(*time);
                Some(Report::new(
                    Code::TimedOut,
                    format!("the command was ended after {time}, as --timeout says"),
                ))
            }
            Failure::NotStarted { program, error, .. } => {
                let code =
                    if error.kind() == io::ErrorKind::NotFound { Code::FileNotFound } else { Code::Io };
                let mut report =
                    Report::new(code, format!("cannot run {}: {error}", sessile::text::quoted(program)));
                report.hint = Some("check its name, and that it is executable".to_owned());
                Some(report)
            }
        }
    }
}

/// clap's error, taken apart: the first paragraph is the message, tips and usage are the hint.
fn arguments(error: &clap::Error) -> Report {
    let text = error.render().to_string();
    let mut message = Vec::new();
    let mut hint = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix("error: ") {
            Some(first) => message.push(first),
            None if line.starts_with("tip: ") => hint.push(line.trim_start_matches("tip: ")),
            None if line.starts_with("Usage: ") => hint.push(line),
            None if line.starts_with("For more information") => hint.push("add --help for more"),
            None if hint.is_empty() => message.push(line),
            None => {}
        }
    }
    Report {
        hint: Some(hint.join("; ")).filter(|hint| !hint.is_empty()),
        ..Report::new(Code::Usage, message.join(" "))
    }
}
