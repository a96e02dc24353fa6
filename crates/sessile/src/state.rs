//! State of one application in one invocation.
//!
//! A state is three things: the [`StateCall`], which never changes; the resolution of its session, context and settings
//! (`crate::resolve`); and the handles in this file: store, vault key, locks. Opening it reads nothing. Files are
//! read and the store is opened when something in them is needed, once.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::app::App;
use crate::args::StateArgs;
use crate::call::{ConfigSource, StateCall};
use crate::dirs::Dirs;
use crate::error::{Error, FileError, Result, StoreError, UsageError};
use crate::files::Locker;
use crate::names::SessionId;
use crate::resolve::Resolution;
use crate::runtime::RuntimeProblem;
use crate::session::Session;
use crate::session::resolve::CurrentSession;
use crate::settings::Origin;
use crate::store::Store;
use crate::vault_key::VaultKey;
use crate::warning::Warning;
use crate::world::World;

/// The lock timeout of writes that must not be lost, at least.
const PATIENT_LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The state of an application in one call.
pub struct State {
    call: StateCall,
    pub(crate) resolution: Resolution,
    handles: Handles,
    warnings: RefCell<Vec<Warning>>,
}

/// Handles that a call has opened.
#[derive(Default)]
struct Handles {
    /// Store for reading; the inner `None` is a store that does not exist yet.
    store: OnceCell<Option<Store>>,
    has_opened_for_writing: Cell<bool>,
    vault_key: RefCell<Option<VaultKey>>,
}

impl From<StateCall> for State {
    /// Opens the state of a call. Reads nothing.
    fn from(call: StateCall) -> Self {
        State {
            call,
            resolution: Resolution::default(),
            handles: Handles::default(),
            warnings: RefCell::default(),
        }
    }
}

impl State {
    /// Opens the state of an application, from its world and the arguments of this call.
    pub fn open(app: &App, world: World, args: StateArgs) -> Result<Self> {
        StateCall::new(app, world, args).map(State::from)
    }

    /// Same call in a session, resolved again because the session may have another context.
    #[must_use]
    pub fn in_session(&self, id: &SessionId) -> Self {
        State::from(self.call.clone().in_session(id))
    }

    /// Same call in a session that it has just started, which has no settings of its own yet.
    pub(crate) fn in_started_session(&self, session: Rc<Session>) -> Self {
        let state = self.in_session(&session.id);
        let current = CurrentSession { session, origin: state.session_origin(), settings: Vec::new() };
        state.resolution.set_session(current);
        state
    }

    /// The call.
    pub fn call(&self) -> &StateCall {
        &self.call
    }

    /// The application.
    pub fn app(&self) -> &App {
        self.call.app()
    }

    /// The world.
    pub fn world(&self) -> &World {
        self.call.world()
    }

    /// Arguments; variables fill in for missing flags.
    pub fn args(&self) -> &StateArgs {
        self.call.args()
    }

    /// The directories.
    pub fn dirs(&self) -> &Dirs {
        self.call.dirs()
    }

    /// Runtime directory that no other user can access.
    pub fn runtime_dir(&self) -> std::result::Result<&Path, RuntimeProblem> {
        self.dirs().runtime(self.world().uid())
    }

    /// The files that settings and contexts come from.
    pub fn source(&self) -> &ConfigSource {
        self.call.source()
    }

    /// The session that this call runs in, as its variable names it.
    pub fn enclosing_session(&self) -> Option<&str> {
        self.call.enclosing_session()
    }

    /// The flag or the variable that names the session of this call, or would.
    pub fn session_origin(&self) -> Origin {
        self.call.session_origin().clone()
    }

    /// The OS user, whom sessions and the history belong to.
    pub fn account(&self) -> String {
        self.call.account()
    }

    pub(crate) fn pointer_account(&self) -> String {
        self.call.pointer_account()
    }

    /// A path made absolute, for messages and for the store.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.call.absolute(path)
    }

    /// The time in milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        self.world().now().as_millisecond()
    }

    /// The vault's key, once this call knows it.
    pub(crate) fn vault_key(&self) -> &RefCell<Option<VaultKey>> {
        &self.handles.vault_key
    }

    /// Locks with the timeout of the settings.
    pub fn locker(&self) -> Result<Locker> {
        Ok(Locker::new(self.lock_timeout()?).on_wait(self.call.wait_callback()))
    }

    /// Locks for reading the store, also while the settings are not resolved.
    fn reader_locker(&self) -> Locker {
        Locker::new(self.early_lock_timeout()).on_wait(self.call.wait_callback())
    }

    /// Store for reading; `None` if the store does not exist or files are off.
    pub(crate) fn store(&self) -> Result<Option<&Store>> {
        if self.handles.store.get().is_none() {
            let store = match (self.source(), self.dirs().store()) {
                // A call that needs no state must work without a home.
                (ConfigSource::Nothing, _) | (_, Err(Error::File(FileError::NoHome(_)))) => None,
                (_, Err(error)) => return Err(error),
                // Readers wait only for a migration or a recovery.
                (_, Ok(path)) => Store::open_for_answers(&path, &self.reader_locker())?,
            };
            let _ = self.handles.store.set(store);
        }
        Ok(self.handles.store.get().and_then(Option::as_ref))
    }

    /// Store for writing. A damaged store is moved aside first, and its readable rows are recovered.
    pub(crate) fn store_for_writing(&self) -> Result<Store> {
        self.open_for_writing(&self.locker()?)
    }

    /// The same for what would be lost if it could not be written: it waits longer for its turn.
    pub(crate) fn store_for_writing_patiently(&self) -> Result<Store> {
        let locker = self.locker()?;
        let timeout = locker.timeout().max(PATIENT_LOCK_TIMEOUT);
        self.open_for_writing(&locker.with_timeout(timeout))
    }

    fn open_for_writing(&self, locker: &Locker) -> Result<Store> {
        if *self.source() == ConfigSource::Nothing {
            return Err(UsageError::Arguments(
                "state cannot be changed with --no-config; remove the flag".into(),
            )
            .into());
        }
        self.dirs().state_for_writing()?;
        let path = self.dirs().store()?;
        // Before the attempt: damage that it finds is then recovered, although it failed.
        self.handles.has_opened_for_writing.set(true);
        let store = match Store::open_for_writing(&path, locker) {
            Err(Error::Store(StoreError::Corrupt { .. })) => {
                // Only on the way to a write: a reader may be a backup or a prompt, and moves nothing.
                self.recover_store(locker)?;
                Store::open_for_writing(&path, locker)
            }
            other => other,
        }?;
        // Another user may have made the directory since it was found missing.
        self.dirs().state()?;
        Ok(store)
    }

    /// Recovers a store whose damage was found during a write, so that the next call succeeds. Calls that only read
    /// do not recover.
    pub fn recover_after(&self, error: &Error) {
        let is_corrupt = matches!(error, Error::Store(StoreError::Corrupt { .. }));
        if self.handles.has_opened_for_writing.get() && is_corrupt {
            // If that fails, the damage is reported all the same.
            let _ = self.locker().and_then(|locker| self.recover_store(&locker));
        }
    }

    /// Moves a damaged store aside and recovers its readable rows; `false` if the store is sound.
    pub fn recover_store(&self, locker: &Locker) -> Result<bool> {
        let Some(recovered) = Store::recover(&self.dirs().store()?, locker, self.now_ms())? else {
            return Ok(false);
        };
        self.warn(
            format!(
                "the state database was damaged; recovered {} rows and kept the damaged file as {}",
                recovered.rows,
                crate::text::shown(recovered.kept.display())
            ),
            None,
        );
        Ok(true)
    }

    /// Current store for reading, with the writes of this call.
    pub(crate) fn fresh_store(&self) -> Result<Option<Store>> {
        match self.source() {
            ConfigSource::Nothing => Ok(None),
            _ => Store::open_for_answers(&self.dirs().store()?, &self.reader_locker()),
        }
    }

    /// Keeps what this call has read from the store, so that the next ones need not open it. The last step of a call.
    pub fn save_answers(&self) {
        if let Some(Some(store)) = self.handles.store.get() {
            store.save_answers();
        }
    }

    /// Adds a warning, once.
    pub fn warn(&self, message: impl Into<String>, hint: Option<String>) {
        let warning = Warning { message: message.into(), hint };
        let mut warnings = self.warnings.borrow_mut();
        // The same file can be read for several reasons in one call.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Number of warnings that were not handed out.
    pub(crate) fn warning_count(&self) -> usize {
        self.warnings.borrow().len()
    }

    /// The warnings so far; they are handed out once.
    pub fn take_warnings(&self) -> Vec<Warning> {
        self.warnings.take()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::code::Code;
    use crate::files::LockedDir;

    fn call(dir: &Path) -> StateCall {
        let world = World::empty()
            .with_variable("SESSILE_CONFIG_DIR", dir.join("config"))
            .with_variable("SESSILE_STATE_DIR", dir.join("state"));
        StateCall::new(&App::new("sessile"), world, StateArgs::default()).unwrap()
    }

    #[test]
    fn wait_callback_survives_reopening_in_a_session() {
        let dir = tempfile::tempdir().unwrap();
        let waits = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&waits);
        let call = call(dir.path()).on_wait(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let state = State::from(call);
        let time = Duration::from_secs(60);
        let session = state.start_session_to_run("run", None, None, time, time).unwrap();

        let inside = state.in_session(&session.id);
        let locked = dir.path().join("locked");
        let _held = LockedDir::lock(&Locker::new(time), &locked, 0o700).unwrap();
        let locker = inside.locker().unwrap().with_timeout(Duration::from_millis(600));
        LockedDir::lock(&locker, &locked, 0o700).unwrap_err();
        assert_eq!(waits.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn readers_obey_the_lock_timeout_of_the_settings_file() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        LockedDir::lock(&Locker::new(Duration::from_secs(1)), &config, 0o700)
            .unwrap()
            .replace(Path::new("config.toml"), "lock-timeout = \"100ms\"\n", 0o600)
            .unwrap();
        State::from(call(dir.path())).store_for_writing().unwrap();
        let other = rusqlite::Connection::open(dir.path().join("state/state.db")).unwrap();
        other.execute_batch("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();

        let begun = std::time::Instant::now();
        let state = State::from(call(dir.path()));
        let asked = |store: Option<&Store>| store.unwrap().trusted().unwrap_err().code();
        assert_eq!(asked(state.store().unwrap()), Code::LockHeld);
        assert_eq!(asked(state.fresh_store().unwrap().as_ref()), Code::LockHeld);
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }

    #[test]
    fn default_lock_timeout_is_that_of_the_setting() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::from(call(dir.path()));
        assert_eq!(state.lock_timeout().unwrap(), Duration::from_secs(5));
        assert_eq!(state.early_lock_timeout(), Duration::from_secs(5));
    }
}
