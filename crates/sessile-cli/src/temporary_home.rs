//! Temporary home directory in which real tools run, for demonstrations and checks.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sessile::error::FileError;
use sessile::{Error, World};

/// Timeout of one command.
const PATIENCE: Duration = Duration::from_secs(60);

/// Temporary home directory, removed on drop.
pub(crate) struct TemporaryHome {
    dir: tempfile::TempDir,
    path: OsString,
}

impl TemporaryHome {
    pub(crate) fn new(world: &World) -> Result<Self, Error> {
        let dir = tempfile::Builder::new()
            .prefix("sessile-demo-")
            .tempdir()
            .map_err(|source| FileError::Io { action: "write", path: std::env::temp_dir(), source })?;
        let tmp = dir.path().join("tmp");
        std::fs::create_dir(&tmp).map_err(|source| FileError::Io { action: "write", path: tmp, source })?;
        Ok(TemporaryHome { dir, path: world.variable("PATH").map(OsString::from).unwrap_or_default() })
    }

    /// The home itself.
    pub(crate) fn home(&self) -> &Path {
        self.dir.path()
    }

    /// Whether a program is found.
    pub(crate) fn has_program(&self, name: &str) -> bool {
        has_program(&self.path, name)
    }

    /// Takes the user's own profiles along.
    pub(crate) fn take_profiles(&self, config: Option<&Path>) -> Result<(), Error> {
        let Some(from) = config.map(|config| config.join("tools")).filter(|dir| dir.is_dir()) else {
            return Ok(());
        };
        let to = self.home().join(".config/sessile");
        let fail = |source| Error::File(FileError::Io { action: "link", path: to.clone(), source });
        std::fs::create_dir_all(&to).map_err(fail)?;
        // A link is enough: profiles are only read.
        std::os::unix::fs::symlink(from, to.join("tools")).map_err(fail)
    }

    /// Runs a command with nothing of the user's but the search path. Returns what it printed, if it succeeded.
    pub(crate) fn run(&self, words: &[String]) -> Option<String> {
        let (program, arguments) = words.split_first()?;
        let mut child = Command::new(program)
            .args(arguments)
            // The user's own variables could lead a tool back to the real home.
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.home())
            .env("TMPDIR", self.home().join("tmp"))
            .env("LANG", "C.UTF-8")
            .current_dir(self.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        // The output is read beside the wait: a tool may print more than a pipe holds.
        let mut stdout = child.stdout.take()?;
        let reader = std::thread::Builder::new().spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        let Ok(reader) = reader else {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        };
        let begun = Instant::now();
        let status = loop {
            match child.try_wait().ok()? {
                Some(status) => break status,
                None if begun.elapsed() > PATIENCE => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return None;
                }
                // std has no wait with a timeout.
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let text = reader.join().ok()?.ok()?;
        status.success().then_some(text)
    }
}

/// Whether a program is found on a search path.
pub(crate) fn has_program(path: &OsStr, name: &str) -> bool {
    std::env::split_paths(path).any(|dir| is_program(&dir.join(name)))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
