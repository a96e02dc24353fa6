//! Hints for commands of `run` that were not found: the command that was probably meant.

use std::ffi::OsString;

use sessile::text::shell_quoted;

use crate::error::CommandHint;

/// The hint for the words of a command whose program was not found.
pub(super) fn command_hint(
    verb: &str,
    words: &[OsString],
    is_context: impl Fn(&str) -> bool,
) -> Option<CommandHint> {
    let words: Vec<&str> = words.iter().map(|word| word.to_str()).collect::<Option<_>>()?;
    let (&first, rest) = words.split_first()?;
    // `run staging -- kubectl get pods`: the first word selects a context or a session.
    let after = rest.strip_prefix(&["--"]).unwrap_or(rest);
    let hint =
        |text: &str, command: String| Some(CommandHint { text: format!("{text}: {command}"), command });
    if first.starts_with('-') {
        let command = format!("sessile {verb} {}", quoted(&words));
        return hint("pass options before --", command);
    }
    if !after.is_empty() && is_context(first) {
        let command = format!("sessile {verb} --context {} -- {}", shell_quoted(first), quoted(after));
        return hint("did you mean", command);
    }
    if rest.len() > after.len() && !after.is_empty() {
        let command = format!("sessile {verb} --session {} -- {}", shell_quoted(first), quoted(after));
        return hint("name a context with --context, or a session", command);
    }
    if rest.is_empty() && first.contains(char::is_whitespace) {
        let is_plain = first.chars().all(|c| c.is_alphanumeric() || " -_./:=,@%+".contains(c));
        let command = if is_plain {
            format!("sessile {verb} -- {first}")
        } else {
            format!("sessile {verb} -- sh -c {}", shell_quoted(first))
        };
        return hint("pass the command as separate words", command);
    }
    None
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| shell_quoted(word).to_string()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Option<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        command_hint("run", &words, |name| name == "staging").map(|hint| hint.command)
    }

    #[test]
    fn hint_names_the_intended_command() {
        let cases: &[(&[&str], &str)] = &[
            (&["staging", "--", "ls", "a b"], "sessile run --context staging -- ls 'a b'"),
            (&["staging", "ls"], "sessile run --context staging -- ls"),
            (&["deploy", "--", "ls"], "sessile run --session deploy -- ls"),
            (&["ls -l /tmp"], "sessile run -- ls -l /tmp"),
            (&["ls | wc -l"], "sessile run -- sh -c 'ls | wc -l'"),
            (&["-c", "staging", "ls"], "sessile run -c staging ls"),
        ];
        for (words, meant) in cases {
            assert_eq!(command(words).as_deref(), Some(*meant), "{words:?}");
        }
        for words in [&["lss"][..], &["lss", "-l"], &["staging"]] {
            assert_eq!(command(words), None, "{words:?}");
        }
    }
}
