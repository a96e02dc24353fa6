//! The log of a call: `-v`, `-vv`, `SESSILE_LOG` and `--log-file`.
//!
//! Library, program and service emit `tracing` events: which files are read, which session and context are resolved and why,
//! HTTP exchanges, retries, lock waits. Secrets, bodies and query strings are never fields of an event. Without a subscriber an
//! event costs a load and a compare.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::Args;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use sessile::error::{FileError, UsageError};
use sessile::text::quoted;
use sessile::{Error, World};
use tracing::level_filters::LevelFilter;

/// Variable with the level of the log.
const LEVEL: &str = "SESSILE_LOG";

/// Variable of `-v`.
const VERBOSE: &str = "SESSILE_VERBOSE";

/// Variable of `--log-file`.
const FILE: &str = "SESSILE_LOG_FILE";

/// Flags of the log that every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub struct LogArgs {
    /// Append a log of the call to this file
    #[arg(long, global = true, value_name = "FILE")]
    log_file: Option<PathBuf>,
}

impl LogArgs {
    /// Starts the log, if flags or variables ask for one.
    pub(crate) fn start(&self, world: &World, verbosity: u8) -> Result<(), Error> {
        let file = self.log_file.clone().or_else(|| world.variable(FILE).map(PathBuf::from));
        let Some(level) = level(world, verbosity, file.is_some())? else { return Ok(()) };
        let subscriber = tracing_subscriber::fmt().with_max_level(level).with_target(false);
        // A subscriber that is there already is that of an embedding program or of an outer call: it stays.
        let _ = match file {
            Some(path) => subscriber.with_writer(Mutex::new(open(world, &path)?)).try_init(),
            None => subscriber.with_writer(std::io::stderr).try_init(),
        };
        Ok(())
    }
}

/// Level of the variable, else of the number of `-v` flags. A log file alone gets the level for debugging.
fn level(world: &World, verbosity: u8, has_file: bool) -> Result<Option<LevelFilter>, Error> {
    if let Some(text) = world.variable(LEVEL) {
        let text = text.to_string_lossy();
        let invalid = || {
            let expected = "expected off, error, warn, info, debug or trace";
            Error::from(UsageError::Arguments(format!("invalid {LEVEL} {}: {expected}", quoted(&text))))
        };
        // `tracing` takes numbers and the empty text too.
        let is_word = text.chars().all(|c| c.is_ascii_alphabetic()) && !text.is_empty();
        return if is_word { text.parse().map(Some).map_err(|_| invalid()) } else { Err(invalid()) };
    }
    let is_verbose = || world.variable(VERBOSE).is_some_and(|value| value == "1" || value == "true");
    Ok(match verbosity {
        0 if is_verbose() => Some(LevelFilter::INFO),
        0 if has_file => Some(LevelFilter::DEBUG),
        0 => None,
        1 => Some(LevelFilter::INFO),
        2 => Some(LevelFilter::DEBUG),
        _ => Some(LevelFilter::TRACE),
    })
}

fn open(world: &World, path: &Path) -> Result<std::fs::File, Error> {
    let path = world.cwd().map_or_else(|| path.to_owned(), |cwd| cwd.join(path));
    // Appended, so that the lines of parallel calls do not overwrite each other.
    let mut options = OpenOptions::new();
    // Without O_NONBLOCK, opening a pipe would wait for a reader.
    options.append(true).create(true).mode(0o600).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let opened = options.open(&path).and_then(|file| {
        // A line waits for a slow reader, and is not lost.
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
        Ok(file)
    });
    opened.map_err(|source| FileError::Io { action: "open", path, source }.into())
}
