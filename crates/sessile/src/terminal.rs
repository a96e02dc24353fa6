//! Identity of a terminal. Pseudo-terminals are recycled, so the device alone does not identify one.

use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use crate::process::ProcessId;

/// Standard streams that are terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// Standard input is a terminal.
    pub stdin: bool,
    /// Standard output is a terminal.
    pub stdout: bool,
    /// Standard error is a terminal.
    pub stderr: bool,
}

/// A terminal: its device, and the leader of the session it controls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// The device, for instance `/dev/pts/3`.
    pub device: PathBuf,
    /// The session leader, usually the shell.
    pub leader: ProcessId,
}

/// The name that every process has for the terminal that controls it.
const CONTROLLING: &str = "/dev/tty";

impl Terminal {
    /// The terminal behind the first standard stream that is one, if it controls this process; with none on a stream, the
    /// one that controls it all the same.
    pub(crate) fn of_process(streams: Streams) -> Option<Self> {
        let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        if streams.stdin {
            Self::of(input.as_fd())
        } else if streams.stdout {
            Self::of(output.as_fd())
        } else if streams.stderr {
            Self::of(error.as_fd())
        } else {
            let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
            Self::of(rustix::fs::open(CONTROLLING, flags, Mode::empty()).ok()?.as_fd())
        }
    }

    /// The device behind the first standard stream that is a terminal, whichever processes it controls.
    pub(crate) fn device_of_stream(streams: Streams) -> Option<PathBuf> {
        let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let (input, output, error) = (input.as_fd(), output.as_fd(), error.as_fd());
        let open = [(streams.stdin, input), (streams.stdout, output), (streams.stderr, error)];
        let (_, fd) = open.into_iter().find(|(is_terminal, _)| *is_terminal)?;
        device(fd)
    }

    fn of(fd: BorrowedFd<'_>) -> Option<Self> {
        // Fails unless the terminal controls this process, which is what has to be known.
        let leader: Pid = rustix::termios::tcgetsid(fd).ok()?;
        let device = device(fd)?;
        Some(Terminal {
            // `ttyname` returns `/dev/tty` for a descriptor of it, which is another terminal in each process.
            device: if device == Path::new(CONTROLLING) { controlling().unwrap_or(device) } else { device },
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
        // From the end: a device's path could hold the separator.
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

fn device(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let device = rustix::termios::ttyname(fd, Vec::new()).ok()?;
    Some(PathBuf::from(String::from_utf8_lossy(device.as_bytes()).into_owned()))
}

/// The device of the terminal that controls this process, under its own name: other calls know it by that.
#[cfg(target_os = "linux")]
fn controlling() -> Option<PathBuf> {
    /// The first major number of pseudo-terminals; each has 256 minor ones.
    const PTS: u64 = 136;
    const CONSOLES: u64 = 4;
    let stat = crate::process::read_kernel_file("/proc/self/stat")?;
    // The program's name may hold spaces, so fields count from the bracket behind it.
    let number: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(4)?.parse().ok()?;
    // The layout of `tty_nr` in proc(5): the minor number is split around the major one.
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    match major {
        PTS..=143 => Some(PathBuf::from(format!("/dev/pts/{}", (major - PTS) * 256 + minor))),
        CONSOLES if minor < 64 => Some(PathBuf::from(format!("/dev/tty{minor}"))),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn controlling() -> Option<PathBuf> {
    None
}
