//! Commands whose arguments are built only when they are the one that was called.
//!
//! clap builds the whole tree before it parses; with every command's flags in it that alone would cost the hot
//! commands a third of their budget.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};

/// A command with arguments, built when called.
#[derive(Debug)]
pub struct Lazy<T>(pub T);

impl<T: Args> Args for Lazy<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for Lazy<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Lazy)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// A group of commands, built when called.
#[derive(Debug)]
pub struct LazyGroup<T>(pub T);

impl<T: Subcommand> Args for LazyGroup<T> {
    fn augment_args(command: Command) -> Command {
        command.subcommand_required(true).defer(T::augment_subcommands)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_subcommands_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for LazyGroup<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(LazyGroup)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
