//! Gate of the thread that reads the terminal, closed while another program has the terminal.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};

/// Time after which the reader is interrupted again: a signal that arrives before its handler is installed is lost.
const RETRY: Duration = Duration::from_millis(20);

/// Time that the reader gets to stop. At the end of input of a terminal that is restored already, crossterm reads endlessly.
const LIMIT: Duration = Duration::from_secs(1);

/// State of the gate.
#[derive(Debug, Default)]
struct GateState {
    is_closed: bool,
    is_reader_waiting: bool,
    is_reader_gone: bool,
}

/// Gate of the reading thread.
#[derive(Debug, Default)]
pub(super) struct ReaderGate {
    state: Mutex<GateState>,
    changed: Condvar,
}

impl ReaderGate {
    /// Waits while the gate is closed. Called by the reader before each event.
    pub(super) fn pass(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.is_closed {
            state.is_reader_waiting = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_reader_waiting = false;
    }

    /// Marks the end of the reader, so that waiters continue.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_reader_gone = true;
        self.changed.notify_all();
    }

    /// Closes the gate and waits until the reader has stopped reading, for a moment at most.
    ///
    /// The reader blocks in a read that only the terminal or a change of its size ends, so the process reports one to itself.
    pub(super) fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_closed = true;
        let start = Instant::now();
        while !state.is_reader_waiting && !state.is_reader_gone && start.elapsed() < LIMIT {
            let _ = kill_process(getpid(), Signal::WINCH);
            state = self.changed.wait_timeout(state, RETRY).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Opens the gate.
    pub(super) fn open(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_closed = false;
        self.changed.notify_all();
    }
}
