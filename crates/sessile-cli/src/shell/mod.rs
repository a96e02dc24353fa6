//! What shells are told: variables in their own notation, start-up files, and what runs before each prompt.

mod assertion;
mod hook;
mod startup;

use clap::ValueEnum;
use sessile::context::is_variable_name;
use sessile::tool::Change;

pub(crate) use assertion::{VARIABLES, assertion};
pub(crate) use hook::hook;
pub(crate) use startup::startup;

/// A shell whose notation is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// bash, and every shell with its quotes.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
}

impl Shell {
    /// The shell that a program is.
    pub(crate) fn of_program(program: &str) -> Option<Self> {
        match program.rsplit('/').next()? {
            "bash" => Some(Shell::Bash),
            "zsh" => Some(Shell::Zsh),
            "fish" => Some(Shell::Fish),
            _ => None,
        }
    }

    /// Text as one word of the shell, whatever is in it.
    pub(crate) fn quoted(self, text: &str) -> String {
        match self {
            Shell::Bash | Shell::Zsh => format!("'{}'", text.replace('\'', "'\\''")),
            Shell::Fish => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        }
    }

    /// The line that sets a variable, or takes it away.
    pub(crate) fn assign(self, name: &str, value: Option<&str>) -> String {
        match (self, value) {
            (Shell::Bash | Shell::Zsh, Some(value)) => format!("export {name}={}\n", self.quoted(value)),
            (Shell::Bash | Shell::Zsh, None) => format!("unset {name}\n"),
            (Shell::Fish, Some(value)) => format!("set -gx {name} {}\n", self.quoted(value)),
            (Shell::Fish, None) => format!("set -e {name}\n"),
        }
    }

    /// The script that makes these changes.
    pub(crate) fn script(self, changes: &[Change]) -> String {
        // A shell cannot name any other variable.
        let changes = changes.iter().filter(|change| is_variable_name(&change.name));
        changes.map(|change| self.assign(&change.name, change.value.as_deref())).collect()
    }
}
