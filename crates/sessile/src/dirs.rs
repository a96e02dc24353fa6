//! Directories of the application: the XDG directories, each overridable by a variable.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use crate::app::App;
use crate::config_state::CallLock;
use crate::error::{Error, FileError, Result, UsageError};
use crate::files::{MARK, check_marked_state, check_state_dir, create_dir, network_file_system};
use crate::runtime::{RuntimeProblem, require_private, require_private_place};
use crate::world::World;

/// Attempts to create a state directory that other calls remove.
const MOST_ATTEMPTS: usize = 100;

/// The directories of one application for one user.
#[derive(Clone, Debug)]
pub struct Dirs {
    /// Files that people edit: `config.toml`, `contexts/`, `tools/`.
    config: Option<PathBuf>,
    /// State that the application owns: store, rooms, vault.
    state: Option<PathBuf>,
    /// Cache, which can be deleted.
    cache: Option<PathBuf>,
    /// Sockets and ephemeral rooms.
    runtime: Option<PathBuf>,
    /// The system's runtime directory, if ours is in it.
    system_runtime: Option<PathBuf>,
    /// The administrator's.
    system: PathBuf,
    /// Lock on the state directory beside a `--config` file; `None` if the user chose the directory.
    beside: Option<CallLock>,
    /// Whether the state directory exists and passed the check.
    is_state_checked: Cell<bool>,
}

impl Dirs {
    /// The directories, from the application's own variables, then XDG's, then the home directory.
    ///
    /// The XDG specification ignores a relative path in its variables. In the application's own variables it is an
    /// error: a user who sets one does not expect writes to the default directory.
    pub fn resolve(app: &App, world: &World) -> Result<Self> {
        for own in ["CONFIG_DIR", "STATE_DIR", "CACHE_DIR", "RUNTIME_DIR", "SYSTEM_DIR"] {
            let variable = app.variable(own);
            if let Some(value) = world.variable(&variable)
                && world.path_variable(&variable).is_none()
            {
                return Err(UsageError::InvalidValue {
                    place: variable,
                    value: value.to_string_lossy().into_owned(),
                    expected: "an absolute path".into(),
                }
                .into());
            }
        }
        let place = |own: &str, xdg: &str, below_home: &str| {
            world.path_variable(&app.variable(own)).map(Path::to_owned).or_else(|| {
                world
                    .path_variable(xdg)
                    .map(Path::to_owned)
                    .or_else(|| {
                        // The runtime directory has no place below the home: it must not survive a logout.
                        world.home().filter(|_| !below_home.is_empty()).map(|home| home.join(below_home))
                    })
                    .map(|base| base.join(app.name()))
            })
        };
        Ok(Dirs {
            config: place("CONFIG_DIR", "XDG_CONFIG_HOME", ".config"),
            state: place("STATE_DIR", "XDG_STATE_HOME", ".local/state"),
            cache: place("CACHE_DIR", "XDG_CACHE_HOME", ".cache"),
            runtime: place("RUNTIME_DIR", "XDG_RUNTIME_DIR", ""),
            system_runtime: world
                .path_variable("XDG_RUNTIME_DIR")
                .filter(|_| world.path_variable(&app.variable("RUNTIME_DIR")).is_none())
                .map(Path::to_owned),
            system: world
                .path_variable(&app.variable("SYSTEM_DIR"))
                .map_or_else(|| Path::new("/etc").join(app.name()), Path::to_owned),
            beside: None,
            is_state_checked: Cell::new(false),
        })
    }

    /// The directories beside an isolated configuration file: state in `FILE.state/`, nothing else.
    pub fn beside(file: &Path) -> Self {
        let mut state = file.as_os_str().to_owned();
        // Beside the file and named after it, so that two files never share state.
        state.push(".state");
        Dirs {
            config: None,
            state: Some(PathBuf::from(state)),
            cache: None,
            runtime: None,
            system_runtime: None,
            system: PathBuf::new(),
            beside: Some(CallLock::default()),
            is_state_checked: Cell::new(false),
        }
    }

    /// People's configuration directory.
    pub fn config(&self) -> Result<&Path> {
        self.config.as_deref().ok_or(Error::File(FileError::NoHome("the configuration")))
    }

    /// The state directory. Fails if another user owns it or can write to it, and beside a file if this program did not
    /// create it.
    pub fn state(&self) -> Result<&Path> {
        let dir = self.state.as_deref().ok_or(Error::File(FileError::NoHome("the state")))?;
        // One that does not exist yet is checked again once it does.
        if !self.is_state_checked.get() {
            let check = if self.beside.is_some() { check_marked_state } else { check_state_dir };
            self.is_state_checked.set(check(dir)?);
        }
        Ok(dir)
    }

    /// The state directory, for a call that is about to create something in it. One beside a file is created here, with its
    /// mark, which everything that is created in it inherits.
    pub fn state_for_writing(&self) -> Result<&Path> {
        let dir = self.state()?;
        let Some(lock) = &self.beside else { return Ok(dir) };
        // The store reports a network file system and leaves nothing there.
        if !self.is_state_checked.get() && network_file_system(dir).is_some() {
            return Ok(dir);
        }
        // A call that ends may remove the directory in between.
        for _ in 0..MOST_ATTEMPTS {
            if !self.is_state_checked.get() {
                create_dir(dir, 0o700 | MARK)?;
                // Checked after it was made: another process may have made it differently in between.
                self.state()?;
            }
            if lock.share(dir)? {
                return Ok(dir);
            }
            self.is_state_checked.set(false);
        }
        Err(Error::io("create", dir, std::io::ErrorKind::NotFound.into()))
    }

    /// Lock on the state directory, if it is beside a file.
    pub(crate) fn call_lock(&self) -> Option<&CallLock> {
        self.beside.as_ref()
    }

    /// Cache directory, if one can be resolved.
    pub fn cache(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    /// Runtime directory, if it is private to the user. It need not exist yet.
    pub fn runtime(&self, uid: u32) -> std::result::Result<&Path, RuntimeProblem> {
        let dir = self.runtime.as_deref().ok_or(RuntimeProblem::Missing)?;
        if let Some(system) = &self.system_runtime {
            // The system's directory first: in a shared one another user could exchange ours.
            require_private(system, uid)?;
        }
        require_private_place(dir, uid).map(|()| dir)
    }

    /// The administrator's directory.
    pub fn system(&self) -> &Path {
        &self.system
    }

    /// The user's settings file, if a configuration directory can be resolved.
    pub fn user_settings(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|dir| dir.join("config.toml"))
    }

    /// The administrator's settings file.
    pub fn system_settings(&self) -> PathBuf {
        self.system.join("config.toml")
    }

    /// The store.
    pub fn store(&self) -> Result<PathBuf> {
        Ok(self.state()?.join("state.db"))
    }
}
