//! Parsing of the command line.

use std::ffi::OsString;

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Subcommand};
use sessile::args::{Color, OutputFormat};
use sessile::{StateArgs, World};

use crate::cli::{Cli, Command};
use crate::effects::{self, CommandEntry};
use crate::logging::LogArgs;
use crate::output::Output;

/// A command line that was understood.
#[derive(Debug)]
pub(crate) struct ParsedLine {
    pub(crate) cli: Cli,
    /// The row of its command; none without a command.
    pub(crate) entry: Option<&'static CommandEntry>,
}

/// Whether the parser's trees are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterUse {
    /// Leak them: the process ends soon, and dropping them would cost half as much as parsing.
    Leak,
    /// Drop them, in a process that continues.
    Drop,
}

impl AfterUse {
    fn dispose<T>(self, tree: T) {
        match self {
            AfterUse::Leak => std::mem::forget(tree),
            AfterUse::Drop => drop(tree),
        }
    }
}

/// Parses the arguments: with a tree that holds the called command alone, which is what a hot command can afford,
/// and with the whole one for help, suggestions and errors.
pub(crate) fn parse(args: &[OsString], after_use: AfterUse) -> Result<ParsedLine, clap::Error> {
    let expanded = expanded(args);
    let args = expanded.as_deref().unwrap_or(args);
    // Defining the global flags and handing their values on to the command is half the work of parsing.
    let globals = if args.iter().skip(1).any(is_flag) { GlobalFlags::Parse } else { GlobalFlags::None };
    let tree = pruned(args, globals, after_use);
    if let Some(parsed) = tree.and_then(|tree| parse_with(tree, args, globals, after_use).ok()) {
        return Ok(parsed);
    }
    parse_with(Cli::command(), args, GlobalFlags::Parse, after_use)
}

/// Whether a tree has the global flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GlobalFlags {
    Parse,
    /// The line has no flag.
    None,
}

fn is_flag(arg: &OsString) -> bool {
    arg.as_encoded_bytes().starts_with(b"-")
}

/// Alias of a command in another group, and the words of that command.
pub(crate) const USE: &str = "use";
pub(crate) const USE_PATH: [&str; 2] = ["context", "use"];

/// The arguments with `use` and `config --show-origin` expanded to their commands.
fn expanded(args: &[OsString]) -> Option<Vec<OsString>> {
    let [program, first, rest @ ..] = args else { return None };
    let path = match first.to_str()? {
        USE => USE_PATH,
        "config" if rest.first().is_some_and(|flag| flag == "--show-origin") => ["config", "list"],
        _ => return None,
    };
    let words = [program.clone()].into_iter().chain(path.map(OsString::from));
    Some(words.chain(rest.iter().cloned()).collect())
}

/// The words that name the command: `session state get`.
fn command_path(matches: &ArgMatches) -> String {
    let mut path = String::new();
    let mut matches = matches;
    while let Some((name, below)) = matches.subcommand() {
        if !path.is_empty() {
            path.push(' ');
        }
        path.push_str(name);
        matches = below;
    }
    path
}

fn parse_with(
    mut tree: clap::Command,
    args: &[OsString],
    globals: GlobalFlags,
    after_use: AfterUse,
) -> Result<ParsedLine, clap::Error> {
    let mut matches = tree.try_get_matches_from_mut(args)?;
    let entry = effects::entry(&command_path(&matches));
    let cli = match globals {
        GlobalFlags::Parse => Cli::from_arg_matches_mut(&mut matches),
        GlobalFlags::None => Command::from_arg_matches_mut(&mut matches).map(|command| Cli {
            state: StateArgs::default(),
            log: LogArgs::default(),
            command: Some(command),
        }),
    };
    let cli = cli.map_err(|error| error.format(&mut tree))?;
    after_use.dispose((tree, matches));
    Ok(ParsedLine { cli, entry })
}

/// The tree without the commands that were not called. clap copies every global flag into every command it knows,
/// called or not.
fn pruned(args: &[OsString], globals: GlobalFlags, after_use: AfterUse) -> Option<clap::Command> {
    let word = |at: usize| args.get(at).and_then(|arg| arg.to_str());
    let pick = |tree: clap::Command, name: &str| {
        let found = tree.find_subcommand(name).cloned();
        after_use.dispose(tree);
        found
    };
    let first = word(1)?;
    let mut called = pick(Command::augment_subcommands(clap::Command::new("all")), first)?;
    if let Some(group) = Command::group(first) {
        let leaf = pick(group(clap::Command::new("group")), word(2)?)?;
        called = clap::Command::new(first.to_owned()).subcommand_required(true).subcommand(leaf);
    }
    let mut tree = clap::Command::new("sessile").disable_help_subcommand(true);
    if globals == GlobalFlags::Parse {
        tree = LogArgs::augment_args(StateArgs::augment_args(tree));
    }
    Some(tree.subcommand(called))
}

/// The error without the value that it quotes, where that may be a secret which was passed as an argument.
pub(crate) fn without_values(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    // Only `auth` takes secrets; elsewhere the value helps to find the mistake.
    if !args.iter().any(|arg| arg == "auth") {
        return error;
    }
    let is_word = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(arg)) if !arg.starts_with('-'));
    let kind = match error.kind() {
        ErrorKind::UnknownArgument if is_word => ContextKind::InvalidArg,
        _ if error.get(ContextKind::InvalidValue).is_some() => ContextKind::InvalidValue,
        _ => return error,
    };
    error.insert(kind, ContextValue::String("********".to_owned()));
    error
}

/// The output for errors in the arguments and settings: flags and variables decide on it alone.
pub(crate) fn early_output(world: &World, args: &[OsString]) -> Output {
    let words: Vec<&str> =
        // What follows belongs to the command that is run.
        args.iter().skip(1).filter_map(|arg| arg.to_str()).take_while(|arg| *arg != "--").collect();
    let said = |long: &str, short: Option<&str>, variable: &str| {
        // From the end: the last one wins, as with clap.
        let flag = words.iter().enumerate().rev().find_map(|(at, word)| match *word {
            word if word == long || Some(word) == short => words.get(at + 1).copied(),
            word => {
                let joined = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
                joined.or_else(|| short.and_then(|short| word.strip_prefix(short)))
            }
        });
        flag.or_else(|| world.variable(variable).and_then(|value| value.to_str()))
    };
    let format =
        said("--output", Some("-o"), "SESSILE_OUTPUT").and_then(OutputFormat::named).unwrap_or_default();
    let color = said("--color", None, "SESSILE_COLOR").and_then(Color::named).unwrap_or_default();
    let quiet = words.contains(&"--quiet") || words.contains(&"-q");
    Output::new(world, format, color, quiet, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_of_commands_can_be_pruned() {
        let tree = Cli::command();
        let groups = tree.get_subcommands().filter(|command| command.is_subcommand_required_set());
        let names: Vec<&str> = groups.map(clap::Command::get_name).collect();
        assert!(names.contains(&"context"));
        for name in names {
            assert!(Command::group(name).is_some(), "{name}");
        }
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn lines_without_flags_mean_the_same_without_the_global_flags() {
        let mut parsed = 0;
        for entry in effects::TABLE {
            for rest in ["", " one", " one two", " one two three"] {
                let words = words(&format!("sessile {}{rest}", entry.path));
                let understood = |globals| {
                    let tree = pruned(&words, globals, AfterUse::Drop)?;
                    parse_with(tree, &words, globals, AfterUse::Drop).ok()
                };
                let [with, without] = [GlobalFlags::Parse, GlobalFlags::None].map(understood);
                assert_eq!(format!("{with:?}"), format!("{without:?}"), "{words:?}");
                parsed += usize::from(with.is_some());
            }
        }
        assert!(parsed > 100, "{parsed}");
    }

    #[test]
    fn pruned_tree_parses_only_its_own_command() {
        let parses = |line: &str| {
            let (words, globals) = (words(line), GlobalFlags::Parse);
            let tree = pruned(&words, globals, AfterUse::Drop);
            tree.is_some_and(|tree| parse_with(tree, &words, globals, AfterUse::Drop).is_ok())
        };
        assert!(parses("sessile context use staging --global -q"));
        assert!(parses("sessile session state get key --session s"));
        assert!(parses("sessile status --output json"));
        for line in [
            "sessile",
            "sessile contxt use",
            "sessile context",
            "sessile --quiet status",
            "sessile status -h",
        ] {
            assert!(!parses(line), "{line}");
        }
    }
}
