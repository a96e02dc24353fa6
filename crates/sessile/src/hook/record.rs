//! Records of the shells that have loaded the hook.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::files::LockedDir;
use crate::process::ProcessId;
use crate::run::shell::Shell;
use crate::state::State;
use crate::terminal::Terminal;

/// Directory of the records, in the state directory.
const DIR: &str = "shells";

/// Selection by which a shell entered a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnteredBy {
    /// A session that was selected for the terminal.
    Session,
    /// A context that was selected for the terminal.
    Terminal,
    /// A context that the directory or the user's settings select.
    Directory,
    /// A selection that may not be used.
    Blocked,
    /// The shell was started in it, by `run` or `shell`.
    Started,
}

impl EnteredBy {
    /// Word in the variable that a hooked shell exports; none for a session that the hook did not enter.
    pub fn word(self) -> Option<&'static str> {
        match self {
            EnteredBy::Session => Some("session"),
            EnteredBy::Terminal => Some("terminal"),
            EnteredBy::Directory => Some("directory"),
            EnteredBy::Blocked => Some("blocked"),
            EnteredBy::Started => None,
        }
    }

    /// Selection that a word names.
    pub fn of_word(word: &str) -> Option<Self> {
        let all = [EnteredBy::Session, EnteredBy::Terminal, EnteredBy::Directory, EnteredBy::Blocked];
        all.into_iter().find(|by| by.word() == Some(word))
    }
}

/// Session whose variables a shell has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnteredSession {
    /// Id of the session.
    pub session: String,
    /// Context of the session, or the unusable context of a blocked session.
    pub context: Option<String>,
    /// Selection that led to it.
    pub by: EnteredBy,
    /// Whether the session came from a shell on another terminal, which selected it there.
    #[serde(default)]
    pub adopted: bool,
    /// Selection that ended with its session: the shell stays on the emptied room until a person leaves it.
    #[serde(default)]
    pub over: Option<EnteredBy>,
    /// Reason why the session is a blocked one.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Shell that has loaded the hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookedShell {
    /// The shell.
    pub process: ProcessId,
    /// Which shell it is.
    #[serde(default)]
    pub shell: Option<Shell>,
    /// Hash of its program and arguments: another program may take its place by `exec`.
    pub program: u64,
    /// Terminal that it is on, by its key.
    #[serde(default)]
    pub terminal: Option<String>,
    /// Whether it was started in the session of a hooked shell on another terminal, where no guard can be opened.
    #[serde(default)]
    pub is_inside: bool,
    /// Session that it is in.
    pub entered: Option<EnteredSession>,
    /// Sessions that the hook started for it, by context or reason.
    #[serde(default)]
    pub started: BTreeMap<String, String>,
    /// Variables that lead into the session, as the hook set them.
    #[serde(default)]
    pub variables: BTreeMap<String, Option<String>>,
}

impl HookedShell {
    /// A shell that has just loaded the hook.
    pub(super) fn new(state: &State, process: ProcessId, shell: Shell) -> Self {
        let program = program_of(process.pid);
        let terminal = state.call().interactive_terminal().map(Terminal::key);
        let is_inside = Self::inherits_from_elsewhere(state, terminal.as_deref());
        HookedShell {
            process,
            shell: Some(shell),
            program,
            terminal,
            is_inside,
            entered: None,
            started: BTreeMap::new(),
            variables: BTreeMap::new(),
        }
    }

    /// Whether the session of this call comes from a hooked shell on another terminal. A program opens a terminal as easily
    /// as a person, so such a shell proves no person.
    fn inherits_from_elsewhere(state: &State, terminal: Option<&str>) -> bool {
        if state.enclosing_session().is_none() || state.entered_by().is_none() {
            return false;
        }
        let Ok(dir) = state.dirs().state().map(|dir| dir.join(DIR)) else { return true };
        let record = |pid: i32| Self::read(&dir.join(pid.to_string()));
        // The nearest shell above; by `exec`, another program has the place of the same shell.
        let above = crate::process::lineage().into_iter().filter_map(record);
        let outer = above.into_iter().find(|shell| shell.process.is_alive());
        // The server of a terminal multiplexer has no parent, and its windows have other terminals than the one it was started in.
        outer.is_none_or(|outer| {
            outer.is_inside || outer.terminal.as_deref().is_some_and(|key| Some(key) != terminal)
        })
    }

    /// Record of a process; none if another process or another program had its pid.
    pub fn load(state: &State, pid: i32) -> Option<Self> {
        let dir = state.dirs().state().ok()?.join(DIR);
        let found = Self::read(&dir.join(pid.to_string()))?;
        (found.process.is_alive() && found.program == program_of(pid)).then_some(found)
    }

    fn read(path: &Path) -> Option<Self> {
        serde_json::from_str(&crate::files::read(path).ok()??).ok()
    }

    /// Writes the record. Returns its path.
    pub(super) fn save(&self, state: &State) -> Result<PathBuf> {
        let dir = state.dirs().state_for_writing()?.join(DIR);
        let name = PathBuf::from(self.process.pid.to_string());
        let text = serde_json::to_string(self).unwrap_or_default();
        let locked = LockedDir::lock(&state.locker()?, &dir, 0o700)?;
        locked.replace_for_now(&name, &text, 0o600)?;
        Ok(dir.join(name))
    }

    /// File whose existence makes the shell look again at the next prompt.
    pub(super) fn request_path(state: &State, pid: i32) -> Result<PathBuf> {
        Ok(state.dirs().state()?.join(DIR).join(format!("{pid}.changed")))
    }

    /// Asks the shell to follow the selection at its next prompt, wherever it is now.
    pub(crate) fn request_change(&self, state: &State) -> Result<()> {
        let path = Self::request_path(state, self.process.pid)?;
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        LockedDir::lock(&state.locker()?, dir, 0o700)?.replace_for_now(Path::new(name), "", 0o600)
    }

    /// Whether a change was requested and not yet followed.
    pub(super) fn has_request(state: &State, pid: i32) -> bool {
        Self::request_path(state, pid).is_ok_and(|path| path.exists())
    }

    /// Consumes the request for a change. Returns whether one existed.
    pub(super) fn take_request(state: &State, pid: i32) -> Result<bool> {
        let path = Self::request_path(state, pid)?;
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
        if !path.exists() {
            return Ok(false);
        }
        LockedDir::lock(&state.locker()?, dir, 0o700)?.remove(Path::new(name))
    }

    /// Removes the records of shells that have ended. Returns the sessions that the hook started for them and that no
    /// other shell is in.
    pub(super) fn prune(state: &State) -> Result<Vec<String>> {
        let dir = state.dirs().state()?.join(DIR);
        if !dir.is_dir() {
            return Ok(Vec::new());
        }
        let (mut left, mut used) = (Vec::new(), Vec::new());
        let locked = LockedDir::lock(&state.locker()?, &dir, 0o700)?;
        for (path, shell) in records(&dir) {
            if shell.process.is_alive() {
                used.extend(shell.entered.map(|entered| entered.session));
                used.extend(shell.started.into_values());
            } else {
                left.extend(shell.started.into_values());
                if let Some(name) = path.file_name() {
                    locked.remove(Path::new(name))?;
                }
            }
        }
        left.retain(|session| !used.contains(session));
        Ok(left)
    }
}

/// Hash of a process's program and arguments; 0 where the system does not tell.
fn program_of(pid: i32) -> u64 {
    let Some(arguments) = crate::process::read_kernel_file(&format!("/proc/{pid}/cmdline")) else { return 0 };
    let mut hasher = DefaultHasher::new();
    std::fs::read_link(format!("/proc/{pid}/exe")).ok().hash(&mut hasher);
    arguments.hash(&mut hasher);
    hasher.finish()
}

fn records(dir: &Path) -> Vec<(PathBuf, HookedShell)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), HookedShell::read(&entry.path())?))).collect()
}

/// Live hooked shells that are in a session, by the state directory.
pub(crate) fn live_shells(state_dir: &Path, session: &str) -> Vec<i32> {
    let is_in = |shell: &HookedShell| {
        shell.entered.as_ref().is_some_and(|entered| entered.session == session) && shell.process.is_alive()
    };
    let all = records(&state_dir.join(DIR)).into_iter().map(|(_, shell)| shell);
    all.filter(is_in).map(|shell| shell.process.pid).collect()
}
