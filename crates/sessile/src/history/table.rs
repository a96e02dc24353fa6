//! One reviewed table: which commands are recorded, and which of them can be undone.
//!
//! The reference page is generated from the table, and its test compares the table with the existing commands. In
//! debug builds [`perform`](super::perform) and [`record`](super::record) compare it with their arguments.

/// Whether a command can be undone, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Can be undone; effect of the undo.
    Yes(&'static str),
    /// Recorded, and cannot be undone: reason and alternative.
    No(&'static str),
    /// Not recorded: reason.
    NotRecorded(&'static str),
}

/// A command that writes.
#[derive(Clone, Copy, Debug)]
pub struct RecordedCommand {
    /// The words that name it.
    pub command: &'static str,
    /// Whether it can be undone.
    pub undo: Undo,
}

const fn yes(command: &'static str, what: &'static str) -> RecordedCommand {
    RecordedCommand { command, undo: Undo::Yes(what) }
}

const fn no(command: &'static str, why: &'static str) -> RecordedCommand {
    RecordedCommand { command, undo: Undo::No(why) }
}

const fn not_recorded(command: &'static str, why: &'static str) -> RecordedCommand {
    RecordedCommand { command, undo: Undo::NotRecorded(why) }
}

const NO_SECRET: &str = "secrets are never recorded; set the credential again";
const ONLY_A_FILE: &str = "writes only the requested file, outside of the state";
const SERVICE: &str = "recorded in the service's audit log";

/// Every command that writes, in the order of their names.
pub const COMMANDS: &[RecordedCommand] = &[
    yes("agent add", "restores the old entry, or removes the name"),
    yes("agent remove", "restores the name"),
    yes("agent use", "restores the previous default agent, or none"),
    no("auth clear", NO_SECRET),
    no("auth login", "the server has issued tokens; log out instead"),
    no("auth logout", NO_SECRET),
    no("auth move", "move the credentials back"),
    no("auth refresh", "the server has issued a new token, and the old one may be invalid"),
    no("auth rekey", "keys are never recorded; run rekey again"),
    no("auth set", NO_SECRET),
    not_recorded("auth unlock", "ends at its timeout, or with --end"),
    not_recorded("backup", ONLY_A_FILE),
    no("backup restore", "the history was replaced too; restore the database that was kept"),
    not_recorded("chat", "the conversation is the record; /forget is recorded as conversation clear"),
    yes("config edit", "restores the old text of the file"),
    yes("config set", "restores the old value, or removes the key"),
    yes("config unset", "restores the old value"),
    no("context approve", "approvals expire or are revoked, and PINs are never recorded"),
    yes("context create", "deletes the context"),
    yes("context delete", "restores the context and its selections, without approvals"),
    yes("context edit", "restores the old text of the context"),
    not_recorded("context export", ONLY_A_FILE),
    yes("context import", "one operation per context: deletes it, or restores its old text"),
    yes("context rename", "restores the old name and its selections; approvals stay revoked"),
    yes("context use", "restores the old selection of the scope"),
    no("conversation clear", "the messages are deleted; export a conversation to keep it"),
    no("conversation rename", "rename it back"),
    not_recorded("doctor", "moves a damaged database aside, and keeps it"),
    not_recorded("env", "prepares the session's room, as the first command would"),
    not_recorded("hook install", "run hook remove"),
    not_recorded("hook remove", "run hook install"),
    yes("import", "one operation per context: deletes it, or restores its old text"),
    yes("import apply", "one operation for each context, as with import"),
    no("lock acquire", "others may have acted on the lock; release it"),
    no("lock break", "the holder has lost the lock; acquire it again"),
    no("lock release", "another holder may have the lock; acquire it again"),
    no("lock renew", "others may have acted on the lock; release it"),
    not_recorded("lock run", "the lock is released with the command"),
    not_recorded("man", ONLY_A_FILE),
    not_recorded("mcp", "tool calls are recorded as commands"),
    not_recorded("message send", "the conversation is the record"),
    not_recorded("message stream", "the conversation is the record"),
    not_recorded("probe", "changes only the probed service"),
    no("run", "recorded if it starts a named session; stop that session by its id"),
    not_recorded("serve", SERVICE),
    not_recorded("serve backup", ONLY_A_FILE),
    not_recorded("serve restore", SERVICE),
    not_recorded("session attach", "detach, or attach to the other session"),
    no("session clear", "the sessions are deleted; export a session to keep it"),
    not_recorded("session detach", "attach to the session again"),
    not_recorded("session export", ONLY_A_FILE),
    not_recorded("session gc", "ends only expired sessions; --remove-timer reverts --install-timer"),
    no("session import", "commands may work in the session; stop it by its id"),
    yes("session rename", "restores the old name, if it is free"),
    no("session start", "commands may work in the session; stop it by its id"),
    yes("session state set", "restores the old value, with a new revision"),
    yes("session state unset", "restores the old value, with a new revision"),
    no("session stop", "stopped commands cannot continue; start a new session"),
    no("setup", "the files belong to the agent; setup AGENT --undo removes what was added"),
    no("shell", "recorded if it starts a named session; stop that session by its id"),
    no("task cancel", "the agent has stopped the task; send the message again"),
    not_recorded("task download", "writes only the requested files"),
    no("task notification remove", "set it again"),
    no("task notification set", "remove it by its id"),
    yes("trust", "restores the old trust, also after --revoke"),
    not_recorded("tui", "changes are recorded as the commands of the keys"),
    yes("undo", "repeats the operation"),
    not_recorded("user add", SERVICE),
    not_recorded("user approve", SERVICE),
    not_recorded("user disable", SERVICE),
    not_recorded("user token create", SERVICE),
    not_recorded("user token revoke", SERVICE),
];

/// The entry of a command; flags that were recorded with its name do not count.
pub fn recorded(command: &str) -> Option<&'static RecordedCommand> {
    let words = command.split(" --").next().unwrap_or(command);
    COMMANDS.iter().find(|known| known.command == words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_names_a_command_once() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.command < b.command));
    }

    #[test]
    fn a_command_is_found_with_its_flags() {
        assert!(matches!(recorded("session clear --all").unwrap().undo, Undo::No(_)));
        assert!(matches!(recorded("config set").unwrap().undo, Undo::Yes(_)));
        assert!(recorded("deploy").is_none());
    }
}
