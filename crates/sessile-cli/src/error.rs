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
}

/// A command's result.
pub(crate) type Outcome = Result<(), Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Library(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

impl Failure {
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
        }
    }

    /// What is told about it; nothing if the output has said it or nobody is there to read it.
    pub(crate) fn report(&self, app: &App) -> Option<Report> {
        match self {
            Failure::Library(error) => Some(error.report(app)),
            Failure::Arguments(error) => Some(arguments(error)),
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Failure::Output(error) => {
                let is_full = error.kind() == io::ErrorKind::StorageFull;
                let code = if is_full { Code::DiskFull } else { Code::Io };
                Some(Report::new(code, format!("cannot write the output: {error}")))
            }
            Failure::Told(_) => None,
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
