//! Pieces of help that more than one command shows.

/// Which value wins; shown wherever settings or the selected context matter.
pub(crate) const PRECEDENCE: &str = "\
Precedence, strongest first:
  flag > environment > session > terminal > directory > context > user > system > default
  `sessile config show --effective --source` tells where each value comes from.";

/// The examples of a command, and the precedence below them.
macro_rules! examples_and_precedence {
    ($($line:literal)+) => {
        concat!("Examples:\n", $("  ", $line, "\n",)+ "
Precedence, strongest first:
  flag > environment > session > terminal > directory > context > user > system > default
  `sessile config show --effective --source` tells where each value comes from.")
    };
}

/// The examples of a command.
macro_rules! examples {
    ($($line:literal)+) => { concat!("Examples:\n", $("  ", $line, "\n"),+) };
}

pub(crate) use {examples, examples_and_precedence};
