//! Suggestions for words and flags that the program does not have: by what people mean, not by letters alone.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use sessile::Report;
use sessile::text::shell_quoted;

use crate::error::{Failure, arguments};
use crate::help::called_path;

/// Words people type, the group they type them in, and the commands that do it.
const COMMANDS: &[(&str, &[&str], &[&str])] = &[
    ("", &["send", "ask", "say"], &["message send"]),
    ("", &["stream"], &["message stream"]),
    ("", &["start", "new"], &["session start"]),
    ("", &["stop", "kill", "end", "down"], &["session stop"]),
    ("", &["attach", "join", "resume", "enter"], &["session attach"]),
    ("", &["detach", "leave", "exit", "deactivate"], &["session detach"]),
    ("", &["ps", "sessions", "top"], &["session list"]),
    ("", &["ls", "list"], &["session list", "context list"]),
    ("", &["rm", "delete", "remove"], &["session stop", "context delete"]),
    ("", &["gc", "clean", "cleanup", "prune"], &["session gc"]),
    ("", &["switch", "select", "checkout", "activate", "ctx"], &["context use"]),
    ("", &["contexts"], &["context list"]),
    ("", &["current", "pwd"], &["context current"]),
    ("", &["create", "add", "init"], &["context create"]),
    ("", &["approve", "unlock", "allow"], &["context approve", "trust"]),
    ("", &["bind", "edit"], &["context edit"]),
    ("", &["login", "signin"], &["auth login"]),
    ("", &["logout", "signout"], &["auth logout"]),
    ("", &["token", "credential", "credentials", "vault", "secret"], &["auth set", "auth list"]),
    ("", &["get"], &["config get"]),
    ("", &["set"], &["config set"]),
    ("", &["unset"], &["config unset"]),
    ("", &["settings", "setting"], &["config list"]),
    ("", &["whoami", "info", "who", "where"], &["status"]),
    ("", &["log", "logs", "audit", "oplog", "op"], &["history"]),
    ("", &["revert", "rollback"], &["undo"]),
    ("", &["restore"], &["backup restore"]),
    ("", &["check", "diagnose"], &["doctor"]),
    ("", &["agents"], &["agent list"]),
    ("", &["tasks"], &["task list"]),
    ("", &["conversations"], &["conversation list"]),
    ("", &["cancel"], &["task cancel"]),
    ("", &["locks"], &["lock list"]),
    ("", &["acquire"], &["lock acquire"]),
    ("", &["release"], &["lock release"]),
    ("", &["tools"], &["tool list"]),
    ("", &["users"], &["user list"]),
    ("", &["server", "daemon", "up"], &["serve"]),
    ("", &["export"], &["session export", "context export"]),
    ("", &["install"], &["setup", "hook install"]),
    ("", &["completion"], &["completions"]),
    ("", &["version"], &["--version"]),
    ("session", &["create", "new", "open", "run"], &["session start"]),
    ("session", &["ps"], &["session list"]),
    ("session", &["rm", "delete", "remove", "kill", "end", "close"], &["session stop"]),
    ("session", &["prune", "clean", "cleanup"], &["session gc"]),
    ("session", &["use", "switch", "select", "join", "resume", "enter"], &["session attach"]),
    ("session", &["leave", "exit"], &["session detach"]),
    ("session", &["output", "tail"], &["session log"]),
    ("session", &["get", "info", "describe", "inspect", "status"], &["session show"]),
    ("context", &["switch", "select", "set", "set-context", "use-context", "checkout"], &["context use"]),
    ("context", &["new", "add", "init"], &["context create"]),
    ("context", &["remove"], &["context delete"]),
    ("context", &["get-contexts"], &["context list"]),
    ("context", &["current-context"], &["context current"]),
    ("context", &["get", "info", "describe", "inspect", "view"], &["context show"]),
    ("context", &["bind", "unbind", "update", "modify"], &["context edit"]),
    ("context", &["allow", "unlock"], &["context approve"]),
    ("config", &["view", "effective"], &["config show"]),
    ("config", &["rm", "delete", "remove"], &["config unset"]),
    ("auth", &["add", "create", "new", "store"], &["auth set"]),
    ("auth", &["token", "get"], &["auth show"]),
    ("auth", &["whoami"], &["auth status"]),
    ("auth", &["renew"], &["auth refresh"]),
    ("agent", &["new", "create", "register"], &["agent add"]),
    ("agent", &["delete"], &["agent remove"]),
    ("agent", &["info", "get", "describe"], &["agent show"]),
    ("message", &["list", "ls", "show", "history"], &["conversation show"]),
    ("task", &["show"], &["task get"]),
    ("task", &["stop", "kill", "abort"], &["task cancel"]),
    ("task", &["follow", "wait", "tail"], &["task watch"]),
    ("conversation", &["rm", "delete", "remove", "forget"], &["conversation clear"]),
    ("lock", &["get", "take", "hold"], &["lock acquire"]),
    ("lock", &["free", "unlock", "drop"], &["lock release"]),
    ("lock", &["steal", "force", "rm", "delete"], &["lock break"]),
    ("lock", &["extend"], &["lock renew"]),
    ("user", &["create", "new"], &["user add"]),
    ("user", &["rm", "delete", "remove", "block", "revoke"], &["user disable"]),
    ("user token", &["new", "add"], &["user token create"]),
    ("user token", &["rm", "delete", "remove"], &["user token revoke"]),
];

/// Flags of other programs, with the flags of this one that do the same.
const FLAGS: &[(&[&str], &str)] = &[
    (&["--json", "--format", "--output-format"], "print JSON: --output json"),
    (&["--jsonl", "--ndjson"], "print JSON lines: --output jsonl"),
    (&["--no-color", "--no-colour", "--colour"], "choose the color: --color auto, always or never"),
    (&["--force", "--assume-yes", "--confirm", "-f"], "confirm without a prompt: --yes"),
    (&["--non-interactive", "--batch", "--no-prompt", "--no-interactive"], "never prompt: --no-input"),
    (&["--debug", "--trace", "-d"], "print details for debugging: -vv"),
    (&["--silent"], "print only the result: --quiet"),
    (&["--profile", "--ctx", "--use-context"], "name the context: --context NAME"),
    (&["--detach", "--background"], "keep a named session: --session NAME"),
    (&["--all-columns", "--no-trunc", "--full"], "print all columns and full ids: --wide"),
];

/// Flags that would carry a secret.
const SECRETS: &[&str] = &[
    "--token",
    "--api-key",
    "--apikey",
    "--bearer",
    "--bearer-token",
    "--password",
    "--secret",
    "--auth-token",
];

/// The ways to pass a token.
const TOKEN_HINT: &str = "arguments are visible to other processes; store the token: sessile auth set NAME --secret-stdin; \
     then use it: --credential NAME; for a message from a variable: --bearer-env VARIABLE";

/// The failure of arguments that clap refused, with a suggestion if their meaning is known.
pub(crate) fn failure(error: clap::Error, args: &[OsString]) -> Failure {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let report = match error.kind() {
        ErrorKind::InvalidSubcommand if run_command(args).is_some() => {
            let command = run_command(args);
            let hint = command.as_ref().map(|command| format!("did you mean: {command}"));
            Some(Report { hint, fix_command: command, ..arguments(&error) })
        }
        ErrorKind::InvalidSubcommand => text(ContextKind::InvalidSubcommand)
            .and_then(|word| commands(&called_path(args).join(" "), word))
            .map(|commands| with_commands(arguments(&error), commands)),
        ErrorKind::UnknownArgument => text(ContextKind::InvalidArg).and_then(|flag| {
            let hint = flag_hint(flag)?;
            Some(Report { hint: Some(hint.to_owned()), ..arguments(&error) })
        }),
        _ => None,
    };
    report.map_or_else(|| Failure::Arguments(Box::new(error)), |report| Failure::Remote(Box::new(report)))
}

/// The `run` that arguments without a command mean: `sessile -c staging -- kubectl get pods`.
fn run_command(args: &[OsString]) -> Option<String> {
    let words: Vec<&str> = args.iter().skip(1).map(|word| word.to_str()).collect::<Option<_>>()?;
    let place = words.iter().position(|word| *word == "--").filter(|place| *place > 0)?;
    let (flags, command) = (&words[..place], words.get(place + 1..).filter(|command| !command.is_empty())?);
    let mut line = "sessile run".to_owned();
    // Only flags whose value is a name: what follows another flag may be a secret.
    for pair in flags.chunks(2) {
        match pair {
            ["-c" | "--context", name] => line.push_str(&format!(" --context {}", shell_quoted(name))),
            ["-s" | "--session", name] => line.push_str(&format!(" --session {}", shell_quoted(name))),
            _ => return None,
        }
    }
    line.push_str(" --");
    command.iter().for_each(|word| line.push_str(&format!(" {}", shell_quoted(word))));
    Some(line)
}

/// The commands that a word of a group means.
pub(crate) fn commands(group: &str, word: &str) -> Option<&'static [&'static str]> {
    let means = |(at, words, _): &&(&str, &[&str], &[&str])| *at == group && words.contains(&word);
    COMMANDS.iter().find(means).map(|(_, _, commands)| *commands)
}

/// The report with the commands as its hint.
pub(crate) fn with_commands(report: Report, commands: &[&str]) -> Report {
    let lines: Vec<String> = commands.iter().map(|command| format!("sessile {command}")).collect();
    let fix_command = lines.first().filter(|_| lines.len() == 1).cloned();
    Report { hint: Some(format!("did you mean: {}", lines.join(", or "))), fix_command, ..report }
}

fn flag_hint(flag: &str) -> Option<&'static str> {
    let name = flag.split_once('=').map_or(flag, |(name, _)| name);
    if SECRETS.contains(&name) {
        return Some(TOKEN_HINT);
    }
    FLAGS.iter().find(|(flags, _)| flags.contains(&name)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_suggestion_is_a_command_and_no_word_is_one() {
        let mut root = Cli::command();
        root.build();
        let find = |path: &str| {
            path.split(' ')
                .filter(|word| !word.is_empty())
                .try_fold(&root, |at, word| at.find_subcommand(word))
        };
        for (group, words, commands) in COMMANDS {
            let at = find(group).unwrap();
            for word in *words {
                assert!(at.find_subcommand(word).is_none(), "{group} {word} exists");
            }
            for command in commands.iter().filter(|command| !command.starts_with('-')) {
                assert!(find(command).is_some(), "{command}");
            }
        }
    }

    #[test]
    fn no_suggested_flag_hides_one_that_exists() {
        let mut root = Cli::command();
        root.build();
        let globals: Vec<String> =
            root.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
        for flag in FLAGS.iter().flat_map(|(flags, _)| *flags) {
            assert!(!globals.iter().any(|global| global == flag), "{flag}");
        }
    }
}
