//! World of a program: variables, working directory, clock, terminal, user.
//!
//! The library reads none of this by itself. A program captures its world once, in `main`; a server or a
//! test makes one up.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::account::AccountEntry;
use crate::terminal::Terminal;

pub use crate::terminal::Streams;

/// Source of the time.
#[derive(Clone, Copy, Debug)]
enum Clock {
    System,
    Fixed(Timestamp),
}

/// The world a program runs in.
#[derive(Clone, Debug)]
pub struct World {
    variables: BTreeMap<OsString, OsString>,
    cwd: Option<PathBuf>,
    home: OnceCell<Option<PathBuf>>,
    streams: Streams,
    terminal: OnceCell<Option<Terminal>>,
    clock: Clock,
    is_boot_clock_shifted: OnceCell<bool>,
}

impl World {
    /// A world with nothing in it: no variables, no home, no terminal.
    pub fn empty() -> Self {
        World {
            variables: BTreeMap::new(),
            cwd: None,
            home: OnceCell::from(None),
            streams: Streams::default(),
            terminal: OnceCell::from(None),
            clock: Clock::System,
            is_boot_clock_shifted: OnceCell::new(),
        }
    }

    /// The world of the running process. Call it once, in `main`.
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the process's world")]
    pub fn from_process() -> Self {
        World {
            variables: std::env::vars_os().collect(),
            // The directory may have been removed, which most commands do not mind.
            cwd: std::env::current_dir().ok(),
            home: OnceCell::new(),
            streams: Streams {
                stdin: std::io::stdin().is_terminal(),
                stdout: std::io::stdout().is_terminal(),
                stderr: std::io::stderr().is_terminal(),
            },
            terminal: OnceCell::new(),
            clock: Clock::System,
            is_boot_clock_shifted: OnceCell::new(),
        }
    }

    /// The same world with one variable set.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The same world without a variable.
    #[must_use]
    pub fn without_variable(mut self, name: &str) -> Self {
        self.variables.remove(OsStr::new(name));
        self
    }

    /// The same world in another directory.
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// The same world with another home.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = OnceCell::from(Some(home.into()));
        self
    }

    /// The same world at a fixed time.
    #[must_use]
    pub fn with_now(mut self, now: Timestamp) -> Self {
        self.clock = Clock::Fixed(now);
        self
    }

    /// The same world in a time namespace that shifts the clock since boot.
    #[must_use]
    pub fn with_shifted_boot_clock(mut self) -> Self {
        self.is_boot_clock_shifted = OnceCell::from(true);
        self
    }

    /// The same world on another terminal, or on none.
    #[must_use]
    pub fn with_terminal(mut self, terminal: Option<Terminal>) -> Self {
        let on = terminal.is_some();
        self.streams = Streams { stdin: on, stdout: on, stderr: on };
        self.terminal = OnceCell::from(terminal);
        self
    }

    /// The same world with no standard stream on a terminal. The terminal that controls the process stays.
    #[must_use]
    pub fn without_stream_terminals(mut self) -> Self {
        self.streams = Streams::default();
        self.terminal = OnceCell::new();
        self
    }

    /// A variable; one that is set to nothing counts as not set.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        // As XDG and most tools treat an empty variable.
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Every variable, in the order of their names.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Variable with an absolute path; any other value is ignored, as the XDG specification requires.
    pub fn path_variable(&self, name: &str) -> Option<&Path> {
        self.variable(name).map(Path::new).filter(|path| path.is_absolute())
    }

    /// The variables whose names are UTF-8 and begin like this, in order.
    pub fn variables_with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a OsStr)> {
        self.variables
            // Sorted, so that a look-up does not visit every variable.
            .range(OsString::from(prefix)..)
            .take_while(move |(name, _)| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
            // A name that is not UTF-8 is skipped and does not end the list: names after it are as good.
            .filter_map(|(name, value)| Some((name.to_str()?, value.as_os_str())))
            .filter(|(_, value)| !value.is_empty())
    }

    /// The working directory, unless it was removed.
    pub fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// The home directory: `HOME`, else what the password database says.
    pub fn home(&self) -> Option<&Path> {
        self.home
            // The password database can be a network service, so it is asked only without `HOME`.
            .get_or_init(|| self.path_variable("HOME").map(Path::to_owned).or_else(|| self.account_home()))
            .as_deref()
    }

    /// The home directory that the password database says, whatever `HOME` is.
    pub fn account_home(&self) -> Option<PathBuf> {
        AccountEntry::of_user(self.uid()).map(|user| user.home).filter(|dir| dir.is_absolute())
    }

    /// The login shell that the password database says.
    pub fn account_shell(&self) -> Option<PathBuf> {
        AccountEntry::of_user(self.uid()).map(|user| user.shell).filter(|shell| shell.is_absolute())
    }

    /// The terminal that controls this process, if one does: also where no standard stream leads to it.
    pub fn terminal(&self) -> Option<&Terminal> {
        self.terminal.get_or_init(|| Terminal::of_process(self.streams)).as_ref()
    }

    /// The device of a terminal on a standard stream that controls other processes and not this one.
    pub(crate) fn foreign_terminal(&self) -> Option<PathBuf> {
        if self.streams == Streams::default() || self.terminal().is_some() {
            return None;
        }
        Terminal::device_of_stream(self.streams)
    }

    /// Which standard streams are terminals.
    pub fn streams(&self) -> Streams {
        self.streams
    }

    /// Whether this looks like an unattended run (`CI` is set and not to a word for no).
    pub fn is_ci(&self) -> bool {
        self.variable("CI").is_some_and(|value| value != "false" && value != "0")
    }

    /// Whether the call can prompt a person, who sees the question and can type the answer.
    pub fn can_ask(&self) -> bool {
        self.streams.stdin && self.streams.stderr && !self.is_ci()
    }

    /// The time.
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the clock")]
    pub fn now(&self) -> Timestamp {
        match self.clock {
            Clock::System => {
                // A clock beyond the year 9999 is wrong; what is compared with it is past or to come all the same.
                let now = std::time::SystemTime::now();
                let is_past = now < std::time::UNIX_EPOCH;
                Timestamp::try_from(now).unwrap_or(if is_past { Timestamp::MIN } else { Timestamp::MAX })
            }
            Clock::Fixed(now) => now,
        }
    }

    /// Time since the machine started, suspension included. It cannot be set, but a time namespace can shift it: see
    /// [`World::is_boot_clock_shifted`].
    pub fn since_boot(&self) -> Duration {
        let now = rustix::time::clock_gettime(BOOT_CLOCK);
        Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
    }

    /// Whether a time namespace shifts the clocks since boot. It reads files of the kernel, so that only approvals ask.
    pub fn is_boot_clock_shifted(&self) -> bool {
        *self.is_boot_clock_shifted.get_or_init(is_in_shifted_time_namespace)
    }

    /// Time since the machine started without what it slept.
    pub fn awake_since_boot(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
    }

    /// The machine's name.
    pub fn host_name(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    /// The numeric user.
    pub fn uid(&self) -> u32 {
        rustix::process::getuid().as_raw()
    }

    /// The user's name: in the password database, else in `USER` or `LOGNAME`, else the number.
    pub fn user_name(&self) -> String {
        let uid = self.uid();
        let said = || ["USER", "LOGNAME"].iter().find_map(|name| self.variable(name)?.to_str());
        match AccountEntry::of_user(uid) {
            Some(user) => user.name,
            // The name of another user is not this one's, whoever set the variable.
            None => said().filter(|name| AccountEntry::is_free(name)).map_or(uid.to_string(), str::to_owned),
        }
    }
}

#[cfg(target_os = "linux")]
// Unlike the monotonic clock it goes on while the machine sleeps.
const BOOT_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOT_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// Whether this process or its children have clocks with an offset. The kernel tells the offsets of the children only, so
/// that children in another namespace count too.
#[cfg(target_os = "linux")]
fn is_in_shifted_time_namespace() -> bool {
    let namespace = |name: &str| std::fs::read_link(format!("/proc/self/ns/{name}")).ok();
    namespace("time") != namespace("time_for_children")
        || crate::process::read_kernel_file("/proc/self/timens_offsets").is_some_and(|text| has_offset(&text))
}

#[cfg(not(target_os = "linux"))]
fn is_in_shifted_time_namespace() -> bool {
    false
}

/// Whether a clock in `/proc/self/timens_offsets` has an offset: lines of a name, seconds and nanoseconds.
#[cfg(target_os = "linux")]
fn has_offset(offsets: &str) -> bool {
    offsets.lines().flat_map(|line| line.split_ascii_whitespace().skip(1)).any(|offset| offset != "0")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn time_namespace_offset_of_any_clock_is_found() {
        assert!(!has_offset("monotonic           0         0\nboottime            0         0\n"));
        assert!(!has_offset(""));
        for offsets in ["monotonic 0 0\nboottime 400 0\n", "monotonic -1 0\nboottime 0 0\n", "boottime 0 5\n"]
        {
            assert!(has_offset(offsets), "{offsets}");
        }
        assert!(!World::empty().is_boot_clock_shifted(), "the tests run with the machine's clocks");
    }
}
