//! Commands that were started in a session: a log in its room, which goes with the room.
//!
//! Starting a command appends one line and opens no database. The log is bounded: a full file replaces the one before it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{NO_FOLLOW, read_up_to};
use crate::secrets::redacted_words;
use crate::session::Room;
use crate::world::World;

/// Size from which a file is full. A line has less than 4 KiB.
const FULL: u64 = 128 * 1024;
/// Largest file that is read: a full one, and lines of commands that started at once.
const LARGEST: u64 = 2 * FULL;

/// A command that was started in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedCommand {
    /// Time of its start, in milliseconds since 1970.
    pub at_ms: i64,
    /// Process.
    pub pid: u32,
    /// Program and arguments, without those whose name or form says that they are secrets.
    pub words: Vec<String>,
}

impl Room {
    /// Adds a command to the log. A command is not stopped by a log that cannot be written.
    pub(crate) fn log_command(&self, world: &World, words: &[OsString]) {
        let started = StartedCommand {
            at_ms: world.now().as_millisecond(),
            pid: std::process::id(),
            words: redacted_words(words),
        };
        if let Err(error) = self.append(&started) {
            tracing::info!(%error, "the command was not logged");
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the log may be lost in a power cut, so it needs no sync")]
    fn append(&self, started: &StartedCommand) -> std::io::Result<()> {
        let mut line = serde_json::to_string(started)?;
        line.push('\n');
        let mut file = self.open_command_log()?;
        if file.metadata()?.len() >= FULL {
            std::fs::rename(self.command_log(), self.older_command_log())?;
            file = self.open_command_log()?;
        }
        // In one write, so that lines of commands that start at once do not mix.
        file.write_all(line.as_bytes())
    }

    fn open_command_log(&self) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).custom_flags(NO_FOLLOW).open(self.command_log())
    }

    /// The commands that were started in it, in the order of their starts.
    pub fn commands(&self) -> Vec<StartedCommand> {
        let lines = |path: &Path| read_up_to(path, LARGEST).ok().flatten().unwrap_or_default();
        let text = lines(&self.older_command_log()) + &lines(&self.command_log());
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn command_log(&self) -> PathBuf {
        self.dir().join("commands.jsonl")
    }

    fn older_command_log(&self) -> PathBuf {
        self.dir().join("commands.old.jsonl")
    }
}
