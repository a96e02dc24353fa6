//! The commands in groups, by what people do.

use clap::Command;

/// Group of commands on the first page of help.
struct Group {
    title: &'static str,
    commands: &'static [&'static str],
    /// Commands that the page names without a description.
    others: &'static [&'static str],
}

const fn group(title: &'static str, commands: &'static [&'static str]) -> Group {
    Group { title, commands, others: &[] }
}

const GROUPS: &[Group] = &[
    group("Work", &["run", "shell", "session", "env", "hook", "prompt"]),
    group("Targets", &["context", "import", "auth", "trust"]),
    group("Settings", &["config"]),
    group("Agents", &["message", "chat", "agent", "task", "conversation", "mcp", "skill", "setup"]),
    group("Coordination", &["lock"]),
    group("Service", &["serve", "user", "probe"]),
    group("Insight", &["status", "tui", "history", "undo", "doctor", "tool"]),
    Group {
        title: "More",
        commands: &["demo", "backup"],
        others: &["completions", "man", "manifest", "help"],
    },
];

/// Width of the column of names.
const NAME_WIDTH: usize = 12;

/// The groups as text: a line per command. `heading` styles the title of a group.
pub(super) fn render(root: &Command, heading: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for group in GROUPS {
        text.push_str(&format!("{}\n", heading(group.title)));
        for &name in group.commands {
            let about = root.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:NAME_WIDTH$}  {about}\n"));
        }
        if !group.others.is_empty() {
            text.push_str(&format!("  {}\n", group.others.join(", ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let root = Cli::command();
        let visible = root.get_subcommands().filter(|command| !command.is_hide_set());
        let mut commands: Vec<&str> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|group| group.commands.iter().chain(group.others).copied()).collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, commands);
    }
}
