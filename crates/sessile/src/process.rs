//! Identity of a process: pid and start time, because a pid alone is recycled.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;

/// A process, told apart from any other that has had or will have its pid on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// The pid.
    pub pid: i32,
    /// Start time, in the kernel's unit.
    pub started: u64,
    /// Boot id at the start.
    pub boot: String,
}

impl ProcessId {
    /// The running process.
    pub fn own() -> Option<Self> {
        Self::of(rustix::process::getpid().as_raw_nonzero().get())
    }

    /// A process by its pid, if it lives.
    pub fn of(pid: i32) -> Option<Self> {
        Some(ProcessId { pid, started: start_time(pid)?, boot: boot_id() })
    }

    /// Whether it still lives.
    pub fn is_alive(&self) -> bool {
        // Start times count from boot, so a process of an earlier boot could have the same.
        start_time(self.pid) == Some(self.started) && boot_id() == self.boot
    }
}

#[cfg(target_os = "linux")]
fn start_time(pid: i32) -> Option<u64> {
    let stat = read_kernel_file(&format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses and may hold anything, also ")".
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace();
    // Ended and not yet waited for by its parent is ended.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    // Field 22 of `/proc/PID/stat` (proc(5)): the state that was read is field 3.
    fields.nth(18)?.parse().ok()
}

/// Closes every descriptor but the standard streams: a process that goes on by itself keeps none of its caller's pipes open.
pub fn close_inherited() {
    let dir = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    // Collected first: closing while the directory is read would close its own descriptor.
    let open: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // The directory's own is closed already.
        let _ = nix::unistd::close(descriptor);
    }
}

/// Whether a process is stopped by a signal or a debugger.
#[cfg(target_os = "linux")]
pub(crate) fn is_stopped(pid: i32) -> bool {
    let stat = read_kernel_file(&format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    matches!(after_name.split_ascii_whitespace().next(), Some("T" | "t"))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_stopped(_pid: i32) -> bool {
    false
}

/// The process that started another, where the system tells.
#[cfg(target_os = "linux")]
pub(crate) fn parent(pid: i32) -> Option<i32> {
    let stat = read_kernel_file(&format!("/proc/{pid}/stat"))?;
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(1)?.parse().ok()
}

/// This process and its ancestors.
pub(crate) fn lineage() -> Vec<i32> {
    lineage_of(rustix::process::getpid().as_raw_nonzero().get())
}

/// A process and its ancestors.
pub(crate) fn lineage_of(pid: i32) -> Vec<i32> {
    let mut found = vec![pid];
    while let Some(parent) = found.last().and_then(|pid| parent(*pid)) {
        // The parent can change between two reads, if one on the way ends.
        if parent <= 1 || found.contains(&parent) {
            break;
        }
        found.push(parent);
    }
    found
}

/// Whether a process is on a terminal: someone may be looking at it.
#[cfg(target_os = "linux")]
pub(crate) fn has_terminal(pid: i32) -> bool {
    let stat = read_kernel_file(&format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rfind(')').map_or("", |at| &stat[at + 1..]);
    // Field 7 of `/proc/PID/stat`: the controlling terminal.
    after_name.split_ascii_whitespace().nth(4).is_some_and(|terminal| terminal != "0")
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn has_terminal(_pid: i32) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn parent(pid: i32) -> Option<i32> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    rustix::process::getppid().filter(|_| pid == own).map(|parent| parent.as_raw_nonzero().get())
}

/// Boot id, which is constant for the life of a process.
#[cfg(target_os = "linux")]
pub(crate) fn boot_id() -> String {
    static ID: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let read = || read_kernel_file("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    ID.get_or_init(|| read().trim().to_owned()).clone()
}

#[cfg(not(target_os = "linux"))]
fn start_time(pid: i32) -> Option<u64> {
    // `ps` prints whole seconds; hashing the text keeps it comparable without parsing a locale's date.
    use std::hash::{DefaultHasher, Hash, Hasher};
    let output = std::process::Command::new("/bin/ps")
        .args(["-o", "lstart=", "-p", &pid.to_string()])
        .env("LC_ALL", "C")
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let mut hasher = DefaultHasher::new();
    output.stdout.trim_ascii().hash(&mut hasher);
    Some(hasher.finish() >> 1)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn boot_id() -> String {
    String::new()
}

/// Most bytes that are read of a kernel file.
const KERNEL_FILE_LIMIT: u64 = 1024 * 1024;

/// A small file of the kernel's, if it can be read.
pub(crate) fn read_kernel_file(path: &str) -> Option<String> {
    // Room for all of it: the kernel makes such a file anew for every read.
    let mut text = String::with_capacity(1024);
    File::open(path).ok()?.take(KERNEL_FILE_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycled_pid_is_another_process() {
        let own = ProcessId::own().unwrap();
        assert!(own.is_alive());
        assert!(!ProcessId { started: own.started + 1, ..own.clone() }.is_alive());
        assert!(!ProcessId { boot: "before".into(), ..own }.is_alive());
    }
}
