//! Stopping a session: its processes get SIGTERM, then SIGKILL, and then the session ends.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Result, SessionError};
use crate::process::ProcessId;
use crate::session::{Room, Session, Sessions};

/// Grace period between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// Time that a killed process may take to disappear.
const AFTER_KILL: Duration = Duration::from_secs(5);

impl Sessions {
    /// Stops a session. Succeeds only if the session has ended and none of its processes run. Returns the ended
    /// processes.
    pub fn stop(&mut self, session: &Session, reason: &str) -> Result<Vec<i32>> {
        let user = self.user.clone();
        if session.ended.is_some() {
            // A room that is still there holds what could not be brought out of it.
            if let Ok(Some(_alone)) = session.room().try_alone() {
                session.room().remove(&self.world)?;
            }
            return Ok(Vec::new());
        }
        let mut told: Vec<i32> = Vec::new();
        let begun = Instant::now();
        loop {
            let holders = others(session.room());
            // `end` takes the room exclusively, which fails if a process has entered since the look.
            if holders.is_empty() && self.end(&user, session, reason)? {
                return Ok(told);
            }
            if holders.is_empty() && called_from_inside(session) {
                // Only this process and those that called it are left in it, and they are about to end.
                self.store.end_session(&user, session.id.as_str(), self.now_ms(), reason)?;
                session.room().remove(&self.world)?;
                return Ok(told);
            }
            tell(holders, begun, &mut told);
            if begun.elapsed() > GRACE + AFTER_KILL {
                let left = others(session.room()).iter().map(|process| process.pid).collect();
                return Err(SessionError::StopFailed { session: session.label().to_owned(), left }.into());
            }
            // The processes are not children of this one, so their end cannot be waited for.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Ends everything that runs in a session but this process and those that called it. Returns the processes.
pub fn end_others(session: &Session) -> Result<Vec<i32>> {
    end_all_in(session.room(), session.label())
}

/// The same by the room of a session and how people call the session.
pub(super) fn end_all_in(room: &Room, label: &str) -> Result<Vec<i32>> {
    end_all(label, || others(room))
}

/// Ends what one command left running: every process with this mark at the end of a variable. Returns the processes.
pub fn end_marked(session: &Session, mark: &str) -> Result<Vec<i32>> {
    end_all(session.label(), || {
        super::room::marked_with(mark).into_iter().filter_map(ProcessId::of).collect()
    })
}

fn end_all(label: &str, find: impl Fn() -> Vec<ProcessId>) -> Result<Vec<i32>> {
    let mut told = Vec::new();
    let begun = Instant::now();
    loop {
        let left = find();
        if left.is_empty() {
            return Ok(told);
        }
        if begun.elapsed() > GRACE + AFTER_KILL {
            let left = left.iter().map(|process| process.pid).collect();
            return Err(SessionError::StopFailed { session: label.to_owned(), left }.into());
        }
        tell(left, begun, &mut told);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asks processes to end, and makes those that do not.
fn tell(processes: Vec<ProcessId>, begun: Instant, told: &mut Vec<i32>) {
    let signal = if begun.elapsed() < GRACE { Signal::TERM } else { Signal::KILL };
    for process in processes {
        // One SIGTERM per process: many programs take a second one as a demand to end at once.
        let first = !told.contains(&process.pid);
        if first {
            told.push(process.pid);
        }
        // By pid and start time, so that a reused pid is not killed.
        if (first || signal == Signal::KILL) && process.is_alive() {
            // It may have ended meanwhile; the next look tells.
            let _ = Pid::from_raw(process.pid).map(|pid| kill_process(pid, signal));
        }
    }
}

/// Processes of the session, except this process and its ancestors: recorded ones, holders of the room, and those
/// with the session in their environment.
fn others(room: &Room) -> Vec<ProcessId> {
    // A session may be stopped from inside; the caller must live to report it.
    let mut callers = crate::process::lineage();
    // A shell that the hook brought in goes on without a target, and so does what it runs in, such as a multiplexer.
    callers.extend(room.hooked_shells().into_iter().flat_map(crate::process::lineage_of));
    let recorded = room.running().into_iter().map(|running| running.process);
    let holding = room.holders().into_iter().filter_map(ProcessId::of);
    // Daemons close inherited descriptors, and with them the room's lock.
    let marked = room.marked().into_iter().filter_map(ProcessId::of);
    let mut all: Vec<ProcessId> =
        recorded.chain(holding).chain(marked).filter(|process| !callers.contains(&process.pid)).collect();
    all.sort_by_key(|process| process.pid);
    all.dedup();
    all
}

fn called_from_inside(session: &Session) -> bool {
    let callers = crate::process::lineage();
    session.room().holders().iter().any(|pid| callers.contains(pid))
}
