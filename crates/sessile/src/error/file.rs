//! Errors of single files: reading, parsing, writing and locking.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::app::App;
use crate::code::Code;
use crate::error::{Diagnostic, FileLocation};
use crate::text::{quoted, shell_quoted, shown};

/// Process that holds the lock of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLockHolder {
    /// Pid.
    pub pid: i32,
    /// Command: the program and the words before its first value.
    pub command: Option<String>,
    /// Time since its start.
    pub running: Option<Duration>,
    /// Whether it is stopped (SIGSTOP, Ctrl-Z), so that it releases nothing.
    pub is_stopped: bool,
}

impl fmt::Display for FileLockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)?;
        if let Some(command) = &self.command {
            write!(f, ", `{command}`")?;
        }
        if let Some(running) = self.running {
            write!(f, ", {}", crate::duration::short(running))?;
        }
        if self.is_stopped {
            write!(f, ", stopped")?;
        }
        Ok(())
    }
}

/// Errors of single files: reading, parsing, writing and locking.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A syntax error.
    #[error("{place}: {message}")]
    Syntax {
        /// Location.
        place: Box<FileLocation>,
        /// Parser's message.
        message: String,
    },
    /// A value of the wrong type.
    #[error("{place}: {} must be {expected}, not {found}", quoted(key))]
    Value {
        /// Location.
        place: Box<FileLocation>,
        /// The key.
        key: String,
        /// Expected form.
        expected: String,
        /// Found value.
        found: String,
    },
    /// A file over the limit.
    #[error("{} is {size} bytes; the limit for such a file is {limit}", shown(path.display()))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A file that is not text.
    #[error("{} is not valid UTF-8 (first bad byte at offset {offset})", shown(path.display()))]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// Not a regular file.
    #[error("{} is {found}, not a file", shown(path.display()))]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// Found value.
        found: &'static str,
    },
    /// A file that a person named and that is not there.
    #[error("{} does not exist", shown(.0.display()))]
    NotFound(PathBuf),
    /// A link to something that does not exist, where settings, contexts or tool profiles are read.
    #[error("{} is a symbolic link to a missing file or directory", shown(.0.display()))]
    DanglingLink(PathBuf),
    /// A key that does not exist and looks like a misspelt one.
    #[error("{place}: unknown key {}", quoted(key))]
    MisspeltKey {
        /// Location.
        place: Box<FileLocation>,
        /// The key.
        key: String,
        /// The known key nearest to it.
        near: String,
    },
    /// File that already exists.
    #[error("{} already exists", shown(.0.display()))]
    Exists(PathBuf),
    /// The system refused.
    #[error("cannot {action} {}: {}", shown(path.display()), io_reason(source))]
    Io {
        /// Attempted action: "read", "write".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The lock is held by another.
    #[error(
        "{} is being changed by {}; waited {}",
        shown(path.display()),
        holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string),
        crate::duration::short(*waited)
    )]
    Locked {
        /// Locked path.
        path: PathBuf,
        /// Holder, if known.
        holder: Option<FileLockHolder>,
        /// Time that this process waited.
        waited: Duration,
    },
    /// Someone else was quicker.
    #[error("{} was changed by another process meanwhile", shown(path.display()))]
    ConcurrentChange {
        /// The file.
        path: PathBuf,
        /// Copy of this side's version.
        kept: Option<PathBuf>,
    },
    /// A file that other users can change or replace.
    #[error(
        "{} has mode {mode:04o}: other users can {}",
        shown(path.display()),
        if *is_dir { "replace the files in it" } else { "change it" }
    )]
    WritableByOthers {
        /// The file or directory.
        path: PathBuf,
        /// Mode.
        mode: u32,
        /// Whether it is the directory that the file is in.
        is_dir: bool,
    },
    /// A file that belongs to another user, who can change or replace it.
    #[error(
        "{} belongs to user {uid}, who can {}",
        shown(path.display()),
        if *is_dir { "replace the files in it" } else { "change it" }
    )]
    OwnedByAnother {
        /// The file or directory.
        path: PathBuf,
        /// Owner.
        uid: u32,
        /// Whether it is the directory that the file is in.
        is_dir: bool,
    },
    /// A link in the place of the state directory beside a `--config` file, or of something in it.
    #[error("{} is a symbolic link and may come from a checkout", shown(.0.display()))]
    LinkedState(PathBuf),
    /// State beside a `--config` file without the mark of this program.
    #[error(
        "{} has mode {mode:04o} instead of {:04o}: it may come from a checkout",
        shown(path.display()),
        if *is_dir { 0o1700 } else { 0o1600 }
    )]
    UnmarkedState {
        /// The file or directory.
        path: PathBuf,
        /// Mode.
        mode: u32,
        /// Whether it is a directory.
        is_dir: bool,
    },
    /// No home.
    #[error("no home directory found for {0}")]
    NoHome(&'static str),
}

impl Diagnostic for FileError {
    fn code(&self) -> Code {
        match self {
            Self::Syntax { .. } => Code::FileSyntax,
            Self::Value { .. } | Self::MisspeltKey { .. } => Code::FileValue,
            Self::TooLarge { .. } => Code::FileTooLarge,
            Self::NotUtf8 { .. } => Code::FileNotUtf8,
            Self::NotAFile { .. } => Code::NotAFile,
            Self::NotFound(_) | Self::DanglingLink(_) => Code::FileNotFound,
            Self::Exists(_) => Code::FileExists,
            Self::Io { source, .. } => match source.kind() {
                // For the user a quota is a full disk: the same fix helps.
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::DiskFull,
                _ => Code::Io,
            },
            Self::WritableByOthers { .. } | Self::OwnedByAnother { .. } => Code::FileWritable,
            Self::LinkedState(_) | Self::UnmarkedState { .. } => Code::ProjectFileUnsafe,
            Self::NoHome(_) => Code::NoHome,
            Self::Locked { .. } => Code::LockHeld,
            Self::ConcurrentChange { .. } => Code::ConcurrentChange,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let prefix = app.prefix();
        Some(match self {
            Self::TooLarge { .. } => "check the path".to_owned(),
            Self::NoHome(_) => format!("set HOME, or {prefix}_CONFIG_DIR and {prefix}_STATE_DIR"),
            Self::NotFound(_) => "check the path".to_owned(),
            Self::DanglingLink(path) => {
                format!(
                    "restore its target, or remove the link: rm {}",
                    shell_quoted(&path.to_string_lossy())
                )
            }
            Self::MisspeltKey { near, .. } => format!("did you mean {}?", quoted(near)),
            Self::Exists(_) => "pass another path, or move the existing file away".to_owned(),
            Self::Locked { holder: Some(holder), .. } if holder.is_stopped => {
                format!("resume the stopped process: kill -CONT {}", holder.pid)
            }
            Self::Locked { .. } => "try again, or wait longer with --lock-timeout".to_owned(),
            Self::ConcurrentChange { kept: Some(kept), .. } => {
                format!("your version was saved to {}", shown(kept.display()))
            }
            Self::ConcurrentChange { .. } => "try again".to_owned(),
            Self::WritableByOthers { path, .. } => {
                format!(
                    "take the write permission from other users: chmod go-w {}",
                    shell_quoted(&path.to_string_lossy())
                )
            }
            Self::UnmarkedState { path, mode, .. } => {
                let path = shell_quoted(&path.to_string_lossy());
                // A mode that is open to others needs both: the mark counts only on closed files.
                let change = if mode & 0o077 == 0 { "+t" } else { "go=,+t" };
                format!(
                    "inspect it; delete it if it came with a checkout; if it is your own, from an earlier version or a \
                     copy: chmod -R {change} {path}"
                )
            }
            Self::LinkedState(path) => {
                format!("remove the link: rm {}", shell_quoted(&path.to_string_lossy()))
            }
            Self::OwnedByAnother { path, uid, .. } => {
                let path = shell_quoted(&path.to_string_lossy());
                format!("run the command as user {uid}, or change the owner: sudo chown \"$(id -u)\" {path}")
            }
            Self::Io { action, source, path } => match source.kind() {
                // The rename has happened already, so the old content is gone.
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if *action == "sync" => {
                    "free some space; the change was made, but may be lost if the system crashes".to_owned()
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space (df -h, df -i); the file still has its old content".to_owned()
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    format!("the file system is read-only; set {prefix}_STATE_DIR to a directory that is not")
                }
                io::ErrorKind::PermissionDenied if *action == "make directory" => {
                    let dir = shown(parent(path).display());
                    format!(
                        "check the owner and mode of {dir}, or set {prefix}_STATE_DIR to another directory"
                    )
                }
                io::ErrorKind::PermissionDenied => {
                    format!("check the owner and mode of {}", shown(parent(path).display()))
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    fn fix_command(&self, _app: &App) -> Option<String> {
        match self {
            Self::WritableByOthers { path, .. } => {
                Some(format!("chmod go-w {}", shell_quoted(&path.to_string_lossy())))
            }
            _ => None,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            // Files are locked for moments; a script should not spin meanwhile.
            Self::Locked { .. } => Some(Duration::from_millis(500)),
            // The faster process is done, so a retry can succeed at once.
            Self::ConcurrentChange { .. } => Some(Duration::ZERO),
            _ => None,
        }
    }

    fn location(&self) -> Option<&FileLocation> {
        match self {
            Self::Syntax { place, .. } | Self::Value { place, .. } => Some(place),
            _ => None,
        }
    }
}

/// Text of the operating system for an I/O error, without Rust's "(os error 13)".
pub fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    // The reason stands in the middle of a sentence.
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
