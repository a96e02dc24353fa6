//! Watching a session while commands run in it: the end of the last command, and the end of the session's life.
//!
//! A command of a named session replaces the program that started it, so no parent sees it end. The watcher does: a
//! process that the program starts beside the first command (`watcher.rs` of the program) and that later commands
//! share. It polls the room's lock and records when the room is left: idle time counts from there. While the room is
//! busy it records a use every [`MARK_EVERY`], so that a killed watcher costs the session at most that time.
//!
//! At the session's maximum lifetime the watcher sends SIGTERM, and SIGKILL after five seconds, to every process that
//! holds the room or has the session in its environment, background children included. A kernel timer that survives
//! `exec` (`alarm`) reaches one process only, and a program that sets its own replaces it.
//!
//! The watcher exits [`LINGER`] after the room was left: a series of commands shares one, and an idle session has
//! none. It releases its own lock before the room's, so a command that enters afterwards finds no watcher and starts
//! the next.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::app::App;
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::files::NO_FOLLOW;
use crate::session::{Room, Session};
use crate::state::State;
use crate::text::quoted;
use crate::world::World;

/// Interval in which the room is looked at.
const POLL: Duration = Duration::from_millis(250);

/// Interval in which a busy room is marked as used.
const MARK_EVERY: Duration = Duration::from_secs(60);

/// Time for which a watcher waits for the next command.
const LINGER: Duration = Duration::from_secs(30);

/// Lock file of the watcher in the room.
const LOCK: &str = "watch";

/// Action at the end of a session's longest life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxAction {
    /// Ends what runs in the session.
    #[default]
    End,
    /// Prints a warning on the standard error of what runs in the session.
    Warn,
}

impl MaxAction {
    /// Words of the setting `session.max-action`.
    pub const WORDS: &'static [&'static str] = &["end", "warn"];

    /// Action that a word names; any other word ends what runs.
    pub fn named(word: &str) -> Self {
        // An unknown word must not let commands run past their session: the strict action is the default.
        if word == "warn" { MaxAction::Warn } else { MaxAction::End }
    }

    /// Action of the settings.
    pub fn of(state: &State) -> Result<Self> {
        let setting = state.settings()?.get("session.max-action")?;
        Ok(MaxAction::named(setting.as_ref().and_then(|found| found.value.as_str()).unwrap_or_default()))
    }

    /// Word of the action.
    pub fn as_str(self) -> &'static str {
        match self {
            MaxAction::End => "end",
            MaxAction::Warn => "warn",
        }
    }
}

/// Room to watch.
#[derive(Clone, Debug)]
pub struct RoomWatch {
    room: Room,
    label: String,
    /// End of the longest life, on the clock that stands still while the machine sleeps.
    deadline_awake_ms: i64,
    max_ms: i64,
    action: MaxAction,
}

impl Session {
    /// Time until the end of the longest life. The sleep of the machine does not count for what runs.
    pub fn remaining_life(&self, world: &World) -> Duration {
        let age = Moment::now(world).awake_since(&self.started);
        Duration::from_millis(self.max_ms.saturating_sub(age).max(0).unsigned_abs())
    }

    /// Watch of this session.
    pub fn watch(&self, world: &World, action: MaxAction) -> RoomWatch {
        let left = i64::try_from(self.remaining_life(world).as_millis()).unwrap_or(i64::MAX);
        RoomWatch {
            room: self.room().clone(),
            label: self.label().to_owned(),
            // As a point in time: the watcher starts later than this call and shares the machine's clock.
            deadline_awake_ms: Moment::now(world).awake_ms.saturating_add(left),
            max_ms: self.max_ms,
            action,
        }
    }
}

impl RoomWatch {
    /// Arguments from which [`RoomWatch::of_args`] makes the same watch in another process.
    pub fn to_args(&self) -> [String; 5] {
        [
            self.room.dir().to_string_lossy().into_owned(),
            self.label.clone(),
            self.deadline_awake_ms.to_string(),
            self.max_ms.to_string(),
            self.action.as_str().to_owned(),
        ]
    }

    /// Watch from its arguments.
    pub fn of_args(args: &[String]) -> Option<Self> {
        let [dir, label, deadline, max, action] = args else { return None };
        Some(RoomWatch {
            room: Room::at(PathBuf::from(dir)),
            label: label.clone(),
            deadline_awake_ms: deadline.parse().ok()?,
            max_ms: max.parse().ok()?,
            action: MaxAction::named(action),
        })
    }

    /// Whether a process watches the room.
    pub fn is_watched(&self) -> bool {
        self.room.is_watched()
    }

    /// Watches the room until nothing has run in it for a while. Returns at once if another process watches it.
    pub fn run(&self, app: &App, world: &World) -> Result<()> {
        // Several commands may start a watcher at once; the kernel lock lets one of them stay.
        let Some(watch) = self.room.try_watch(LOCK, true)? else { return Ok(()) };
        let mut left_since: Option<Instant> = None;
        let (mut marked, mut is_over) = (Instant::now(), false);
        loop {
            // Polled: the mark of a use and the end of the session's life have to be looked at as well.
            std::thread::sleep(POLL);
            match self.room.try_alone() {
                // It is being removed.
                Err(_) => return Ok(()),
                Ok(Some(alone)) => match left_since {
                    None => {
                        self.room.notice_leaving(world)?;
                        left_since = Some(Instant::now());
                    }
                    Some(since) if since.elapsed() >= LINGER => {
                        drop(watch);
                        drop(alone);
                        return Ok(());
                    }
                    Some(_) => {}
                },
                Ok(None) => {
                    left_since = None;
                    if marked.elapsed() >= MARK_EVERY {
                        self.room.touch(world)?;
                        marked = Instant::now();
                    }
                    if !is_over && Moment::now(world).awake_ms >= self.deadline_awake_ms {
                        // A warning is printed once. An end is tried again while something still runs.
                        is_over = self.action == MaxAction::Warn;
                        // Before the processes are ended: afterwards their standard error is closed.
                        self.announce(app);
                        if self.action == MaxAction::End {
                            super::stop::end_all_in(&self.room, &self.label)?;
                        }
                    }
                }
            }
        }
    }

    /// Message at the end of the longest life.
    fn announce(&self, app: &App) {
        let message = max_reached(&self.label, self.max_ms);
        let rest = match self.action {
            MaxAction::End => "; stopping its commands",
            MaxAction::Warn => "",
        };
        for running in self.room.running() {
            write_to_stderr_of(running.process.pid, &format!("{}: {message}{rest}\n", app.name()));
        }
    }
}

/// Statement that a session has reached the end of its longest life.
pub fn max_reached(label: &str, max_ms: i64) -> String {
    let max = crate::duration::short(Duration::from_millis(max_ms.max(0).unsigned_abs()));
    format!("session {} reached its maximum lifetime of {max}", quoted(label))
}

/// Writes to the standard error of another process, without waiting for a reader.
pub(super) fn write_to_stderr_of(pid: i32, text: &str) {
    // Opening a terminal must not make it the watcher's controlling terminal.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let path = format!("/proc/{pid}/fd/2");
    let opened =
        OpenOptions::new().append(true).custom_flags(flags.bits().cast_signed()).open(Path::new(&path));
    // The process may have ended, or its standard error may be a full pipe or a socket.
    let _ = opened.and_then(|mut file| file.write_all(text.as_bytes()));
}

impl Room {
    /// Becomes the room's watcher of one kind, by its lock file; `None` if one exists. Without `create`, also `None`
    /// if the file does not exist.
    #[expect(clippy::disallowed_methods, reason = "the lock is tried once and never waited for")]
    pub(super) fn try_watch(&self, name: &str, create: bool) -> Result<Option<File>> {
        let path = self.dir().join(name);
        let file = OpenOptions::new()
            .read(true)
            // Asking whether somebody watches must not create the file: its existence says that a watcher was
            // there.
            .write(create)
            .create(create)
            .truncate(false)
            .mode(0o600)
            .custom_flags(NO_FOLLOW)
            .open(&path)
            .map_err(|error| Error::io("open", &path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", path, error)),
        }
    }

    /// Whether a process watches the room.
    pub(super) fn is_watched(&self) -> bool {
        matches!(self.try_watch(LOCK, false), Ok(None))
    }

    /// Whether a watcher has ever marked the room.
    pub(super) fn was_watched(&self) -> bool {
        self.dir().join(LOCK).exists()
    }
}
