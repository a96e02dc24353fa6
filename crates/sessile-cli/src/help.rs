//! Pieces of help that more than one command shows.

/// The examples of a command, and below them which value wins: wherever settings or the selected context matter.
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
