//! Keys of the chat, for the help and for the tables of the reference.

/// Keys with what they do.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send"),
    ("Alt-Enter, Ctrl-J", "new line"),
    ("Up, Down", "recall a message"),
    ("PageUp, PageDown", "scroll"),
    ("Ctrl-PageUp, Ctrl-PageDown", "previous tab, next tab"),
    ("Ctrl-C", "cancel the task; else clear the text; twice: leave"),
    ("Esc", "stop following the reply; the task continues"),
    ("Tab, Alt-1..9", "next tab, tab by number"),
    ("Ctrl-T, Ctrl-O", "new conversation, agents"),
    ("Ctrl-P, Ctrl-F", "commands, search"),
    ("F1, ?", "this help"),
    ("F2, F3, F4", "artifacts, card, wire log"),
    ("Ctrl-Z, Ctrl-D", "suspend, quit"),
];

/// Last keys of the chat as a pane of the TUI, instead of the last row above.
pub(crate) const PANE_KEYS: &[(&str, &str)] = &[
    ("Ctrl-Z", "suspend"),
    ("Shift-Tab, Ctrl-D", "go to the other panes; replies continue"),
    ("Esc", "the same if no reply is running"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::command::COMMANDS;
    use crate::tui::keys::{BINDINGS, MOVES};

    /// Actions of another client's full-screen interface, with the keys and commands that do the same here.
    const ACTIONS: &str = include_str!("../../../tests/it/agents/handler_tui.tsv");

    /// Whether a key stands in a list such as `Ctrl-T, Ctrl-O`.
    fn is_listed(list: &str, key: &str) -> bool {
        list.split(", ").any(|listed| listed == key)
    }

    #[test]
    fn every_key_and_command_of_the_table_exists() {
        let mut count = 0;
        for line in ACTIONS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let ours = line.split('\t').nth(3).unwrap_or_default();
            for item in ours.split("; ").filter(|item| !item.is_empty()) {
                let (place, name) = item.split_once(' ').unwrap_or((item, ""));
                let word = name.split(' ').next().unwrap_or_default();
                let exists = match place {
                    "chat" if word.len() > 1 && word.starts_with('/') => {
                        COMMANDS.iter().any(|(usage, _)| usage.split(' ').next() == Some(word))
                    }
                    "chat" => KEYS.iter().any(|(keys, _)| is_listed(keys, name)),
                    "tui" => {
                        BINDINGS.iter().any(|binding| binding.key == name)
                            || MOVES.iter().any(|(keys, _)| is_listed(keys, name))
                    }
                    // Commands are checked with the program itself.
                    "sessile" => true,
                    _ => false,
                };
                assert!(exists, "{item:?} of {line:?}");
                count += 1;
            }
        }
        assert!(count >= 40, "{count}");
    }
}
