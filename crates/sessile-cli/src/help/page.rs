//! Pages of help.

use std::ffi::OsString;

use clap::{Arg, Args, CommandFactory, Subcommand};
use sessile::StateArgs;

use super::{PRECEDENCE, groups, summary};
use crate::cli::{Cli, Command};
use crate::logging::LogArgs;
use crate::output::{Output, Tone};
use crate::parse::{USE, USE_PATH};

/// Columns of a page that no terminal limits, and at most of one that a terminal does.
const WIDTH: usize = 100;

/// Topic of the page of global options.
const OPTIONS_TOPIC: &str = "options";

/// Page that `--help` asks for: that of the command which the words before it name.
pub(crate) fn asked_page(args: &[OsString], out: &Output) -> String {
    let is_verbose = words(args).any(is_verbose_flag);
    let (tree, path) = called(args);
    if path.is_empty() { start_page(out, is_verbose) } else { command_page(tree, &path, is_verbose) }
}

/// The words that name a command, in arguments that may hold more.
pub(crate) fn called_path(args: &[OsString]) -> Vec<String> {
    called(args).1
}

/// The arguments up to `--`; the rest belongs to a command that is run.
fn words(args: &[OsString]) -> impl Iterator<Item = &str> {
    args.iter().skip(1).filter_map(|arg| arg.to_str()).take_while(|word| *word != "--")
}

/// The command that arguments name, and its path.
fn called(args: &[OsString]) -> (clap::Command, Vec<String>) {
    let root = Cli::command();
    let mut tree = page_tree();
    let mut path = Vec::new();
    let mut words = words(args);
    while let Some(word) = words.next() {
        if word.starts_with('-') {
            let takes_value = |arg: &Arg| is_flag(arg, word) && arg.get_action().takes_values();
            if root.get_arguments().chain(tree.get_arguments()).any(takes_value) {
                words.next();
            }
        } else if path.is_empty() && word == USE {
            if let Ok(found) = descend(page_tree(), &USE_PATH) {
                (tree, path) = found;
            }
        } else if let Some(found) = tree.find_subcommand(word).cloned() {
            path.push(found.get_name().to_owned());
            tree = found;
        }
    }
    (tree, path)
}

/// Page of a topic: the words of a command, or `options`.
pub(crate) fn named_page(words: &[String], out: &Output, is_verbose: bool) -> Result<String, UnknownTopic> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (tree, path) = match words[..] {
        [] => return Ok(start_page(out, is_verbose)),
        [OPTIONS_TOPIC] => return Ok(options_page()),
        [USE] => descend(page_tree(), &USE_PATH)?,
        ref words => descend(page_tree(), words)?,
    };
    Ok(command_page(tree, &path, is_verbose))
}

/// The command below a tree, and its path without aliases.
fn descend(mut tree: clap::Command, words: &[&str]) -> Result<(clap::Command, Vec<String>), UnknownTopic> {
    let mut path: Vec<String> = Vec::new();
    for word in words {
        match tree.find_subcommand(word).cloned() {
            Some(found) => tree = found,
            None => return Err(UnknownTopic { word: (*word).to_owned(), group: path.join(" ") }),
        }
        path.push(tree.get_name().to_owned());
    }
    Ok((tree, path))
}

/// Word of a topic that names no command.
#[derive(Debug)]
pub(crate) struct UnknownTopic {
    pub(crate) word: String,
    /// Words before it.
    pub(crate) group: String,
}

/// First page: the commands in groups; with `--verbose` also the global options, the examples and the precedence.
pub(crate) fn start_page(out: &Output, is_verbose: bool) -> String {
    let root = Cli::command();
    let about = root.get_about().map(ToString::to_string).unwrap_or_default();
    let groups = groups::render(&root, |title| out.toned(title, Tone::Strong));
    let mut text = format!("{about}\n\nUsage: sessile [OPTIONS] COMMAND\n\n{groups}\n");
    if is_verbose {
        let after = root.get_after_help().map(ToString::to_string).unwrap_or_default();
        // The page of options ends with the precedence.
        let examples = after.split("\n\n").next().unwrap_or_default();
        text.push_str(&format!("{}\n{}", options_page(), ended(examples)));
    } else {
        text.push_str("Global options: sessile help options\n");
        text.push_str("Help on a command: sessile help COMMAND\n");
        text.push_str("First steps: sessile demo\n");
    }
    text
}

/// Page of the options that every command takes.
fn options_page() -> String {
    let command = LogArgs::augment_args(StateArgs::augment_args(clap::Command::new("sessile")));
    let command = command.help_template("{options}").max_term_width(80).version(env!("CARGO_PKG_VERSION"));
    let options = command.mut_args(|arg| arg.help_heading("Global options")).render_help();
    format!("Global options:\n{}\n{PRECEDENCE}", ended(&options.to_string()))
}

/// Page of a command.
fn command_page(command: clap::Command, path: &[String], is_verbose: bool) -> String {
    if !is_verbose {
        return summary::render(command, &path.join(" "));
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let after = format!("Global options: sessile help options\n\n{after}");
    ended(&command.after_help(after).render_long_help().to_string())
}

/// The text with one line break at its end.
fn ended(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

/// All commands without the global options, ready to be rendered.
fn page_tree() -> clap::Command {
    let root = clap::Command::new("sessile").max_term_width(WIDTH);
    let root = root.disable_help_flag(true).disable_help_subcommand(true);
    let mut tree = Command::augment_subcommands(root);
    // Builds the arguments of every command, and the names in the usage lines.
    tree.build();
    tree
}

/// Whether a word passes the flag: `--output`, `-o`. A word that holds the value, as `--output=json` does, takes no other.
fn is_flag(arg: &Arg, word: &str) -> bool {
    let long = word.strip_prefix("--").is_some_and(|name| arg.get_long() == Some(name));
    let short = word.strip_prefix('-').and_then(|rest| rest.parse::<char>().ok());
    long || short.is_some() && arg.get_short() == short
}

/// Whether a word asks for details: `--verbose`, `-v`, `-vv`, or a cluster of short flags with it.
fn is_verbose_flag(word: &str) -> bool {
    let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    word == "--verbose"
        || cluster.is_some_and(|flags| flags.contains('v') && flags.chars().all(|c| "hqvy".contains(c)))
}
