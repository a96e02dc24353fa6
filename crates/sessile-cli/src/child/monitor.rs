//! Monitor of a command on a terminal of its own: this program under another name, between `run --log` and the command.
//!
//! The monitor leads the session of the terminal, and the command has a process group of its own in that session. So Ctrl-Z
//! stops the command as on any terminal: without the monitor its group would be an orphaned one, which the system does not
//! stop. When the command stops, the monitor stops too, which its parent notices; a SIGCONT continues both. Signals are passed
//! on.
//!
//! Standard input and error are those of the command. Standard output is a pipe that the parent reads: an error number, if
//! the command could not be started. The exit status is the command's, in the form of a shell.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::Command;

use sessile::World;

use super::{Child, Supervision};
use crate::error::{Failure, Outcome};

/// Process name of a monitor.
pub(crate) const PROGRAM: &str = "sessile-pty";

/// The program as a monitor. Its arguments are the command.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> Outcome {
    let words: Vec<OsString> = words.collect();
    let stdin = std::io::stdin();
    let terminal = rustix::process::setsid()
        .and_then(|_| rustix::process::ioctl_tiocsctty(&stdin))
        .map_err(std::io::Error::from)
        .and_then(|()| stdin.as_fd().try_clone_to_owned());
    let terminal = match terminal {
        Ok(terminal) => terminal,
        Err(error) => return Err(report(&error)),
    };
    let mut child = Child::new(&words, &World::from_process());
    child.supervision = Supervision::Monitor { terminal: terminal.into() };
    child.run(None)
}

/// Tells the parent why the command was not started.
pub(super) fn report(error: &std::io::Error) -> Failure {
    /// Exit status of a command that was not found.
    const NOT_STARTED: u8 = 127;
    let number = error.raw_os_error().unwrap_or_default();
    let _ = std::io::stdout().write_all(number.to_string().as_bytes());
    let _ = std::io::stdout().flush();
    Failure::Told(NOT_STARTED)
}

/// The monitor of a command: the same words and variables, under another program.
pub(super) fn monitor_of(command: &Command) -> std::io::Result<Command> {
    use std::os::unix::process::CommandExt;
    let mut monitor = Command::new(std::env::current_exe()?);
    monitor.arg0(PROGRAM).arg(command.get_program()).args(command.get_args());
    // All variables of the command are set explicitly.
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    monitor.env_clear().envs(variables);
    Ok(monitor)
}
