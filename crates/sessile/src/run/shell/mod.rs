//! Shells in a session: variables in their notation, and start-up files that keep them in it.

mod files;
mod startup;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::context::is_variable_name;
use crate::run::VariableChange;

pub(super) use files::{SHELL_FILE_VARIABLES, shell_files};
pub use startup::{ShellStartup, startup};

/// Shell whose notation is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shell {
    /// bash, and every shell with its quotes.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
}

impl Shell {
    /// The shell that a program is.
    pub fn of_program(program: &str) -> Option<Self> {
        match program.rsplit('/').next()? {
            "bash" => Some(Shell::Bash),
            "zsh" => Some(Shell::Zsh),
            "fish" => Some(Shell::Fish),
            _ => None,
        }
    }

    /// Text quoted as one word of the shell.
    pub fn quoted(self, text: &str) -> String {
        match self {
            // Single quotes protect everything but themselves.
            Shell::Bash | Shell::Zsh => format!("'{}'", text.replace('\'', "'\\''")),
            // fish also reads a backslash inside single quotes.
            Shell::Fish => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        }
    }

    /// The line that sets a variable, or takes it away.
    pub fn assign(self, name: &str, value: Option<&str>) -> String {
        match (self, value) {
            (Shell::Bash | Shell::Zsh, Some(value)) => format!("export {name}={}\n", self.quoted(value)),
            (Shell::Bash | Shell::Zsh, None) => format!("unset {name}\n"),
            (Shell::Fish, Some(value)) => format!("set -gx {name} {}\n", self.quoted(value)),
            (Shell::Fish, None) => format!("set -e {name}\n"),
        }
    }

    /// The script that makes these changes.
    pub fn script(self, changes: &[VariableChange]) -> String {
        // A shell cannot name any other variable.
        let changes = changes.iter().filter(|change| is_variable_name(&change.name));
        changes.map(|change| self.assign(&change.name, change.value.as_deref())).collect()
    }
}
