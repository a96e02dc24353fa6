//! Processes that a command leaves: adopted by this process, and reaped when they end.
//!
//! A daemon closes the descriptor that holds the room's lock. As a child of this process it is still detected.

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

/// Makes this process the parent of processes whose parents end before them. Returns `false` where the system cannot.
#[cfg(target_os = "linux")]
pub(super) fn adopt() -> bool {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn adopt() -> bool {
    false
}

/// Takes the status of every child that has ended, or it would stay as a zombie until this process ends. Returns that of the command.
pub(super) fn reap(command: Pid) -> std::io::Result<Option<WaitStatus>> {
    loop {
        // Any child: a daemon leads a process group of its own.
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => return Ok(Some(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether a process that the command started is left. The command itself has ended.
pub(crate) fn are_left() -> bool {
    // Without the adoption, leftover processes cannot be detected.
    if !is_adopting() {
        return true;
    }
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            left => return !matches!(left, Err(Errno::CHILD)),
        }
    }
}

#[cfg(target_os = "linux")]
fn is_adopting() -> bool {
    matches!(rustix::process::child_subreaper(), Ok(Some(_)))
}

#[cfg(not(target_os = "linux"))]
fn is_adopting() -> bool {
    false
}
