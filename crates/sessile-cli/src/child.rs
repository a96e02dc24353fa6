//! Running a command as a child: its streams, signals and status are its own.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use sessile::process::ProcessId;
use sessile::session::room::Running;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Origin;

use crate::error::{Failure, Outcome};

/// The command could be found but not be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The command could not be found.
const NOT_FOUND: u8 = 127;

/// A command to be run.
pub(crate) struct Child {
    command: Command,
    program: String,
}

impl Child {
    pub(crate) fn new(words: &[OsString]) -> Self {
        let (program, arguments) =
            words.split_first().map_or((OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
        let mut command = Command::new(&program);
        command.args(arguments);
        Child { command, program: program.to_string_lossy().into_owned() }
    }

    pub(crate) fn env(mut self, name: &str, value: String) -> Self {
        self.command.env(name, value);
        self
    }

    /// Keeps a descriptor open in the child.
    pub(crate) fn inherit(self, file: &File) -> Self {
        // If that fails the child runs all the same; this process holds the lock for it.
        let _ = fcntl_setfd(file, FdFlags::empty());
        self
    }

    /// Runs it to its end. A status other than 0 is passed on as it is.
    pub(crate) fn run(mut self) -> Outcome {
        // A terminal sends its signals to both; this process must only outlive them. What a process sends to this one
        // is meant for the child and passed on.
        let wanted = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
        let mut signals = SignalsInfo::<WithOrigin>::new(wanted)?;
        let mut child = match self.command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let exit = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
                return Err(Failure::NotStarted { exit, program: self.program, error });
            }
        };
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let handle = signals.handle();
        let forwarder = std::thread::spawn(move || {
            for Origin { signal, process, .. } in signals.forever() {
                let from_terminal = process.is_none() && [SIGINT, SIGQUIT].contains(&signal);
                if let (Some(pid), Some(signal), false) = (pid, Signal::from_named_raw(signal), from_terminal)
                {
                    let _ = kill_process(pid, signal);
                }
            }
        });
        let status = child.wait();
        handle.close();
        let _ = forwarder.join();
        let status = status?;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        match u8::try_from(code) {
            Ok(0) => Ok(()),
            Ok(code) => Err(Failure::Told(code)),
            Err(_) => Err(Failure::Told(1)),
        }
    }
}

/// What is recorded of this process and the program it runs.
pub(crate) fn own_record(words: &[OsString]) -> Running {
    let program = words.first().map(|word| std::path::Path::new(word).file_name().unwrap_or(word));
    Running {
        process: ProcessId::own().unwrap_or(ProcessId { pid: 0, started: 0, boot: String::new() }),
        program: program.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
    }
}
