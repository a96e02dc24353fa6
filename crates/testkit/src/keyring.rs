//! A desktop's keychain: GNOME's, on a message bus of its own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{require_tool, tool_path};

/// Timeout of the programs' start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks whether they are.
const PAUSE: Duration = Duration::from_millis(10);

/// Attempts per request to the daemon.
const ATTEMPTS: u32 = 5;

/// The collection that the daemon makes when it is given a password.
const LOGIN: &str = "/org/freedesktop/secrets/collection/login";

/// A bus that starts nothing by itself: a second daemon would be asked instead of the one that is unlocked.
const BUS: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=SOCKET</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

/// A keychain that is unlocked, with nothing in it. It ends when this is dropped.
pub struct Keyring {
    dir: tempfile::TempDir,
    bus: Child,
    daemon: Option<Child>,
}

impl Keyring {
    /// Starts a bus and the daemon.
    #[track_caller]
    pub fn new() -> Self {
        let mut keyring = Keyring::empty();
        keyring.start_daemon();
        keyring
    }

    /// Starts a bus on which nobody keeps secrets.
    #[track_caller]
    pub fn empty() -> Self {
        let dbus = require_tool("dbus-daemon");
        // Sockets need short paths.
        let dir = tempfile::Builder::new().prefix("keyring-").tempdir_in("/tmp").expect("a directory");
        for name in ["home", "data", "run"] {
            private_dir(&dir.path().join(name));
        }
        let config = dir.path().join("bus.conf");
        let socket = dir.path().join("bus");
        std::fs::write(&config, BUS.replace("SOCKET", &socket.display().to_string())).expect("a file");
        let bus = environment(&mut Command::new(dbus), dir.path())
            .args(["--nofork", "--nopidfile", "--config-file"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon starts");
        let mut keyring = Keyring { dir, bus, daemon: None };
        keyring.wait_for("the bus", |_| std::os::unix::net::UnixStream::connect(&socket).is_ok());
        keyring
    }

    /// The bus, as `DBUS_SESSION_BUS_ADDRESS` names it.
    pub fn address(&self) -> String {
        format!("unix:path={}", self.socket().display())
    }

    /// The bus's socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("bus")
    }

    /// Locks the collection. Only its password opens it again, and nobody is there to give it.
    #[track_caller]
    pub fn lock(&self) {
        // To somebody whom the daemon has not noticed yet, there is no collection.
        let is_locked = (0..ATTEMPTS).any(|_| {
            self.ask(&["org.freedesktop.Secret.Service.Lock", &format!("array:objpath:{LOGIN}")]);
            self.is_locked() == Some(true)
        });
        assert!(is_locked, "the keyring cannot be locked");
    }

    /// Kills the daemon, and starts one that finds what it left and is unlocked.
    #[track_caller]
    pub fn restart(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().expect("the daemon cannot be killed");
            daemon.wait().expect("it ends");
        }
        // The bus notices that in its own time; until then the name is the dead one's.
        self.wait_for("the end of the old daemon", |keyring| {
            let owner = ["org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"];
            keyring.send_to("org.freedesktop.DBus", "/org/freedesktop/DBus", &owner).contains("boolean false")
        });
        self.start_daemon();
    }

    /// Stops the bus in its tracks, or lets it go on.
    #[track_caller]
    pub fn halt(&self, halted: bool) {
        let signal = if halted { "-STOP" } else { "-CONT" };
        let pid = self.bus.id().to_string();
        let status = Command::new(require_tool("kill")).args([signal, &pid]).status().expect("kill runs");
        assert!(status.success());
    }

    #[track_caller]
    fn start_daemon(&mut self) {
        let program = require_tool("gnome-keyring-daemon");
        let said = std::fs::OpenOptions::new().create(true).append(true).open(self.said()).expect("a file");
        let mut daemon = environment(&mut Command::new(program), self.dir.path())
            .args(["--foreground", "--components=secrets", "--unlock"])
            .env("DBUS_SESSION_BUS_ADDRESS", self.address())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Kept, because the daemon says only there why it has ended.
            .stderr(said)
            .spawn()
            .expect("gnome-keyring-daemon starts");
        // The end of the input is the end of the password.
        daemon
            .stdin
            .take()
            .expect("an input")
            .write_all(b"password")
            .expect("the daemon does not read the password");
        self.daemon = Some(daemon);
        // The daemon takes its name on the bus before it has unlocked the collection.
        self.wait_for("the login collection", |keyring| {
            keyring.ask(&["org.freedesktop.Secret.Service.ReadAlias", "string:default"]).contains(LOGIN)
                && keyring.is_locked() == Some(false)
        });
    }

    /// Standard error of the daemon.
    fn said(&self) -> PathBuf {
        self.dir.path().join("said")
    }

    /// All properties are asked for: the daemon aborts if somebody whom it has not noticed yet asks for one of a collection.
    fn is_locked(&self) -> Option<bool> {
        let said = self.send(
            LOGIN,
            &["org.freedesktop.DBus.Properties.GetAll", "string:org.freedesktop.Secret.Collection"],
        );
        let (_, locked) = said.split_once("\"Locked\"")?;
        let value = locked.split_once("boolean ")?.1;
        Some(value.starts_with("true"))
    }

    /// Response of the service, if any.
    fn ask(&self, call: &[&str]) -> String {
        self.send("/org/freedesktop/secrets", call)
    }

    fn send(&self, object: &str, call: &[&str]) -> String {
        self.send_to("org.freedesktop.secrets", object, call)
    }

    fn send_to(&self, name: &str, object: &str, call: &[&str]) -> String {
        let done = Command::new(require_tool("dbus-send"))
            .arg(format!("--bus={}", self.address()))
            .args(["--print-reply", &format!("--dest={name}"), object])
            .args(call)
            .output()
            .expect("dbus-send runs");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    #[track_caller]
    fn wait_for(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_there(self) {
            for child in [Some(&mut self.bus), self.daemon.as_mut()].into_iter().flatten() {
                let ended = child.try_wait().expect("a child's status");
                assert!(ended.is_none(), "{what} not available: a program has ended, {ended:?}");
            }
            assert!(start.elapsed() < PATIENCE, "{what} not available after {PATIENCE:?}");
            std::thread::sleep(PAUSE);
        }
    }
}

impl Default for Keyring {
    fn default() -> Self {
        Keyring::new()
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        // It may have ended by itself, and nobody else knows why.
        if std::thread::panicking() {
            let ended = self.daemon.as_mut().and_then(|daemon| daemon.try_wait().ok().flatten());
            let said = std::fs::read_to_string(self.said()).unwrap_or_default();
            let _ = writeln!(std::io::stderr(), "the keychain's daemon: {ended:?}\n{said}");
        }
        for child in self.daemon.iter_mut().chain([&mut self.bus]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Environment without the developer's own desktop.
fn environment<'a>(command: &'a mut Command, dir: &Path) -> &'a mut Command {
    command
        .env_clear()
        .env("PATH", tool_path())
        .env("HOME", dir.join("home"))
        .env("XDG_DATA_HOME", dir.join("data"))
        .env("XDG_RUNTIME_DIR", dir.join("run"))
}

fn private_dir(path: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(path).expect("a directory");
}
