//! Streams of a command whose output is copied: a pseudo-terminal where the caller has a terminal, a pipe where not.
//!
//! | caller | command |
//! |---|---|
//! | standard input and output are a terminal, in the foreground | a terminal of its own, with a monitor (`child::monitor`) |
//! | only the output is a terminal | the caller's input; the output is a terminal that only passes bytes on |
//! | anything else | the caller's input; a pipe for each stream |
//!
//! If two streams of the caller are the same file, the command gets one stream for both, which keeps the order of its output.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::fstat;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

use super::is_in_foreground;

/// Streams of a command, and the other ends of them.
pub(super) struct CommandStreams {
    /// Whether the command gets a terminal of its own, which also has its input.
    pub(super) has_terminal: bool,
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
    /// Output of the command, with its destinations.
    pub(super) outputs: Vec<OutputStream>,
}

/// Output of a command on its way to the caller's stream.
pub(super) struct OutputStream {
    pub(super) source: OwnedFd,
    pub(super) target: OwnedFd,
    /// Whether the source is a pseudo-terminal.
    pub(super) is_terminal: bool,
}

impl CommandStreams {
    /// Streams that suit those of this process.
    pub(super) fn open() -> std::io::Result<Self> {
        let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let has_terminal = isatty(&stdin) && isatty(&stdout) && is_in_foreground();
        let (first, out) = output(stdout.as_fd(), has_terminal)?;
        let mut outputs = vec![out];
        let second = if is_same_file(stdout.as_fd(), stderr.as_fd()) {
            first.try_clone()?
        } else {
            let (second, error) = output(stderr.as_fd(), false)?;
            outputs.push(error);
            second
        };
        let stdin = if has_terminal { Some(first.try_clone()?) } else { None };
        Ok(CommandStreams { has_terminal, stdin, stdout: first, stderr: second, outputs })
    }

    /// Makes them the streams of a command.
    pub(super) fn apply(&self, command: &mut Command) -> std::io::Result<()> {
        if let Some(stdin) = &self.stdin {
            command.stdin(stdin.try_clone()?);
        }
        command.stdout(self.stdout.try_clone()?).stderr(self.stderr.try_clone()?);
        Ok(())
    }
}

/// End of a stream for the command, and the stream.
fn output(target: BorrowedFd<'_>, is_controlling: bool) -> std::io::Result<(OwnedFd, OutputStream)> {
    let is_terminal = isatty(target);
    let (source, end) = if is_terminal { open_terminal(target, is_controlling)? } else { open_pipe()? };
    Ok((end, OutputStream { source, target: target.try_clone_to_owned()?, is_terminal }))
}

fn open_pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// A pseudo-terminal with the size and the settings of a terminal. One that only passes output on changes no byte of it:
/// the terminal behind it does that.
fn open_terminal(model: BorrowedFd<'_>, is_controlling: bool) -> std::io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    let flags = flags | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let no_tty = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
    let slave: File = OpenOptions::new().read(true).write(true).custom_flags(no_tty).open(path)?;
    let mut settings = tcgetattr(model)?;
    if !is_controlling {
        settings.make_raw();
    }
    tcsetattr(&slave, OptionalActions::Now, &settings)?;
    if let Ok(size) = tcgetwinsize(model) {
        tcsetwinsize(&slave, size)?;
    }
    Ok((master, slave.into()))
}

fn is_same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let (Ok(one), Ok(other)) = (fstat(one), fstat(other)) else { return false };
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
