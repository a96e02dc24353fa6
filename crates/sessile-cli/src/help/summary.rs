//! The page of a command without `--verbose`: 40 lines of 80 columns.

use clap::{Arg, Command};

use crate::output::wrapped;

/// Columns of a page.
const WIDTH: usize = 80;

/// Lines of a page, whatever the command has.
const LINES: usize = 40;

/// Examples on a page.
const EXAMPLES: usize = 3;

/// Widest name of an option that shares a line with its description.
const NAME_WIDTH: usize = 26;

/// The page: description, usage, arguments, options, examples. Rare options are left out and counted. The last ones make
/// room where a page is too long, except those of its examples.
pub(super) fn render(mut command: Command, path: &str) -> String {
    let is_option = |arg: &&Arg| !arg.is_positional() && !arg.is_hide_set();
    let mut options: Vec<Arg> = command.get_arguments().filter(is_option).cloned().collect();
    let all = options.len();
    let used = example_flags(&command);
    let is_used = |arg: &Arg| arg.get_long().is_some_and(|long| used.iter().any(|flag| flag == long));
    options.retain(|arg| !arg.is_hide_short_help_set() || is_used(arg));
    loop {
        let page = page(&mut command, path, &options, all - options.len());
        let last = options.iter().rposition(|arg| !is_used(arg));
        match last.filter(|_| page.lines().count() > LINES) {
            Some(place) => drop(options.remove(place)),
            None => return page,
        }
    }
}

/// The examples of a command that its page shows, below their title.
fn examples(command: &Command) -> Vec<String> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // The precedence is a paragraph of its own, on the page of global options.
    after.split("\n\n").next().unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Names of the long flags in the examples that the page shows.
fn example_flags(command: &Command) -> Vec<String> {
    let examples = examples(command);
    let words = examples.iter().take(1 + EXAMPLES).flat_map(|line| {
        // What follows `--` belongs to another command.
        line.split_whitespace().take_while(|word| *word != "--")
    });
    let names = words.filter_map(|word| word.strip_prefix("--"));
    names.map(|name| name.split('=').next().unwrap_or_default().to_owned()).collect()
}

fn page(command: &mut Command, path: &str, options: &[Arg], left_out: usize) -> String {
    let mut text = String::new();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    for line in wrapped(&about, WIDTH) {
        text.push_str(&format!("{line}\n"));
    }
    text.push_str(&format!("\n{}\n", command.render_usage()));
    let listed = |title: &str, items: &[(String, String)]| {
        if items.is_empty() { String::new() } else { format!("\n{title}:\n{}", list(items)) }
    };
    let commands: Vec<(String, String)> =
        command.get_subcommands().filter(|command| !command.is_hide_set()).map(command_item).collect();
    let arguments: Vec<(String, String)> =
        command.get_positionals().filter(|arg| !arg.is_hide_set()).map(argument_item).collect();
    let options: Vec<(String, String)> = options.iter().map(option_item).collect();
    text.push_str(&listed("Commands", &commands));
    text.push_str(&listed("Arguments", &arguments));
    text.push_str(&listed("Options", &options));
    let examples = examples(command);
    let has_more = left_out > 0 || command.get_long_about().is_some() || examples.len() > 1 + EXAMPLES;
    text.push_str("\nGlobal options: sessile help options\n");
    let what = match left_out {
        0 => "More".to_owned(),
        1 => "1 more option".to_owned(),
        count => format!("{count} more options"),
    };
    if has_more {
        text.push_str(&format!("{what}: sessile help {path} --verbose\n"));
    }
    let examples: Vec<String> = examples.into_iter().take(1 + EXAMPLES).collect();
    text.push_str(&format!("\n{}\n", examples.join("\n")));
    text
}

fn command_item(command: &Command) -> (String, String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    let aliases =
        if aliases.is_empty() { String::new() } else { format!(" [alias: {}]", aliases.join(", ")) };
    (command.get_name().to_owned(), format!("{about}{aliases}"))
}

fn argument_item(arg: &Arg) -> (String, String) {
    (arg.to_string(), description(arg))
}

fn option_item(arg: &Arg) -> (String, String) {
    let short = arg.get_short().map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    (format!("{short}{arg}"), description(arg))
}

/// Description of an argument with its values and its default.
fn description(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let takes_value = arg.get_action().takes_values();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    if takes_value && !values.is_empty() && !arg.is_hide_possible_values_set() {
        text.push_str(&format!(" [{}]", values.join(", ")));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_value && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        text.push_str(&format!(" [default: {}]", defaults.join(" ")));
    }
    text
}

/// Names and descriptions in two columns. A name that is too long has a line of its own.
fn list(items: &[(String, String)]) -> String {
    let longest = items.iter().map(|(name, _)| name.chars().count()).filter(|width| *width <= NAME_WIDTH);
    let column = longest.max().unwrap_or(NAME_WIDTH);
    let mut text = String::new();
    for (name, description) in items {
        let mut lines = wrapped(description, WIDTH - column - 4).into_iter();
        if name.chars().count() > column {
            text.push_str(&format!("  {name}\n"));
        } else {
            text.push_str(&format!("  {name:column$}  {}\n", lines.next().unwrap_or_default()));
        }
        for line in lines {
            text.push_str(&format!("  {:column$}  {line}\n", ""));
        }
    }
    text
}
