//! One reviewed table: the effect of each command on state, the way its state is opened, and its errors.
//!
//! The table drives the opening of the state, `manifest`, and every description of the commands for programs. A test
//! compares it with the parser.

mod table;

use sessile::Code;
use sessile::call::{Mode, SessionMode, WithheldSelection};

pub use table::{COMMON, TABLE};

/// Effect of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEffect {
    /// Changes nothing.
    Read,
    /// Changes state, and can be reverted.
    Write,
    /// Removes data.
    Destructive,
}

impl CommandEffect {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            CommandEffect::Read => "read",
            CommandEffect::Write => "write",
            CommandEffect::Destructive => "destructive",
        }
    }
}

/// A command's entry.
#[derive(Clone, Copy, Debug)]
pub struct CommandEntry {
    /// The words that name it.
    pub path: &'static str,
    /// Effect.
    pub effect: CommandEffect,
    /// Scope of its changes.
    pub scope: Option<&'static str>,
    /// The codes it can fail with, beside [`COMMON`].
    pub codes: &'static [Code],
    /// Doing it again with the same arguments succeeds and has no further effect.
    pub idempotent: bool,
    /// Whether it talks to other machines or services, such as agents and login servers, or runs commands that may.
    pub outside: bool,
    /// Mode in which its state is opened.
    pub mode: Mode,
    /// Session is one of a server if the call names a server. A command that runs on this machine, and a lock that is
    /// held meanwhile, belong to a session of this machine.
    pub uses_remote_session: bool,
    /// Exit status is that of the command it runs.
    pub has_child_status: bool,
    /// Reports a missing context of a flag, instead of failing.
    pub reports_missing_context: bool,
}

impl CommandEntry {
    const fn new(
        path: &'static str,
        effect: CommandEffect,
        scope: Option<&'static str>,
        codes: &'static [Code],
    ) -> Self {
        CommandEntry {
            path,
            effect,
            scope,
            codes,
            idempotent: matches!(effect, CommandEffect::Read),
            outside: false,
            mode: Mode::STRICT,
            uses_remote_session: false,
            has_child_status: false,
            reports_missing_context: false,
        }
    }

    const fn read(path: &'static str, codes: &'static [Code]) -> Self {
        let mut entry = Self::new(path, CommandEffect::Read, None, codes);
        // Reading is harmless with a selection that this call may not use, as long as it is named.
        entry.mode.withheld_selection = WithheldSelection::Report;
        entry
    }

    const fn write(path: &'static str, scope: &'static str, codes: &'static [Code]) -> Self {
        Self::new(path, CommandEffect::Write, Some(scope), codes)
    }

    const fn destructive(path: &'static str, scope: &'static str, codes: &'static [Code]) -> Self {
        Self::new(path, CommandEffect::Destructive, Some(scope), codes)
    }

    /// Reads, and writes only with a flag of its own.
    const fn writing_on_request(self, scope: &'static str) -> Self {
        CommandEntry { effect: CommandEffect::Write, scope: Some(scope), ..self }
    }

    const fn idempotent(self) -> Self {
        CommandEntry { idempotent: true, ..self }
    }

    const fn outside(self) -> Self {
        CommandEntry { outside: true, ..self }
    }

    /// Reads, but sends requests for the session or context that is selected.
    const fn acting_on_selection(mut self) -> Self {
        self.mode.withheld_selection = WithheldSelection::Fail;
        self
    }

    /// Starts whatever is selected, because each of its calls answers for itself.
    const fn reporting_selection(mut self) -> Self {
        self.mode.withheld_selection = WithheldSelection::Report;
        self
    }

    /// Does the same whatever session or context is selected.
    const fn ignoring_selection(mut self) -> Self {
        self.mode.withheld_selection = WithheldSelection::Ignore;
        self
    }

    const fn tolerating_broken_settings(mut self) -> Self {
        self.mode.tolerates_broken_settings = true;
        self
    }

    const fn tolerating_stale_session(mut self) -> Self {
        self.mode.tolerates_stale_session = true;
        self
    }

    const fn with_session(mut self, session: SessionMode) -> Self {
        self.mode.session = session;
        self
    }

    const fn reporting_missing_context(self) -> Self {
        CommandEntry { reports_missing_context: true, ..self }
    }

    const fn with_remote_session(self) -> Self {
        CommandEntry { uses_remote_session: true, ..self }
    }

    const fn with_child_status(self) -> Self {
        CommandEntry { has_child_status: true, ..self }
    }
}

/// The entry of a command.
pub fn entry(path: &str) -> Option<&'static CommandEntry> {
    TABLE.iter().find(|entry| entry.path == path)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn find<'a>(root: &'a clap::Command, path: &str) -> &'a clap::Command {
        path.split(' ').fold(root, |command, name| command.find_subcommand(name).unwrap())
    }

    #[test]
    fn commands_with_a_remote_session_take_a_server() {
        let mut root = Cli::command();
        root.build();
        for entry in TABLE.iter().filter(|entry| entry.uses_remote_session) {
            // The server of `history show` is that of `history`.
            let parent = entry.path.rsplit_once(' ').map_or(entry.path, |(parent, _)| parent);
            let takes_server = |path| find(&root, path).get_arguments().any(|arg| arg.get_id() == "server");
            assert!(takes_server(entry.path) || takes_server(parent), "{}", entry.path);
        }
    }

    #[test]
    fn commands_that_start_their_session_write() {
        for entry in TABLE.iter().filter(|entry| entry.mode.session != SessionMode::Existing) {
            // `mcp config` prints how the server is started, and so reads the session's name as the server does.
            let writes = entry.effect != CommandEffect::Read || entry.path == "mcp config";
            assert!(writes, "{}", entry.path);
        }
    }
}
