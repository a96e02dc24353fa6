//! Keys and palette commands: one table for both, for the help and for the guide.

use super::app::Pane;

/// Something that a person can tell the TUI to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UiCommand {
    Open,
    StartSession,
    AttachSession,
    StopSession,
    Shell,
    Approve,
    Revoke,
    BreakLock,
    Undo,
    ShowMessages,
    Filter,
    NextOrder,
    Reverse,
    NextAttention,
    Reload,
    Palette,
    Help,
    GoTo(Pane),
    Quit,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyBinding {
    pub(crate) command: UiCommand,
    /// Name in the palette.
    pub(crate) name: &'static str,
    /// Key that does the same.
    pub(crate) key: &'static str,
    pub(crate) help: &'static str,
    /// Panes in which it means something; empty for all.
    pub(crate) panes: &'static [Pane],
}

const fn row(
    command: UiCommand,
    name: &'static str,
    key: &'static str,
    panes: &'static [Pane],
    help: &'static str,
) -> KeyBinding {
    KeyBinding { command, name, key, help, panes }
}

/// Every command of the palette with its key.
pub(crate) const BINDINGS: &[KeyBinding] = &[
    row(UiCommand::Open, "open", "Enter", &[], "Open the selected row"),
    row(UiCommand::StartSession, "start", "n", &[Pane::Sessions, Pane::Contexts], "Start a session"),
    row(UiCommand::AttachSession, "attach", "a", &[Pane::Sessions], "Select the session for this terminal"),
    row(UiCommand::Shell, "shell", "e", &[Pane::Sessions], "Open a shell in the session"),
    row(UiCommand::StopSession, "stop", "s", &[Pane::Sessions, Pane::Service], "Stop the session"),
    row(UiCommand::Approve, "approve", "a", &[Pane::Contexts], "Approve the context for a time"),
    row(UiCommand::Revoke, "revoke", "v", &[Pane::Contexts], "Revoke the context's approvals"),
    row(UiCommand::BreakLock, "break", "b", &[Pane::Locks], "Break the lock"),
    row(UiCommand::Undo, "undo", "u", &[Pane::History], "Undo the operation"),
    row(UiCommand::ShowMessages, "messages", "m", &[Pane::Agents], "Show the messages of the conversation"),
    row(UiCommand::Filter, "filter", "/", &[], "Filter the rows; every word must occur"),
    row(UiCommand::NextOrder, "sort", "o", &[], "Sort by the next column"),
    row(UiCommand::Reverse, "reverse", "O", &[], "Reverse the order"),
    row(UiCommand::NextAttention, "attention", "!", &[], "Go to the next row that requires attention"),
    row(UiCommand::GoTo(Pane::Sessions), "sessions", "1", &[], "Show the sessions"),
    row(UiCommand::GoTo(Pane::Contexts), "contexts", "2", &[], "Show the contexts and approvals"),
    row(UiCommand::GoTo(Pane::Locks), "locks", "3", &[], "Show the locks"),
    row(UiCommand::GoTo(Pane::History), "history", "4", &[], "Show the history"),
    row(UiCommand::GoTo(Pane::Agents), "agents", "5", &[], "Show agents and conversations"),
    row(UiCommand::GoTo(Pane::Chat), "chat", "6", &[], "Chat with agents"),
    row(UiCommand::GoTo(Pane::Service), "service", "7", &[], "Show the service's sessions"),
    row(UiCommand::Reload, "reload", "r", &[], "Reload everything"),
    row(UiCommand::Palette, "palette", ":", &[], "Choose a command by name"),
    row(UiCommand::Help, "help", "?", &[], "Show the keys"),
    row(UiCommand::Quit, "quit", "q", &[], "Quit"),
];

/// Keys that move, which the palette does not have.
pub(crate) const MOVES: &[(&str, &str)] = &[
    ("j, k, arrows", "Move by a row"),
    ("g, G, Home, End", "Go to the first or the last row"),
    ("Ctrl-d, Ctrl-u, PgDn, PgUp", "Move by a page"),
    ("Tab, Shift-Tab, l, h", "Go to the next or the previous pane"),
    ("Shift-Tab in the chat", "Leave the chat; replies continue"),
    ("Esc", "Close a dialog, or clear the filter"),
    ("Ctrl-z", "Suspend; fg continues"),
    ("Mouse", "Click a pane or a row, click again to open, scroll to move"),
];

impl KeyBinding {
    /// Whether it means something in a pane.
    pub(crate) fn is_in(&self, pane: Pane) -> bool {
        self.panes.is_empty() || self.panes.contains(&pane)
    }
}

/// Command of a key in a pane.
pub(crate) fn command_of(key: &str, pane: Pane) -> Option<UiCommand> {
    BINDINGS.iter().find(|row| row.key == key && row.is_in(pane)).map(|row| row.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_pane() {
        for pane in Pane::ALL {
            let mut keys: Vec<&str> =
                BINDINGS.iter().filter(|row| row.is_in(pane)).map(|row| row.key).collect();
            keys.sort_unstable();
            let before = keys.len();
            keys.dedup();
            assert_eq!(keys.len(), before, "{pane:?}: {keys:?}");
        }
    }

    #[test]
    fn names_of_the_palette_are_unique() {
        let mut names: Vec<&str> = BINDINGS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), BINDINGS.len());
    }
}
