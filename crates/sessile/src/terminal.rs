//! Which terminal this is. Pseudo-terminals are recycled, so the device alone would not say.

use std::path::PathBuf;

use rustix::fd::BorrowedFd;
use rustix::process::Pid;

use crate::process::ProcessId;

/// A terminal: its device, and the leader of the session it controls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// The device, for instance `/dev/pts/3`.
    pub device: PathBuf,
    /// The session leader, usually the shell.
    pub leader: ProcessId,
}

impl Terminal {
    /// The terminal behind the first standard stream that is one, if it controls this process.
    pub(crate) fn of_process(stdin: bool, stdout: bool) -> Option<Self> {
        let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        if stdin {
            Self::of(std::os::fd::AsFd::as_fd(&input))
        } else if stdout {
            Self::of(std::os::fd::AsFd::as_fd(&output))
        } else {
            Self::of(std::os::fd::AsFd::as_fd(&error))
        }
    }

    fn of(fd: BorrowedFd<'_>) -> Option<Self> {
        let leader: Pid = rustix::termios::tcgetsid(fd).ok()?;
        let device = rustix::termios::ttyname(fd, Vec::new()).ok()?;
        Some(Terminal {
            device: PathBuf::from(String::from_utf8_lossy(device.as_bytes()).into_owned()),
            leader: ProcessId::of(leader.as_raw_nonzero().get())?,
        })
    }

    /// The key it is remembered by.
    pub fn key(&self) -> String {
        let ProcessId { pid, started, boot } = &self.leader;
        format!("{}|{pid}|{started}|{boot}", self.device.display())
    }

    /// Whether the terminal that a key was made for is still there.
    pub fn key_is_alive(key: &str) -> bool {
        let mut parts = key.rsplitn(4, '|');
        let (Some(boot), Some(started), Some(pid)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        match (pid.parse(), started.parse()) {
            (Ok(pid), Ok(started)) => ProcessId { pid, started, boot: boot.to_owned() }.is_alive(),
            _ => false,
        }
    }

    /// The device named in a key, to show.
    pub fn key_device(key: &str) -> &str {
        key.split('|').next().unwrap_or(key)
    }
}
