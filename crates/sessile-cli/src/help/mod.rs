//! Help: the page of groups, the page of each command, and pieces that more than one command shows.
//!
//! clap renders the pages from the tree of commands. This module decides what a page leaves out: the global options, which
//! have a page of their own, and whatever only `--verbose` asks for.

mod groups;
mod page;
mod summary;

pub(crate) use page::{asked_page, called_path, named_page, start_page};

/// The origins of values, strongest first.
macro_rules! precedence {
    () => {
        "Precedence, strongest first:
  flag > environment > session > terminal > directory > context > user >
  system > default
  `sessile config show --effective --source` shows the origin of each value.\n"
    };
}

/// The precedence as a paragraph of a page.
pub(crate) const PRECEDENCE: &str = precedence!();

/// The examples of a command, and below them which value wins: wherever settings or the selected context matter.
macro_rules! examples_and_precedence {
    ($($line:literal)+) => {
        concat!("Examples:\n", $("  ", $line, "\n",)+ "\n", $crate::help::precedence!())
    };
}

/// The examples of a command.
macro_rules! examples {
    ($($line:literal)+) => { concat!("Examples:\n", $("  ", $line, "\n"),+) };
}

pub(crate) use {examples, examples_and_precedence, precedence};
