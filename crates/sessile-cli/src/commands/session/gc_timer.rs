//! Timer of systemd's user manager that runs `session gc`.
//!
//! Units are written to the user's unit directory, each atomically. The variables that move the state directory are copied into
//! the service, because the user manager may not have them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use sessile::error::{FileError, UsageError};
use sessile::files::{LockedDir, resolve_links};

use crate::cli::Cx;
use crate::error::{Failure, Outcome};

const SERVICE: &str = "sessile-gc.service";
const TIMER: &str = "sessile-gc.timer";

/// Variables that say where the state is.
const STATE_VARIABLES: [&str; 3] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "SESSILE_SYSTEM_DIR"];

/// Units of the timer.
pub(crate) struct TimerUnits {
    dir: PathBuf,
    service: String,
    timer: String,
}

impl TimerUnits {
    /// Units for this program and the state of this call.
    pub(crate) fn new(cx: &Cx) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let program = resolve_links(&program)?;
        let mut service = String::from(
            "[Unit]\nDescription=Remove expired sessions of sessile\n\n[Service]\nType=oneshot\nNice=19\n",
        );
        for name in STATE_VARIABLES {
            if let Some(value) = cx.state.world().variable(name).filter(|value| !value.is_empty()) {
                let pair = format!("{name}={}", text(name, value.to_str())?);
                service.push_str(&format!("Environment={}\n", quote(&pair, false)?));
            }
        }
        let program = quote(text("the program's path", program.to_str())?, true)?;
        service.push_str(&format!("ExecStart={program} session gc --quiet --no-input\n"));
        let timer = format!(
            "[Unit]\nDescription=Remove expired sessions of sessile every 15 minutes\n\n\
             [Timer]\nUnit={SERVICE}\nOnStartupSec=5min\nOnUnitActiveSec=15min\nRandomizedDelaySec=1min\n\n\
             [Install]\nWantedBy=timers.target\n"
        );
        Ok(TimerUnits { dir: unit_dir(cx)?, service, timer })
    }
}

/// Text of a value that goes into a unit.
fn text<'a>(what: &str, value: Option<&'a str>) -> Result<&'a str, Failure> {
    value.ok_or_else(|| UsageError::Arguments(format!("{what} is not valid UTF-8")).into())
}

/// Value in systemd's quotes. `%` begins a specifier, and in a command line `$` a variable.
fn quote(value: &str, is_command: bool) -> Result<String, Failure> {
    if value.chars().any(char::is_control) {
        let what = "a path with control characters cannot be written into a systemd unit";
        return Err(UsageError::Arguments(what.to_owned()).into());
    }
    let mut quoted = value.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    if is_command {
        quoted = quoted.replace('$', "$$");
    }
    Ok(format!("\"{quoted}\""))
}

/// Directory of the user's units.
fn unit_dir(cx: &Cx) -> Result<PathBuf, Failure> {
    let world = cx.state.world();
    let given = world.variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let config = match given {
        Some(dir) => dir,
        None => world.home().ok_or(FileError::NoHome("systemd units"))?.join(".config"),
    };
    Ok(config.join("systemd/user"))
}

/// Prints the units.
pub(crate) fn print(cx: &Cx, units: &TimerUnits) -> Outcome {
    let (service, timer) = (units.dir.join(SERVICE), units.dir.join(TIMER));
    let json = json!({
        "units": [
            { "path": service, "text": units.service },
            { "path": timer, "text": units.timer },
        ],
    });
    cx.out.result(&json, || {
        let unit = |path: &Path, text: &str| format!("# {}\n{text}", sessile::text::shown(path.display()));
        format!("{}\n{}", unit(&service, &units.service), unit(&timer, &units.timer))
    })
}

/// Writes the units and starts the timer.
pub(crate) fn install(cx: &Cx, units: &TimerUnits) -> Outcome {
    let dir = LockedDir::lock(&cx.state.locker()?, &units.dir, 0o755)?;
    dir.replace(Path::new(SERVICE), &units.service, 0o644)?;
    dir.replace(Path::new(TIMER), &units.timer, 0o644)?;
    drop(dir);
    // The result decides only the note: the units stay, for a manager that is started later.
    let is_started = systemctl(&[&["daemon-reload"], &["enable", "--now", TIMER]]);
    let (service, timer) = (units.dir.join(SERVICE), units.dir.join(TIMER));
    cx.changed(json!({ "installed": [service, timer], "started": is_started }), || {
        format!("installed {}\n", sessile::text::shown(timer.display()))
    })?;
    if !is_started {
        cx.out.note(&format!(
            "systemd's user manager is not available; when it is, run: systemctl --user daemon-reload && \
             systemctl --user enable --now {TIMER}"
        ));
    }
    Ok(())
}

/// Stops the timer and removes its units.
pub(crate) fn remove(cx: &Cx) -> Outcome {
    let units = unit_dir(cx)?;
    let mut removed = Vec::new();
    if units.is_dir() {
        // While the units exist: systemd finds by them what to stop.
        systemctl(&[&["disable", "--now", TIMER]]);
        let dir = LockedDir::lock(&cx.state.locker()?, &units, 0o755)?;
        for name in [TIMER, SERVICE] {
            if dir.remove(Path::new(name))? {
                removed.push(units.join(name));
            }
        }
        drop(dir);
        systemctl(&[&["daemon-reload"]]);
    }
    cx.changed(json!({ "removed": removed }), || match removed.first() {
        Some(timer) => format!("removed {}\n", sessile::text::shown(timer.display())),
        None => "no timer is installed\n".to_owned(),
    })
}

/// Calls `systemctl --user`. Returns whether every call succeeded.
fn systemctl(calls: &[&[&str]]) -> bool {
    calls.iter().all(|arguments| {
        let mut command = Command::new("systemctl");
        command
            .arg("--user")
            .args(*arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Without a user manager systemctl complains, which is reported as a note instead.
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}
