//! The immutable call: application, world, arguments and mode of one invocation, and what follows from them alone.
//!
//! Making a [`StateCall`] reads no file. A [`State`](crate::State) is made from it with `State::from`; the same call in another
//! session or mode is a changed copy, so that nothing of it is lost on the way.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::app::App;
use crate::args::StateArgs;
use crate::context::anonymous;
use crate::dirs::Dirs;
use crate::error::{Result, UsageError};
use crate::files::{LockWait, WaitCallback};
use crate::names::SessionId;
use crate::overrides::{Overrides, with_variables};
use crate::settings::{Layer, Origin, Value};
use crate::world::World;

/// The files that settings and contexts come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// The user's, the project's and the administrator's.
    Usual,
    /// This file alone.
    File(PathBuf),
    /// No file.
    Nothing,
}

/// Session that a call works in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionMode {
    /// The session that a flag or a variable names, else the terminal's. A named session must exist.
    #[default]
    Existing,
    /// As `Existing`; a session that a flag names is started if it does not exist.
    StartMissing,
    /// As `StartMissing`; a session that expired or was stopped is started again.
    StartEnded,
    /// A new session: the terminal's session does not count, and a context that the call names is the new session's.
    New,
    /// A session of a server: names are not looked up on this machine.
    Remote,
}

/// Treatment of session and settings by a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// Session that the call works in.
    pub session: SessionMode,
    /// Whether the call accepts a variable with a session that no longer exists, and a flag with a context other than
    /// the session's. For calls that only read, or that leave a session.
    pub tolerates_stale_session: bool,
    /// Whether settings may be unreadable. For calls that repair them, or that need none.
    pub tolerates_broken_settings: bool,
    /// Treatment of a terminal's selection that the call may not use.
    pub withheld_selection: WithheldSelection,
}

/// Treatment of a terminal's selection by a call that is not interactive and may not use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithheldSelection {
    /// The call fails, rather than work in another session or context.
    #[default]
    Fail,
    /// The call goes on without the selection, and reports that. For calls that only read.
    Report,
    /// The call goes on without the selection. For calls that the selection means nothing to.
    Ignore,
}

impl Mode {
    /// The mode of most calls: sessions exist and settings are valid.
    pub const STRICT: Mode = Mode {
        session: SessionMode::Existing,
        tolerates_stale_session: false,
        tolerates_broken_settings: false,
        withheld_selection: WithheldSelection::Fail,
    };
}

/// One invocation of an application. It can be sent to another thread, which opens a state of its own from it.
#[derive(Clone)]
pub struct StateCall {
    app: App,
    world: World,
    args: StateArgs,
    mode: Mode,
    overrides: Overrides,
    source: ConfigSource,
    dirs: Dirs,
    enclosing_session: Option<String>,
    session_origin: Origin,
    on_wait: WaitCallback,
}

impl StateCall {
    /// Call of an application. Variables replace the arguments that are missing.
    pub fn new(app: &App, world: World, args: StateArgs) -> Result<Self> {
        // Before variables fill the arguments in, after which flag and variable look the same.
        let session_origin = match &args.session {
            Some(_) => Origin::named(Layer::Flag, "--session"),
            None => Origin::named(Layer::Environment, app.variable("SESSION")),
        };
        let args = with_variables(app, &world, args)?;
        let enclosing_session =
            world.variable(&app.variable("SESSION")).map(|id| id.to_string_lossy().into_owned());
        let source = match (&args.config, args.no_config) {
            // Absolute, so that the file stays the same if the process changes its directory later.
            (Some(file), _) => ConfigSource::File(match world.cwd() {
                Some(cwd) => cwd.join(file),
                None => file.clone(),
            }),
            (None, true) => ConfigSource::Nothing,
            (None, false) => ConfigSource::Usual,
        };
        let dirs = match &source {
            ConfigSource::File(file) => Dirs::beside(file),
            _ => Dirs::resolve(app, &world)?,
        };
        let overrides = Overrides::parse(app, &world, &args)?;
        Ok(StateCall {
            app: app.clone(),
            world,
            args,
            mode: Mode::STRICT,
            overrides,
            source,
            dirs,
            enclosing_session,
            session_origin,
            on_wait: Arc::new(|_| Box::new(())),
        })
    }

    /// The same call in a mode.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The same call with another choice of its session.
    #[must_use]
    pub fn with_session_mode(mut self, session: SessionMode) -> Self {
        self.mode.session = session;
        self
    }

    /// The same call with a function that is called when a lock is waited for. The wait drops what it returns when it
    /// ends, such as a progress line.
    #[must_use]
    pub fn on_wait<T: 'static>(
        mut self,
        report: impl Fn(&LockWait<'_>) -> T + Send + Sync + 'static,
    ) -> Self {
        self.on_wait = Arc::new(move |wait| Box::new(report(wait)));
        self
    }

    /// The same call with a setting that overrides every other value, such as that of a command's own flag.
    #[must_use]
    pub fn with_override(mut self, key: &str, value: Value, origin: Origin) -> Self {
        self.overrides.put_first(key, value, origin);
        self
    }

    /// The same call in an anonymous context with these bindings, each `TOOL.KEY=VALUE`. Without bindings nothing changes.
    pub fn with_bindings(self, pairs: &[String], flag: &str) -> Result<Self> {
        if pairs.is_empty() {
            return Ok(self);
        }
        if self.args.context.is_some() {
            let what = format!("{flag} and --context exclude each other: pass one of them");
            return Err(UsageError::Arguments(what).into());
        }
        let name = anonymous::name_of(pairs, flag)?;
        Ok(self.with_override("context", Value::Text(name.to_string()), Origin::named(Layer::Flag, flag)))
    }

    /// The same call in a session that exists.
    #[must_use]
    pub fn in_session(mut self, id: &SessionId) -> Self {
        self.args.session = Some(id.to_string());
        self.session_origin = Origin::named(Layer::Flag, "--session");
        // The session exists by now; starting it again would be an error.
        self.mode.session = SessionMode::Existing;
        self
    }

    /// The application.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Arguments; variables fill in for missing flags.
    pub fn args(&self) -> &StateArgs {
        &self.args
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The directories.
    pub fn dirs(&self) -> &Dirs {
        &self.dirs
    }

    /// The files that settings and contexts come from.
    pub fn source(&self) -> &ConfigSource {
        &self.source
    }

    /// The value that flags and variables give a setting.
    pub fn override_of(&self, key: &str) -> Option<&Value> {
        self.overrides.get(key)
    }

    pub(crate) fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// The session that this call runs in, as its variable names it.
    pub fn enclosing_session(&self) -> Option<&str> {
        self.enclosing_session.as_deref()
    }

    /// The flag or the variable that names the session of this call, or would.
    pub fn session_origin(&self) -> &Origin {
        &self.session_origin
    }

    /// The OS user, whom sessions and the history belong to.
    pub fn account(&self) -> String {
        // By number: the name of a user can change, or be unknown in a container.
        format!("uid:{}", self.world.uid())
    }

    /// The owner of selections: a call whose flag or variable names a credential has selections of its own. Files do
    /// not count here, for a selection decides which of them are read.
    pub(crate) fn pointer_account(&self) -> String {
        match self.override_of("credential") {
            Some(name) => format!("{}/{name}", self.account()),
            None => self.account(),
        }
    }

    pub(crate) fn wait_callback(&self) -> WaitCallback {
        Arc::clone(&self.on_wait)
    }

    /// A path made absolute, for messages and for the store.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.world.cwd().map_or_else(|| path.to_owned(), |cwd| cwd.join(path))
    }
}
