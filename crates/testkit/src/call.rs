//! One call of a program: nothing of the developer's environment in it, standard input closed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Timeout of a call.
const PATIENCE: Duration = Duration::from_secs(180);

use crate::Tty;

/// A call that has not been made yet.
pub struct Call {
    command: Command,
    home: PathBuf,
    stdin: Option<Vec<u8>>,
}

impl Call {
    pub(crate) fn new(program: &Path, home: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .args(args)
            // Nothing of the developer's environment may decide a test.
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home)
            // Beside the home, so that comparing the home before and after sees no temporary files.
            .env("TMPDIR", home.with_file_name("tmp"))
            // The machine's own settings must not leak into a test.
            .env("SESSILE_SYSTEM_DIR", home.join("etc"))
            // terraform writes into the home behind one's back otherwise, at some time or other.
            .env("CHECKPOINT_DISABLE", "1")
            .current_dir(home);
        Call { command, home: home.to_owned(), stdin: None }
    }

    /// With a variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Without a variable.
    #[must_use]
    pub fn no_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(name);
        self
    }

    /// With all programs that the machine has within reach.
    #[must_use]
    pub fn with_tools(self) -> Self {
        self.env("PATH", crate::tool_path())
    }

    /// In a directory below the home.
    #[must_use]
    pub fn cwd(mut self, relative: impl AsRef<Path>) -> Self {
        self.command.current_dir(self.home.join(relative));
        self
    }

    /// With more arguments, which need not be text.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// With more arguments.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    /// With something on standard input.
    #[must_use]
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Makes the call on a terminal of its own.
    pub fn tty(self) -> Tty {
        Tty::new(self)
    }

    /// The command itself, for tests that spawn it their own way.
    pub fn command(self) -> Command {
        self.command
    }

    /// A call of another program in the same directory with the same variables, to which this one can be told.
    pub(crate) fn replaced(&self, program: &Path, args: &[&str]) -> Self {
        let mut other = Call::new(program, &self.home, args);
        other.command.env_clear().envs(self.variables()).current_dir(self.directory());
        other
    }

    /// The program and its arguments, which must be text.
    pub(crate) fn words(&self) -> Vec<String> {
        std::iter::once(self.command.get_program()).chain(self.command.get_args()).map(text).collect()
    }

    /// All variables of the call, which must be text.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let set = self.command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        set.map(|(name, value)| (text(name), text(value))).collect()
    }

    /// The directory of the call.
    pub(crate) fn directory(&self) -> String {
        text(self.command.get_current_dir().expect("a directory").as_os_str())
    }

    /// Makes the call and waits for its end.
    pub fn run(mut self) -> CallResult {
        let description = format!("{:?}", self.command.get_args().collect::<Vec<_>>());
        self.command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child =
            self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        if let Some(text) = &self.stdin {
            // A program that does not read its input may be gone already.
            let _ = child.stdin.take().expect("a pipe").write_all(text);
        }
        // A program that waits for ever is ended, and the test sees a status that it does not expect.
        let (over, watch) = std::sync::mpsc::channel::<()>();
        let pid = child.id().to_string();
        std::thread::spawn(move || {
            if watch.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // By its id, because the child itself belongs to the wait below.
                let _ = Command::new("kill").args(["-9", &pid]).status();
            }
        });
        let output = child.wait_with_output().expect("the program ends");
        // Ends the watchdog, which would otherwise kill a later process with the same id.
        drop(over);
        CallResult { description, home: self.home, output }
    }

    /// Makes the call, which must succeed.
    pub fn ok(self) -> CallResult {
        self.run().exit(0)
    }
}

fn text(text: &OsStr) -> String {
    text.to_str().expect("text").to_owned()
}

/// Result of a call.
pub struct CallResult {
    description: String,
    home: PathBuf,
    output: Output,
}

impl CallResult {
    /// The same, if the exit status is the one expected.
    #[track_caller]
    pub fn exit(self, expected: i32) -> Self {
        assert_eq!(self.output.status.code(), Some(expected), "{}\n{}", self.description, self.told());
        self
    }

    /// Standard output.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The exit status, or `None` after a signal.
    pub fn status(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout()).unwrap_or_else(|error| panic!("{error}\n{}", self.told()))
    }

    /// The error on standard error, which must be one line of JSON; standard output must be empty.
    #[track_caller]
    pub fn json_error(&self) -> serde_json::Value {
        assert_eq!(self.stdout(), "", "{}", self.told());
        let stderr = self.stderr();
        // Warnings come before the error.
        let line = stderr.lines().last().unwrap_or_default();
        let value: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}\n{}", self.told()));
        value["error"].clone()
    }

    /// The error's code.
    #[track_caller]
    pub fn code(&self) -> String {
        self.json_error()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Status, output and error together, with the home written as `~`: for snapshots.
    pub fn told(&self) -> String {
        let home = self.home.display().to_string();
        let tilde = |text: String| text.replace(&home, "~");
        format!(
            "exit {}\n--- stdout\n{}--- stderr\n{}",
            self.status().map_or_else(|| "by signal".to_owned(), |status| status.to_string()),
            tilde(self.stdout()),
            tilde(self.stderr())
        )
    }
}
