//! The interactive rule: which calls may use the selections of their terminal.
//!
//! A call is interactive if standard input is a terminal and neither `CI` nor `--no-input` is set. Only an interactive
//! call reads the selections of its terminal, and it changes one only if standard output is a terminal too. So
//! subprocesses of one terminal with piped, closed or captured streams never switch each other. A call that is not
//! interactive, but has a terminal with a selection on another stream, must not fall back to something else in silence:
//! it fails, or only reports. The same holds for a call in a session of processes that the terminal does not control, as
//! `setsid` starts one.

use std::path::PathBuf;

use crate::call::StateCall;
use crate::terminal::Terminal;

/// Access of a call to the selections of its terminal.
#[derive(Clone, Debug)]
pub(crate) enum TerminalAccess<'a> {
    /// Read them.
    Read(&'a Terminal),
    /// No access, although the terminal may have selections.
    Withheld(&'a Terminal, &'static str),
    /// Nothing: the terminal on a standard stream controls other processes, and only they know it by its key.
    Foreign(PathBuf),
}

impl StateCall {
    /// Whether a person started the call: standard input is a terminal, and neither `CI` nor `--no-input` is set.
    pub fn is_interactive(&self) -> bool {
        self.obstacle().is_none()
    }

    /// The terminal whose selections this call reads.
    pub fn interactive_terminal(&self) -> Option<&Terminal> {
        self.world().terminal().filter(|_| self.is_interactive())
    }

    /// The terminal whose selections this call may change: with captured output a script may be the caller.
    pub fn selectable_terminal(&self) -> Option<&Terminal> {
        self.interactive_terminal().filter(|_| self.world().streams().stdout)
    }

    pub(crate) fn terminal_access(&self) -> Option<TerminalAccess<'_>> {
        let Some(terminal) = self.world().terminal() else {
            return self.world().foreign_terminal().map(TerminalAccess::Foreign);
        };
        Some(match self.obstacle() {
            None => TerminalAccess::Read(terminal),
            Some(reason) => TerminalAccess::Withheld(terminal, reason),
        })
    }

    /// Reason why this call is not interactive.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        if !self.world().streams().stdin {
            Some("standard input is not a terminal")
        } else if self.args().no_input {
            Some("--no-input is set")
        } else if self.world().is_ci() {
            Some("CI is set")
        } else {
            None
        }
    }
}
