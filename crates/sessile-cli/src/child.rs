//! Running a command as a child: its streams, signals and status are its own. Its output can be copied to the session's room
//! on the way ([`Child::with_log`]).

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::io::{Errno, FdFlags, fcntl_setfd, retry_on_intr};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpgrp, getpid, kill_process,
    kill_process_group, waitid, waitpid,
};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use sessile::World;
use sessile::error::RunError;
use sessile::session::OutputLog;
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGTTIN, SIGTTOU, SIGUSR1,
    SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU,
};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Origin;

use self::relay::{OutputRelay, TerminalLink};
use self::streams::{CommandStreams, OutputStream};
use crate::error::{CommandError, Failure, Outcome};

pub(crate) mod monitor;
pub(crate) mod orphans;
mod relay;
mod streams;

/// Grace period between SIGTERM and SIGKILL after a timeout.
const GRACE: Duration = Duration::from_secs(5);

/// Keeps the memory of this process, which may hold secrets, out of core dumps and away from debuggers of the same user.
/// Affects this process alone: `execve` resets the flag, so a command keeps its own core dumps.
#[cfg(target_os = "linux")]
pub(crate) fn forbid_core_dumps() {
    // Where the kernel does not know it, a core dump is as likely as before.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn forbid_core_dumps() {}

/// Interval in which a child is looked at where nothing tells of its end.
const PAUSE: Duration = Duration::from_millis(10);

/// Signals of this process, which are read from a pipe.
type Signals = SignalDelivery<UnixStream, WithOrigin>;

/// A command to be run.
pub(crate) struct Child {
    command: Command,
    supervision: Supervision,
    adopts: bool,
}

/// Task of this process for a command, beside waiting for its end.
enum Supervision {
    /// Nothing: the command has the streams of this process.
    Plain,
    /// Passes the output on and copies it.
    Logged(Arc<OutputLog>),
    /// Leads the session of the command's terminal.
    Monitor { terminal: Arc<OwnedFd> },
}

impl Supervision {
    /// Gives a command its streams, where they are not those of this process.
    fn set_streams(&self, command: &mut Command, streams: Option<&CommandStreams>) -> std::io::Result<()> {
        if let Supervision::Monitor { terminal } = self {
            // The monitor's own standard output is a pipe to its parent.
            command.stdout(terminal.try_clone()?).process_group(0);
        }
        streams.map_or(Ok(()), |streams| streams.apply(command))
    }
}

/// A command that was started.
struct StartedChild {
    keeper: Keeper,
    signals: Signals,
    program: String,
    outputs: Option<(Vec<OutputStream>, TerminalLink)>,
    /// Report of a monitor.
    report: Option<ChildStdout>,
}

/// Process that is waited for, and what its stops and signals concern.
#[derive(Clone)]
struct Keeper {
    pid: Pid,
    /// Whether a signal tells this process of stops.
    is_told: bool,
    terminals: Option<Arc<TerminalLink>>,
    /// Terminal of the command, if this process is its monitor.
    monitored: Option<Arc<OwnedFd>>,
    /// Whether processes whose parents have ended become children of this process.
    adopts: bool,
}

impl From<Command> for Child {
    fn from(command: Command) -> Self {
        Child { command, supervision: Supervision::Plain, adopts: false }
    }
}

impl Child {
    /// A command with the variables of this process.
    pub(crate) fn new(words: &[OsString], world: &World) -> Self {
        let (program, arguments) =
            words.split_first().map_or((OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
        let mut command = Command::new(&program);
        // Set and not inherited: `spawn_as_script` finds them in the command, as those of a session.
        command.args(arguments).env_clear().envs(world.variables());
        Child { command, supervision: Supervision::Plain, adopts: false }
    }

    /// Copies the output on its way.
    pub(crate) fn with_log(mut self, log: &Arc<OutputLog>) -> Self {
        self.supervision = Supervision::Logged(Arc::clone(log));
        self
    }

    /// Becomes the parent of all processes that the command leaves, so that [`orphans::are_left`] tells whether any is left.
    pub(crate) fn adopting(self) -> Self {
        Child { adopts: orphans::adopt(), ..self }
    }

    pub(crate) fn env(mut self, name: &str, value: String) -> Self {
        self.command.env(name, value);
        self
    }

    /// Takes a variable away that it would inherit.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Keeps a descriptor open in the child.
    pub(crate) fn inherit(self, file: &File) -> Self {
        // If that fails the child runs all the same; this process holds the lock for it.
        let _ = fcntl_setfd(file, FdFlags::empty());
        self
    }

    /// Starts a script without an interpreter line by `/bin/sh`, as `execvp` does. The variables are those of the command,
    /// all of which are set explicitly.
    fn spawn_as_script(
        &self,
        error: std::io::Error,
        streams: Option<&CommandStreams>,
    ) -> std::io::Result<std::process::Child> {
        const NO_FORMAT: i32 = 8;
        // ENOEXEC: `execvp` falls back to the shell, the `posix_spawn` of `Command::spawn` does not.
        if error.raw_os_error() != Some(NO_FORMAT) {
            return Err(error);
        }
        let program = self.command.get_program();
        let variable = self.command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
        let mut found = variable.into_iter().flat_map(std::env::split_paths).map(|dir| dir.join(program));
        let is_path = program.as_encoded_bytes().contains(&b'/');
        let script = found.find(|path| !is_path && path.is_file()).unwrap_or_else(|| program.into());
        let variables = self.command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let mut shell = Command::new("/bin/sh");
        shell.arg(script).args(self.command.get_args()).env_clear().envs(variables);
        self.supervision.set_streams(&mut shell, streams)?;
        shell.spawn()
    }

    /// The same command with the path of its program, which is searched for in its own `PATH`; `None` if that changes nothing. The
    /// standard library forks this whole process for a search in another `PATH`, and for a path it does not.
    fn with_found_program(&self) -> Option<Command> {
        let program = self.command.get_program();
        let is_path = program.as_encoded_bytes().contains(&b'/');
        if is_path || program.is_empty() || !matches!(self.supervision, Supervision::Plain) {
            return None;
        }
        let (_, search) = self.command.get_envs().find(|(name, _)| *name == "PATH")?;
        let mut candidates = std::env::split_paths(search?).map(|dir| dir.join(program));
        // Skips files that are not executable, as `execvp` does.
        let is_program = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
        // An empty entry of `PATH` means the working directory, and leaves the name without a slash.
        let found = candidates.find(is_program).filter(|path| path.as_os_str() != program)?;
        let variables = self.command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let mut command = Command::new(found);
        command.arg0(program).args(self.command.get_args()).env_clear().envs(variables);
        Some(command)
    }

    fn not_started(&self, source: std::io::Error) -> Failure {
        match self.supervision {
            Supervision::Monitor { .. } => monitor::report(&source),
            _ => RunError::NotStarted { program: self.program(), source }.into(),
        }
    }

    fn program(&self) -> String {
        self.command.get_program().to_string_lossy().into_owned()
    }

    /// Runs the command to its end or its timeout. A status other than 0 is passed on.
    pub(crate) fn run(self, timeout: Option<Duration>) -> Outcome {
        self.run_watched(timeout, None::<fn(&dyn Fn(), &mpsc::Receiver<()>) -> Option<()>>).0
    }

    /// Runs the command beside a thread. `watch` gets a handle that ends the command and a receiver that reports its
    /// end; its result comes with the outcome.
    pub(crate) fn run_watched<T: Send>(
        mut self,
        timeout: Option<Duration>,
        watch: Option<impl FnOnce(&dyn Fn(), &mpsc::Receiver<()>) -> Option<T> + Send>,
    ) -> (Outcome, Option<T>) {
        // The child's variables are in this process's memory until the spawn.
        forbid_core_dumps();
        let started = self.start();
        let log = match &self.supervision {
            Supervision::Logged(log) => Some(Arc::clone(log)),
            _ => None,
        };
        // Its variables may be secrets, and are of no use any more. Its ends of the streams are closed with it.
        drop(self);
        let StartedChild { mut keeper, signals, program, outputs, report } = match started {
            Ok(started) => started,
            Err(failure) => return (Err(failure), None),
        };
        let relay =
            match outputs.zip(log).map(|((streams, link), log)| OutputRelay::start(streams, link, &log)) {
                None => None,
                Some(Ok(relay)) => Some(relay),
                Some(Err(source)) => {
                    let _ = kill_process(keeper.pid, Signal::KILL);
                    let _ = wait(&keeper, None, None);
                    let refused = CommandError::ThreadRefused { purpose: "to copy the output", source };
                    return (Err(Failure::from(refused).into_own()), None);
                }
            };
        keeper.terminals = relay.as_ref().map(|relay| Arc::clone(&relay.terminals));
        let (ended, found) = attend(&keeper, signals, timeout, watch);
        if let Some(relay) = relay {
            relay.finish();
        }
        let mut text = String::new();
        let told = report.and_then(|mut report| report.read_to_string(&mut text).ok());
        match text.parse() {
            Ok(number) if told.is_some() => {
                let source = std::io::Error::from_raw_os_error(number);
                (Err(RunError::NotStarted { program, source }.into()), found)
            }
            _ => (ended, found),
        }
    }

    fn start(&mut self) -> Result<StartedChild, Failure> {
        // A terminal sends its signals to both; this process must only outlive them. What a process sends to this one
        // is meant for the child and passed on. What is ignored here, under nohup for example, the child ignores too.
        let SignalMasks { ignored, blocked } = signal_masks();
        let is_logged = matches!(self.supervision, Supervision::Logged(_));
        let of_terminals: &[i32] = if is_logged { &[SIGWINCH, SIGCONT] } else { &[] };
        let timers = [SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGIO];
        let wanted = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
        let wanted = wanted.iter().chain(&timers).chain(of_terminals);
        let wanted = wanted.filter(|signal| ignored & (1 << (*signal - 1)) == 0);
        let is_told = blocked & (1 << (SIGCHLD - 1)) == 0;
        // Also where the caller ignores it: the kernel would then discard the command's status.
        let wanted = wanted.chain([&SIGCHLD]);
        let (read, write) = UnixStream::pair()?;
        let signals = Signals::with_pipe(read, write, WithOrigin::default(), wanted)?;
        let streams = if is_logged { Some(CommandStreams::open()?) } else { None };
        let link = streams.as_ref().map(TerminalLink::of).transpose()?;
        let is_monitored = streams.as_ref().is_some_and(|streams| streams.has_terminal);
        // No thread is started before: with the first one the C library takes over signals that the child would inherit.
        let spawned = if is_monitored {
            let mut monitor = monitor::monitor_of(&self.command)?;
            self.supervision.set_streams(&mut monitor, streams.as_ref())?;
            monitor.stdout(Stdio::piped()).spawn()
        } else {
            self.supervision.set_streams(&mut self.command, streams.as_ref())?;
            self.with_found_program().as_mut().unwrap_or(&mut self.command).spawn()
        };
        let spawned = spawned.or_else(|error| self.spawn_as_script(error, streams.as_ref()));
        let mut child = spawned.map_err(|error| self.not_started(error))?;
        let pid = Pid::from_child(&child);
        let monitored = match &self.supervision {
            Supervision::Monitor { terminal } => {
                let _ = tcsetpgrp(terminal, pid);
                Some(Arc::clone(terminal))
            }
            _ => None,
        };
        let outputs = streams.map(|streams| streams.outputs).zip(link);
        Ok(StartedChild {
            keeper: Keeper { pid, is_told, terminals: None, monitored, adopts: self.adopts },
            signals,
            program: self.program(),
            outputs,
            report: child.stdout.take(),
        })
    }
}

/// Waits until a command ends, and ends it when its timeout expires.
fn attend<T: Send>(
    keeper: &Keeper,
    mut signals: Signals,
    timeout: Option<Duration>,
    watch: Option<impl FnOnce(&dyn Fn(), &mpsc::Receiver<()>) -> Option<T> + Send>,
) -> (Outcome, Option<T>) {
    let pid = keeper.pid;
    let (over, is_over) = mpsc::channel::<()>();
    let (waited, found) = std::thread::scope(|scope| {
        let watcher = watch
            .map(|watch| Builder::new().spawn_scoped(scope, move || watch(&|| send_sigterm(pid), &is_over)));
        let watcher = watcher.transpose().map_err(|source| {
            send_sigterm(pid);
            Failure::from(CommandError::ThreadRefused { purpose: "to watch the lock", source }).into_own()
        });
        let waited = wait(keeper, Some(&mut signals), timeout);
        // Tells the watcher that the command has ended; it is joined by the scope.
        drop(over);
        let found = watcher.map(|watcher| watcher.and_then(|watcher| watcher.join().ok().flatten()));
        (waited, found)
    });
    match (found, waited) {
        (Err(refused), _) => (Err(refused), None),
        (Ok(found), Ok((status, true))) => {
            let time = timeout.unwrap_or_default();
            (Err(Failure::TimedOut { time, status: shell_status(status) }), found)
        }
        (Ok(found), waited) => {
            (waited.map_err(Failure::from).and_then(|(status, _)| passed_on(status)), found)
        }
    }
}

/// Passes a signal on to the command, unless the terminal has sent it to both.
fn pass_on(keeper: &Keeper, origin: &Origin) {
    if let Some(terminals) = &keeper.terminals {
        match origin.signal {
            SIGWINCH => {
                terminals.resize();
                if terminals.has_own() || !terminals.has_output() {
                    return;
                }
                // Below, the command gets the signal again: the first time its output may have had the old size.
            }
            SIGCONT => {
                terminals.take();
                if !terminals.has_own() {
                    return;
                }
            }
            _ => {}
        }
    }
    // The kernel sends Ctrl-C and Ctrl-\ to the whole foreground group; a second one would end a command that handles
    // the first.
    let from_terminal = origin.process.is_none() && [SIGINT, SIGQUIT].contains(&origin.signal);
    if let (Some(signal), false) = (Signal::from_named_raw(origin.signal), from_terminal) {
        let _ = kill_process(keeper.pid, signal);
    }
}

/// Waits for the end of a child, passes signals on to it and enforces the timeout. Returns the status, and whether the timeout
/// expired. If the child stops, and a shell waits for this process on a terminal, this process stops too; otherwise the shell
/// would not notice, and the terminal would hang. No thread is needed, and none can be refused (`ulimit -u`, memory).
fn wait(
    keeper: &Keeper,
    mut signals: Option<&mut Signals>,
    timeout: Option<Duration>,
) -> std::io::Result<(WaitStatus, bool)> {
    let pid = keeper.pid;
    let (begun, mut is_late) = (Instant::now(), false);
    let ended = end_of(pid);
    loop {
        // Before the look: what comes after it ends the wait below.
        if let Some(signals) = &mut signals {
            let passed = signals.pending().filter(|origin| origin.signal != SIGCHLD);
            passed.for_each(|origin| pass_on(keeper, &origin));
        }
        let status = status_at_end(keeper)?;
        let status = if status.is_none() && keeper.adopts { orphans::reap(pid)? } else { status };
        if let Some(status) = status {
            return Ok((status, is_late));
        }
        let is_due = |at: Duration| begun.elapsed() >= at;
        match timeout {
            Some(timeout) if is_due(timeout.saturating_add(GRACE)) => {
                let _ = kill_process(pid, Signal::KILL);
            }
            Some(timeout) if is_due(timeout) && !is_late => {
                is_late = true;
                send_sigterm(pid);
            }
            _ => {}
        }
        let next = timeout.map(|timeout| if is_late { timeout.saturating_add(GRACE) } else { timeout });
        let left = next.map(|next| next.saturating_sub(begun.elapsed()));
        // After the kill, and where the end of a process cannot be waited for.
        let is_polled = ended.is_none() || !keeper.is_told || left == Some(Duration::ZERO);
        let pause = is_polled.then_some(PAUSE);
        let left = [left.filter(|left| !left.is_zero()), pause].into_iter().flatten().min();
        let signals = signals.as_ref().map(|signals| PollFd::new(signals.get_read(), PollFlags::IN));
        let ended = ended.as_ref().map(|ended| PollFd::new(ended, PollFlags::IN));
        let mut sources: Vec<PollFd<'_>> = [signals, ended].into_iter().flatten().collect();
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut sources, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Descriptor that becomes readable when a child has ended; `None` where the system has none.
#[cfg(target_os = "linux")]
fn end_of(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn end_of(_pid: Pid) -> Option<OwnedFd> {
    None
}

/// A status, as this program's own.
fn passed_on(status: WaitStatus) -> Outcome {
    if status.terminating_signal() == Some(SIGINT) {
        // So that a shell loop around this program ends with Ctrl-C, as it would around the command.
        return Err(Failure::Interrupted);
    }
    match shell_status(status) {
        0 => Ok(()),
        code => Err(Failure::Told(code)),
    }
}

/// A status as shells report it: 128 and the number of the signal that ended a command.
fn shell_status(status: WaitStatus) -> u8 {
    let by_signal = || status.terminating_signal().map(|signal| 128 + signal);
    let code = status.exit_status().or_else(by_signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Tells a command to end.
fn send_sigterm(pid: Pid) {
    let _ = kill_process(pid, Signal::TERM);
    // One that is stopped would not hear of it.
    let _ = kill_process(pid, Signal::CONT);
}

/// The status of a child that has ended. If it has stopped, this process stops with it.
fn status_at_end(keeper: &Keeper) -> std::io::Result<Option<WaitStatus>> {
    /// Ctrl-Z stops both at once, and `fg` wakes this one a moment before the child.
    const SETTLED: Duration = Duration::from_millis(20);
    let Keeper { pid, terminals, monitored, .. } = keeper;
    let pid = *pid;
    // NOWAIT leaves the status, for after the pause.
    let look = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let Some(seen) = retry_on_intr(|| waitid(WaitId::Pid(pid), look))? else { return Ok(None) };
    if seen.stopped() {
        std::thread::sleep(SETTLED);
    }
    let now = retry_on_intr(|| waitpid(Some(pid), WaitOptions::UNTRACED | WaitOptions::NOHANG))?;
    match now {
        Some((_, status)) if !status.stopped() => return Ok(Some(status)),
        Some((_, status)) if let Some(terminal) = monitored => {
            // A command that used the terminal just before it had it was stopped for that alone.
            let was_early = [SIGTTIN, SIGTTOU].map(Some).contains(&status.stopping_signal())
                && tcgetpgrp(terminal).is_ok_and(|group| group == pid);
            if !was_early {
                // The parent notices it, and continues both.
                let _ = kill_process(getpid(), Signal::STOP);
            }
            let _ = kill_process_group(pid, Signal::CONT);
        }
        Some(_) if is_in_foreground() => {
            let terminals = terminals.as_ref();
            let _ = terminals.map(|terminals| terminals.leave());
            // SIGSTOP and not SIGTSTP, which may be ignored here. It returns after `fg`.
            let _ = kill_process(getpid(), Signal::STOP);
            let _ = terminals.map(|terminals| terminals.take());
            let _ = kill_process(pid, Signal::CONT);
        }
        _ => {}
    }
    Ok(None)
}

/// Whether the terminal is this process's and its companions'.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// Signals that this process was started to ignore, and those that it was started to block, as bits.
#[derive(Clone, Copy, Debug, Default)]
struct SignalMasks {
    ignored: u64,
    blocked: u64,
}

#[cfg(target_os = "linux")]
fn signal_masks() -> SignalMasks {
    // Room for all of it: a file of the kernel has no length, and would be read in small parts.
    let mut status = String::with_capacity(4096);
    let _ = File::open("/proc/self/status").and_then(|file| file.take(1 << 16).read_to_string(&mut status));
    let mask = |name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        u64::from_str_radix(mask.trim(), 16).unwrap_or(0)
    };
    SignalMasks { ignored: mask("SigIgn:"), blocked: mask("SigBlk:") }
}

#[cfg(not(target_os = "linux"))]
fn signal_masks() -> SignalMasks {
    SignalMasks::default()
}
