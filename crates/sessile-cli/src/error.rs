//! What can end a call, and how it is told: a line for people, or one line of JSON.

use std::io;

use serde_json::{Value, json};
use sessile::text::{shown, shown_lines};
use sessile::{App, Code, Error, exit};

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

/// A failure in the words of the output contract.
pub(crate) struct Told {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) fix_command: Option<String>,
    pub(crate) retry_after_ms: Option<u128>,
    /// The line of a file that the message is about, with the column.
    pub(crate) excerpt: Option<(usize, usize, String)>,
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

    pub(crate) fn told(&self, app: &App) -> Option<Told> {
        match self {
            Failure::Library(error) => Some(Told {
                code: error.code(),
                message: error.to_string(),
                hint: error.hint(app),
                fix_command: error.fix_command(app),
                retry_after_ms: error.retry_after().map(|time| time.as_millis()),
                excerpt: error
                    .place()
                    .filter(|place| !place.text.is_empty())
                    .map(|place| (place.line, place.column, place.text.clone())),
            }),
            Failure::Arguments(error) => Some(arguments(error)),
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Failure::Output(error) => Some(Told {
                code: if error.kind() == io::ErrorKind::StorageFull { Code::DiskFull } else { Code::Io },
                message: format!("cannot write the output: {error}"),
                hint: None,
                fix_command: None,
                retry_after_ms: None,
                excerpt: None,
            }),
            Failure::Told(_) => None,
        }
    }
}

/// clap's error, taken apart: the first paragraph is the message, tips and usage are the hint.
fn arguments(error: &clap::Error) -> Told {
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
    Told {
        code: Code::Usage,
        message: message.join(" "),
        hint: Some(hint.join("; ")).filter(|hint| !hint.is_empty()),
        fix_command: None,
        retry_after_ms: None,
        excerpt: None,
    }
}

impl Told {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "error": {
            "code": self.code.as_str(),
            "message": self.message,
            "exit_code": self.code.exit(),
            "retryable": self.code.retryable(),
            "retry_after_ms": self.retry_after_ms.map(|millis| u64::try_from(millis).unwrap_or(u64::MAX)),
            "hint": self.hint,
            "fix_command": self.fix_command,
        }})
    }

    /// The text for people, with the labels handed in so that they can be coloured.
    pub(crate) fn to_text(&self, error_label: &str, hint_label: &str) -> String {
        let mut text = format!("{error_label} {}\n", shown_lines(&self.message));
        if let Some((line, column, excerpt)) = &self.excerpt {
            let margin = " ".repeat(line.to_string().len());
            let pointer = " ".repeat(column.saturating_sub(1));
            text.push_str(&format!("{margin} |\n{line} | {}\n{margin} | {pointer}^\n", shown(excerpt)));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("{hint_label} {}\n", shown_lines(hint)));
        }
        text
    }
}
