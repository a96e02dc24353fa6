//! One reviewed table: which commands are recorded, and which of them can be undone.
//!
//! It makes the reference, whose test holds it against the commands there are. [`perform`](super::perform) and
//! [`record`](super::record) hold it against what they are asked, in debug builds.

/// Whether a command can be undone, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Yes; what undoing it does.
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

const NO_SECRET: &str = "no secret is in the history; set the credential anew";
const ONLY_A_FILE: &str = "it writes only what it is told to, beside the state";
const SERVICE: &str = "the service keeps a record of its own";

/// Every command that writes, in the order of their names.
pub const COMMANDS: &[RecordedCommand] = &[
    yes("agent add", "the name means what it meant, or nothing"),
    yes("agent remove", "the agent has its name again"),
    no("auth clear", NO_SECRET),
    no("auth login", "the server has handed out tokens; log out instead"),
    no("auth logout", NO_SECRET),
    no("auth move", "move them back"),
    no("auth refresh", "the server has handed out a new token, and the old one may be void"),
    no("auth rekey", "no key is in the history; rekey again"),
    no("auth set", NO_SECRET),
    not_recorded("auth unlock", "it ends by itself, or with --end"),
    not_recorded("backup", ONLY_A_FILE),
    no("backup restore", "the whole history was replaced too; restore the copy that it kept"),
    yes("config edit", "the file has its old text again"),
    yes("config set", "the key has its old value again, or none"),
    yes("config unset", "the key has its old value again"),
    no(
        "context approve",
        "an approval ends by itself or is revoked, only a person gives one, and a PIN is never kept",
    ),
    yes("context create", "the context's file is gone again"),
    yes("context delete", "the file and every selection of it are back; approvals are not"),
    yes("context edit", "the context has its old text again"),
    not_recorded("context export", ONLY_A_FILE),
    yes("context import", "one operation for each context: its file is gone again, or has its old text"),
    yes(
        "context rename",
        "the file and every selection of it have the old name again; approvals stay revoked",
    ),
    yes("context use", "the scope has its old selection again"),
    no("conversation clear", "what was said is gone; export a conversation to keep it"),
    no("conversation rename", "name it back"),
    not_recorded("env", "it prepares a session's room as the first command in it would"),
    not_recorded("hook install", "hook remove takes the line out again"),
    not_recorded("hook remove", "hook install adds the line again"),
    yes("import", "one operation for each context: its file is gone again, or has its old text"),
    yes("import apply", "one operation for each context, as with import"),
    no("lock acquire", "others may have acted on it; release the lock"),
    no("lock break", "the holder has lost it; acquire the lock anew"),
    no("lock release", "another may have it by now; acquire the lock anew"),
    no("lock renew", "others may have acted on it; release the lock"),
    not_recorded("lock run", "the lock ends with its command"),
    not_recorded("man", ONLY_A_FILE),
    not_recorded("mcp", "what its tools change is recorded as the commands that they are"),
    not_recorded("message send", "the conversation itself is the record of what was said"),
    not_recorded("message stream", "the conversation itself is the record of what was said"),
    not_recorded("probe", "it changes nothing here; what it said stays with the service"),
    no("run", "recorded when it starts a session by name; stop that by its id"),
    not_recorded("serve", SERVICE),
    not_recorded("serve backup", ONLY_A_FILE),
    not_recorded("serve restore", SERVICE),
    not_recorded("session attach", "detach, or attach to the other one"),
    no("session clear", "what was forgotten is gone; export a session to keep it"),
    not_recorded("session detach", "attach to it again"),
    not_recorded("session export", ONLY_A_FILE),
    not_recorded(
        "session gc",
        "it ends only what has expired already; --remove-timer removes what --install-timer wrote",
    ),
    no("session import", "what works in a session must not lose it; stop it by its id"),
    yes("session rename", "the session has its old name again, if that is still free"),
    no("session start", "what works in a session must not lose it; stop it by its id"),
    yes("session state set", "the old value is back, under a new revision"),
    yes("session state unset", "the old value is back, under a new revision"),
    no("session stop", "what was stopped does not run on; start a new session"),
    no("shell", "recorded when it starts a session by name; stop that by its id"),
    no("task cancel", "the agent has stopped; send the message again"),
    no("task notification remove", "set it again"),
    no("task notification set", "remove it by its id"),
    yes("trust", "the trust is as it was; also after --revoke"),
    yes("undo", "the operation is done again"),
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
