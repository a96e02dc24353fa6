//! Passes the output of a command on to the caller's streams, and a copy of it to the session's room.
//!
//! A thread for each stream blocks in `poll`. Output is passed on before it is copied, so a slow disk delays only the next
//! output. After the end of the command, the output so far is still passed on; processes that stay in the background are not
//! waited for. A stream whose reader has gone is closed, so that the command gets SIGPIPE as without a copy.
//!
//! Where the command has a terminal of its own, the caller's is in raw mode: keys such as Ctrl-C and Ctrl-Z act on the
//! command's terminal alone. It is in raw mode only as long as this process is in the foreground.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use sessile::session::OutputLog;

use super::is_in_foreground;
use super::streams::{CommandStreams, OutputStream};

/// Number of bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// Time without output after which the rest of a terminal's output is taken for read, once the command has ended. It is
/// waited only while a process in the background holds the terminal: otherwise the output ends.
const TERMINAL_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// A pipe has everything that was written to it.
const NO_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The running threads.
pub(super) struct OutputRelay {
    outputs: Vec<JoinHandle<()>>,
    /// Closed at the end of the command, which wakes the threads.
    running: Option<OwnedFd>,
    /// Terminals of the command; where it has one of its own, the first is that one.
    pub(super) terminals: Arc<TerminalLink>,
}

/// Link between the caller's terminal and the pseudo-terminals of the command.
pub(super) struct TerminalLink {
    /// Pseudo-terminals, each with the terminal whose size it has.
    sizes: Vec<(OwnedFd, OwnedFd)>,
    /// The caller's terminal, if the command has one of its own.
    caller: Option<OwnedFd>,
    mode: Mutex<CallerMode>,
    is_changed: Condvar,
}

/// Mode of the caller's terminal.
#[derive(Default)]
struct CallerMode {
    /// Settings to return to while it is in raw mode.
    before: Option<Termios>,
    /// Whether the command has ended.
    is_over: bool,
}

impl OutputRelay {
    /// Starts to pass output on. The command's own ends of the streams must be closed in this process.
    pub(super) fn start(
        streams: Vec<OutputStream>,
        terminals: TerminalLink,
        log: &Arc<OutputLog>,
    ) -> std::io::Result<Self> {
        let (ended, running) = std::io::pipe()?;
        let ended = Arc::new(OwnedFd::from(ended));
        let terminals = Arc::new(terminals);
        let mut relay = OutputRelay {
            outputs: Vec::new(),
            running: Some(running.into()),
            terminals: Arc::clone(&terminals),
        };
        terminals.take();
        if terminals.caller.is_some() {
            let ended = Arc::clone(&ended);
            Builder::new().spawn(move || terminals.forward_input(&ended))?;
        }
        for stream in streams {
            let (ended, log) = (Arc::clone(&ended), Arc::clone(log));
            relay.outputs.push(Builder::new().spawn(move || pass_on(stream, &ended, &log))?);
        }
        Ok(relay)
    }

    /// Passes the rest of the output on, after the end of the command.
    pub(super) fn finish(mut self) {
        self.terminals.end();
        drop(self.running.take());
        for output in self.outputs.drain(..) {
            let _ = output.join();
        }
        // Last, so that the command's output has reached the terminal that it was made for.
        self.terminals.leave();
    }
}

impl Drop for OutputRelay {
    fn drop(&mut self) {
        self.terminals.end();
        self.terminals.leave();
    }
}

/// Passes one stream on to its end, or to the end of the command.
fn pass_on(stream: OutputStream, ended: &OwnedFd, log: &OutputLog) {
    let OutputStream { source, target, is_terminal } = stream;
    let (mut redactor, mut buffer) = (log.redactor(), vec![0; CHUNK]);
    let (mut is_over, mut has_reader) = (false, true);
    loop {
        let pause = if is_terminal { &TERMINAL_PAUSE } else { &NO_PAUSE };
        let Ok((is_ready, has_ended)) = wait_for(&source, ended, is_over.then_some(pause)) else { break };
        if !is_ready {
            if is_over {
                break;
            }
            is_over = has_ended;
            continue;
        }
        // Reading a pseudo-terminal fails with EIO once no process has it open.
        let length = match retry_on_intr(|| read(&source, buffer.as_mut_slice())) {
            Ok(0) | Err(_) => break,
            Ok(length) => length,
        };
        let bytes = buffer.get(..length).unwrap_or_default();
        has_reader = has_reader && write_all(&target, bytes).is_ok();
        log.append(&redactor.push(bytes));
        if !has_reader && !is_terminal {
            break;
        }
    }
    log.append(&redactor.finish());
}

/// Waits for output or for the end of the command. Returns whether each has come.
fn wait_for(source: &OwnedFd, ended: &OwnedFd, limit: Option<&Timespec>) -> rustix::io::Result<(bool, bool)> {
    let mut events = [PollFd::new(source, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
    // Once the command has ended, only the source is waited for.
    let count = if limit.is_some() { 1 } else { 2 };
    let events = events.get_mut(..count).unwrap_or_default();
    retry_on_intr(|| poll(events, limit))?;
    let mut found = events.iter().map(|event| !event.revents().is_empty());
    Ok((found.next().unwrap_or(false), found.next().unwrap_or(false)))
}

fn write_all(target: &OwnedFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match retry_on_intr(|| write(target, bytes)) {
            Ok(length) => bytes = bytes.get(length..).unwrap_or_default(),
            // Another program has made the stream one that does not block.
            Err(Errno::AGAIN) => {
                let mut event = [PollFd::new(target, PollFlags::OUT)];
                retry_on_intr(|| poll(&mut event, None))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl TerminalLink {
    /// Link for the streams of a command.
    pub(super) fn of(streams: &CommandStreams) -> std::io::Result<Self> {
        let terminals = streams.outputs.iter().filter(|stream| stream.is_terminal);
        let sizes = terminals.map(|stream| Ok((stream.source.try_clone()?, stream.target.try_clone()?)));
        let caller = streams.has_terminal.then(|| std::io::stdin().as_fd().try_clone_to_owned());
        Ok(TerminalLink {
            sizes: sizes.collect::<std::io::Result<_>>()?,
            caller: caller.transpose()?,
            mode: Mutex::default(),
            is_changed: Condvar::new(),
        })
    }

    /// Whether the command has a terminal of its own.
    pub(super) fn has_own(&self) -> bool {
        self.caller.is_some()
    }

    /// Whether output of the command is a pseudo-terminal.
    pub(super) fn has_output(&self) -> bool {
        !self.sizes.is_empty()
    }

    fn mode(&self) -> MutexGuard<'_, CallerMode> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the caller's terminal for the command, if this process is in the foreground.
    pub(super) fn take(&self) {
        self.resize();
        let Some(caller) = &self.caller else { return };
        let mut mode = self.mode();
        if mode.before.is_some() || mode.is_over || !is_in_foreground() {
            return;
        }
        let Ok(before) = tcgetattr(caller) else { return };
        let mut raw = before.clone();
        raw.make_raw();
        if tcsetattr(caller, OptionalActions::Now, &raw).is_ok() {
            mode.before = Some(before);
            self.is_changed.notify_all();
        }
    }

    /// Gives the caller's terminal back.
    pub(super) fn leave(&self) {
        if let (Some(caller), Some(before)) = (&self.caller, self.mode().before.take()) {
            // Drained, so that nothing that was typed for the caller is lost.
            let _ = tcsetattr(caller, OptionalActions::Drain, &before);
        }
    }

    /// Nothing more is read from the caller's terminal.
    fn end(&self) {
        self.mode().is_over = true;
        self.is_changed.notify_all();
    }

    /// Gives the pseudo-terminals the size of the caller's.
    pub(super) fn resize(&self) {
        for (pseudo, terminal) in &self.sizes {
            // The system tells the processes on it, if the size differs.
            let _ = tcgetwinsize(terminal).and_then(|size| tcsetwinsize(pseudo, size));
        }
    }

    /// Passes what is typed on to the command's terminal.
    fn forward_input(&self, ended: &OwnedFd) {
        let (Some(caller), Some((pseudo, _))) = (&self.caller, self.sizes.first()) else { return };
        let mut buffer = vec![0; 4096];
        loop {
            let mut mode = self.mode();
            while mode.before.is_none() && !mode.is_over {
                mode = self.is_changed.wait(mode).unwrap_or_else(PoisonError::into_inner);
            }
            if mode.is_over {
                return;
            }
            drop(mode);
            let Ok((is_ready, has_ended)) = wait_for(caller, ended, None) else { return };
            if has_ended {
                return;
            }
            // A background process that reads the terminal is stopped (SIGTTIN), and the input belongs to the foreground.
            if !is_ready || self.mode().before.is_none() {
                continue;
            }
            match retry_on_intr(|| read(caller, buffer.as_mut_slice())) {
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    if write_all(pseudo, buffer.get(..length).unwrap_or_default()).is_err() {
                        return;
                    }
                }
            }
        }
    }
}
