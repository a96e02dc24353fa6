//! The opened state of one application in one invocation: what everything else hangs on.
//!
//! Opening it reads nothing. Files are read and the store is opened when something in them is asked for, once.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;

use crate::app::App;
use crate::args::{Color, Format, StateArgs};
use crate::context::{Context, Contexts, Selected};
use crate::dirs::Dirs;
use crate::error::{Error, FileError, Result, SessionError, StoreError, UsageError};
use crate::files::{Locker, Waiting};
use crate::runtime::RuntimeProblem;
use crate::said::{said, with_variables};
use crate::session::current::{self, Current};
use crate::settings::project::{ForeignDir, Project, ProjectSearch};
use crate::settings::{Disclosure, Document, Layer, Origin, SettingKey, Source, Stack, trust};
use crate::store::Store;
use crate::text::{quoted, shown_lines};
use crate::world::World;

/// How long a lock is waited for, unless a setting says otherwise.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// How many keys of a file are told one by one in warnings.
const MOST_TOLD: usize = 10;

/// Something that is not an error and that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What.
    pub message: String,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Warning {
    /// The lines that people read, safe for terminals; the labels are handed in so that they can be coloured.
    pub fn to_text(&self, warning_label: &str, hint_label: &str) -> String {
        let mut text = format!("{warning_label} {}\n", shown_lines(&self.message));
        if let Some(hint) = &self.hint {
            text.push_str(&format!("{hint_label} {}\n", shown_lines(hint)));
        }
        text
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text("warning:", "hint:"))
    }
}

/// Which files settings and contexts come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// The user's, the project's and the administrator's.
    Usual,
    /// This file alone.
    File(PathBuf),
    /// None.
    Nothing,
}

/// The settings files of an invocation.
#[derive(Debug, Default)]
struct SettingsFiles {
    /// Strongest first: the layer, the file, and whether it may say what needs trust.
    files: Vec<(Layer, Rc<Document>, bool)>,
}

/// A session that a call was told to work in and that is to be started.
#[derive(Clone, Debug)]
pub struct Missing {
    /// Its name.
    pub name: crate::session::SessionName,
    /// The context of the one that had the name before, if there was one and it had a context.
    pub context: Option<String>,
}

/// Which sessions a call may start because it was told to work in one that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starting {
    /// One that there never was.
    IfMissing,
    /// Also one that has expired or was stopped.
    IfOver,
}

/// The state of an application.
pub struct State {
    app: App,
    world: World,
    args: StateArgs,
    inside: Option<String>,
    session_origin: Origin,
    session: OnceCell<Option<Current>>,
    source: ConfigSource,
    dirs: Dirs,
    project: OnceCell<ProjectSearch>,
    said: Source,
    /// What was added to that by [`State::saying`].
    sayings: Vec<(SettingKey, crate::settings::Value, Origin)>,
    files: OnceCell<SettingsFiles>,
    base: OnceCell<Stack>,
    settings: OnceCell<Stack>,
    selected: OnceCell<Option<Selected>>,
    context: OnceCell<Option<Context>>,
    store: OnceCell<Option<Store>>,
    warnings: RefCell<Vec<Warning>>,
    on_wait: Rc<dyn Fn(&Waiting<'_>)>,
    mending: bool,
    looking: bool,
    anew: bool,
    starting: Option<Starting>,
    missing: OnceCell<Missing>,
    wrote: std::cell::Cell<bool>,
    vault_key: RefCell<Option<crate::vault::sealed::Key>>,
}

impl State {
    /// Opens the state of an application, from its world and the arguments of this call.
    pub fn open(app: &App, world: World, args: StateArgs) -> Result<Self> {
        let session_origin = match &args.session {
            Some(_) => Origin::named(Layer::Flag, "--session"),
            None => Origin::named(Layer::Environment, app.variable("SESSION")),
        };
        let args = with_variables(app, &world, args)?;
        let inside = world.variable(&app.variable("SESSION")).map(|id| id.to_string_lossy().into_owned());
        let source = match (&args.config, args.no_config) {
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
        let said = Source::Said(said(app, &world, &args)?);
        Ok(State {
            app: app.clone(),
            world,
            args,
            inside,
            session_origin,
            session: OnceCell::new(),
            source,
            dirs,
            project: OnceCell::new(),
            said,
            sayings: Vec::new(),
            files: OnceCell::new(),
            base: OnceCell::new(),
            settings: OnceCell::new(),
            selected: OnceCell::new(),
            context: OnceCell::new(),
            store: OnceCell::new(),
            warnings: RefCell::default(),
            on_wait: Rc::new(|_| ()),
            mending: false,
            looking: false,
            anew: false,
            starting: None,
            missing: OnceCell::new(),
            wrote: std::cell::Cell::new(false),
            vault_key: RefCell::new(None),
        })
    }

    /// Tells this function when a lock is waited for.
    #[must_use]
    pub fn on_wait(mut self, tell: impl Fn(&Waiting<'_>) + 'static) -> Self {
        self.on_wait = Rc::new(tell);
        self
    }

    /// For a call that mends the settings: that they cannot be read must not stop it.
    #[must_use]
    pub fn for_mending(mut self) -> Self {
        self.mending = true;
        self
    }

    /// For a call that starts a session: a context that it names is the new session's, whatever session the call
    /// itself works in. Without one the new session goes on in the context of that one.
    #[must_use]
    pub fn for_new_session(mut self) -> Self {
        let context = SettingKey::new(["context"]);
        let is_named =
            matches!(&self.said, Source::Said(said) if said.iter().any(|(key, ..)| *key == context));
        if is_named {
            self.session = OnceCell::from(None);
        }
        self
    }

    /// For a call that begins something new: the session that this terminal happens to have is not the call's.
    #[must_use]
    pub fn beginning_anew(mut self) -> Self {
        self.anew = true;
        self
    }

    /// For a call that looks, or that leaves a session behind: a variable that names one that is gone, or a context
    /// that is not the session's, must not stop it.
    #[must_use]
    pub fn for_looking(mut self) -> Self {
        self.looking = true;
        self
    }

    /// For a call that starts the session it is told to work in by name, if there is none of that name.
    #[must_use]
    pub fn starting(mut self, starting: Starting) -> Self {
        self.starting = Some(starting);
        self
    }

    /// With a setting that the call says in a way of its own, before everything else that it says.
    #[must_use]
    pub fn saying(mut self, key: &str, value: crate::settings::Value, origin: Origin) -> Self {
        let saying = (SettingKey::new(key.split('.')), value, origin);
        if let Source::Said(said) = &mut self.said {
            said.insert(0, saying.clone());
        }
        self.sayings.push(saying);
        self
    }

    /// The same call in a session: everything else is asked again, for the session may have another context.
    pub fn in_session(&self, id: &crate::session::SessionId) -> Result<Self> {
        let args = StateArgs { session: Some(id.to_string()), ..self.args.clone() };
        let mut state = State::open(&self.app, self.world.clone(), args)?;
        if let Source::Said(said) = &mut state.said {
            said.splice(0..0, self.sayings.iter().rev().cloned());
        }
        state.sayings.clone_from(&self.sayings);
        state.on_wait = Rc::clone(&self.on_wait);
        // How a session is found or started is settled; how the rest is read is not.
        state.mending = self.mending;
        state.looking = self.looking;
        Ok(state)
    }

    /// What flags and variables say of a setting, before any file is read.
    pub fn said(&self, key: &str) -> Option<&crate::settings::Value> {
        let key = SettingKey::new(key.split('.'));
        let Source::Said(said) = &self.said else { return None };
        said.iter().find(|(said, ..)| *said == key).map(|(_, value, _)| value)
    }

    /// For a call whose session is kept elsewhere: what names it names none of those here.
    #[must_use]
    pub fn apart_from_sessions(mut self) -> Self {
        self.session = OnceCell::from(None);
        self
    }

    pub(crate) fn starts(&self) -> Option<Starting> {
        self.starting
    }

    /// The session that this call was told to work in, if it is to be started.
    pub fn missing_session(&self) -> Option<&Missing> {
        self.missing.get()
    }

    pub(crate) fn set_missing_session(&self, missing: Missing) {
        let _ = self.missing.set(missing);
    }

    pub(crate) fn only_looks(&self) -> bool {
        self.looking
    }

    pub(crate) fn begins_anew(&self) -> bool {
        self.anew
    }

    /// The application.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The arguments, with the variables that stand for them.
    pub fn args(&self) -> &StateArgs {
        &self.args
    }

    /// The directories.
    pub fn dirs(&self) -> &Dirs {
        &self.dirs
    }

    /// The runtime directory, if there is one that nobody else can get at.
    pub fn runtime_dir(&self) -> std::result::Result<&Path, RuntimeProblem> {
        self.dirs.runtime(self.world.uid())
    }

    /// Where settings and contexts come from.
    pub fn source(&self) -> &ConfigSource {
        &self.source
    }

    /// The project the working directory belongs to, if any.
    pub fn project(&self) -> Option<&Project> {
        self.project_search().project.as_ref()
    }

    /// State directories of other users in the working directory or above it, which do not count.
    pub fn foreign_dirs(&self) -> &[ForeignDir] {
        &self.project_search().foreign
    }

    fn project_search(&self) -> &ProjectSearch {
        self.project.get_or_init(|| match (&self.source, self.world.cwd()) {
            (ConfigSource::Usual, Some(cwd)) => Project::search(&self.app, &self.world, cwd),
            _ => ProjectSearch::default(),
        })
    }

    /// Warns of state directories that do not count: of all, or of those that nobody could have planted.
    pub(crate) fn warn_of_foreign_dirs(&self, all: bool) {
        for foreign in self.foreign_dirs().iter().filter(|foreign| all || !foreign.is_shared) {
            let (message, hint) = foreign.warning();
            self.warn(message, Some(hint));
        }
    }

    /// The project that a file belongs to, if it is in the state directory of one, here or elsewhere.
    pub(crate) fn project_of(&self, path: &Path) -> Option<Project> {
        let is_own = || self.dirs.config().is_ok_and(|config| path.starts_with(config));
        match self.source {
            ConfigSource::Usual if !is_own() => Project::containing(&self.app, &self.world, path),
            _ => None,
        }
    }

    /// The text of a settings or context file, the user's or a project's; `None` if it does not exist.
    pub fn read(&self, path: &Path) -> Result<Option<String>> {
        match self.project_of(path) {
            Some(project) => project.read(path),
            None => crate::files::read(path),
        }
    }

    /// The same, parsed.
    pub fn load(&self, path: &Path) -> Result<Option<Document>> {
        match self.project_of(path) {
            Some(project) => project.load(path),
            None => Document::load_as(self.disclosure(path), path),
        }
    }

    /// Parses the text of a file, be it new or as it is stored.
    pub(crate) fn parse(&self, path: &Path, text: String) -> Result<Document> {
        Document::parse_as(self.disclosure(path), path, text)
    }

    /// Whether errors may show a file: only one in the user's configuration directory or in the system's.
    fn disclosure(&self, path: &Path) -> Disclosure {
        let is_own = || {
            path.starts_with(self.dirs.system()) || self.dirs.config().is_ok_and(|dir| path.starts_with(dir))
        };
        let is_usual = matches!(self.source, ConfigSource::Usual);
        if is_usual && self.project_of(path).is_none() && is_own() {
            Disclosure::Quoted
        } else {
            Disclosure::Hidden
        }
    }

    /// The session that this call runs in, as its variable says.
    pub fn inside_session(&self) -> Option<&str> {
        self.inside.as_deref()
    }

    /// What would have named the session of this call: the flag or the variable.
    pub fn session_origin(&self) -> Origin {
        self.session_origin.clone()
    }

    /// The session this call works in, if any: by flag, by variable, or selected for this terminal.
    pub fn session(&self) -> Result<Option<&Current>> {
        if self.session.get().is_none() {
            let session = match self.source {
                ConfigSource::Nothing => None,
                _ => current::find(self)?,
            };
            let _ = self.session.set(session);
        }
        Ok(self.session.get().and_then(Option::as_ref))
    }

    /// Fails if this call runs in a session, or on a terminal that has one.
    pub fn refuse_in_session(&self, what: impl Into<String>, instead: &'static str) -> Result<()> {
        if self.inside_session().is_some() || self.session()?.is_some() {
            return Err(SessionError::RefusedInside { what: what.into(), instead }.into());
        }
        Ok(())
    }

    /// The OS user, whom sessions and the history belong to.
    pub fn account(&self) -> String {
        format!("uid:{}", self.world.uid())
    }

    /// Whom pointers belong to: whoever acts with a credential that a flag or a variable names has pointers apart. What
    /// files say does not count here: a pointer decides which of them are read.
    pub(crate) fn pointer_account(&self) -> String {
        let key = SettingKey::new(["credential"]);
        let Source::Said(said) = &self.said else { return self.account() };
        match said.iter().find(|(said, ..)| *said == key) {
            Some((_, name, _)) => format!("{}/{name}", self.account()),
            None => self.account(),
        }
    }

    /// The vault's key, once this call knows it.
    pub(crate) fn vault_key(&self) -> &RefCell<Option<crate::vault::sealed::Key>> {
        &self.vault_key
    }

    /// How locks are taken, with the time-out that the settings say.
    pub fn locker(&self) -> Result<Locker> {
        let timeout = match self.duration("lock-timeout") {
            Err(_) if self.mending => None,
            read => read?,
        };
        Ok(Locker::new(timeout.unwrap_or(LOCK_TIMEOUT)).on_wait(Rc::clone(&self.on_wait)))
    }

    /// How locks are taken before the settings are known: with the time-out of a flag or a variable.
    fn early_locker(&self) -> Locker {
        let said = self.said("lock-timeout").and_then(|value| crate::duration::parse(value.as_str()?));
        Locker::new(said.unwrap_or(LOCK_TIMEOUT)).on_wait(Rc::clone(&self.on_wait))
    }

    /// A setting that is a duration.
    pub fn duration(&self, key: &str) -> Result<Option<Duration>> {
        let value = self.settings()?.get(key)?;
        Ok(value.and_then(|found| crate::duration::parse(found.value.as_str()?)))
    }

    /// How results are to be printed, as flags, variables and files say.
    pub fn format(&self) -> Result<Format> {
        let found = self.settings()?.get("output")?;
        Ok(found.and_then(|found| Format::named(found.value.as_str()?)).unwrap_or_default())
    }

    /// When output is to be coloured, as flags, variables and files say.
    pub fn color(&self) -> Result<Color> {
        let found = self.settings()?.get("color")?;
        Ok(found.and_then(|found| Color::named(found.value.as_str()?)).unwrap_or_default())
    }

    /// All layers, the selected context's among them.
    pub fn settings(&self) -> Result<&Stack> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let context = self.context()?.filter(|context| context.trusted);
        let mut sources = self.sources()?;
        if let Some(context) = context {
            let at = sources
                .iter()
                .position(|source| matches!(source, Source::File { layer, .. } if *layer > Layer::Context))
                .unwrap_or(sources.len());
            sources.insert(at, context.settings());
        }
        Ok(self.settings.get_or_init(|| Stack::new(&self.app, sources)))
    }

    /// The layers without the context's: what selects a context cannot come from one.
    pub(crate) fn base(&self) -> Result<&Stack> {
        if let Some(base) = self.base.get() {
            return Ok(base);
        }
        let base = Stack::new(&self.app, self.sources()?);
        let (unknown, more) = base.unknown(MOST_TOLD);
        for unknown in unknown {
            self.warn(
                format!("{}: there is no setting {}", unknown.place, quoted(unknown.key.to_string())),
                unknown.near.map(|near| format!("did you mean {}?", quoted(near))),
            );
        }
        if more > 0 {
            let hint = format!("`{} config validate` shows them", self.app.name());
            self.warn(format!("{more} more keys are no settings"), Some(hint));
        }
        self.warn_of_foreign_dirs(self.args.verbose);
        let untrusted = base.untrusted();
        if let (Some(project), false) = (self.project(), untrusted.is_empty()) {
            let mut keys: Vec<String> =
                untrusted.iter().take(MOST_TOLD).map(|(key, _)| crate::text::shown(key)).collect();
            if untrusted.len() > MOST_TOLD {
                keys.push(format!("and {} more", untrusted.len() - MOST_TOLD));
            }
            let root = project.root().to_string_lossy();
            self.warn(
                format!(
                    "project {} is not trusted, so it cannot set {}",
                    crate::text::shown(&root),
                    keys.join(", ")
                ),
                Some(format!(
                    "read it, then trust it: {} trust {}",
                    self.app.name(),
                    crate::text::shell_quoted(&root)
                )),
            );
        }
        Ok(self.base.get_or_init(|| base))
    }

    fn sources(&self) -> Result<Vec<Source>> {
        let mut sources = vec![self.said.clone()];
        if let Some(current) = self.session()? {
            let origin = || Origin::named(Layer::Session, current.session.label());
            let settings = current.settings.iter();
            sources.push(Source::Said(
                settings.map(|(key, value)| (key.clone(), value.clone(), origin())).collect(),
            ));
        }
        sources.extend(self.settings_files()?.files.iter().map(|(layer, document, trusted)| Source::File {
            layer: *layer,
            name: None,
            document: Rc::clone(document),
            within: Vec::new(),
            trusted: *trusted,
        }));
        Ok(sources)
    }

    fn settings_files(&self) -> Result<&SettingsFiles> {
        if let Some(files) = self.files.get() {
            return Ok(files);
        }
        let mut files = Vec::new();
        match &self.source {
            ConfigSource::Nothing => {}
            ConfigSource::File(file) => {
                let document = Document::load(file)?.ok_or_else(|| FileError::NotFound(file.clone()))?;
                files.push((Layer::File, Rc::new(document), true));
            }
            ConfigSource::Usual => {
                if let Some(project) = self.project() {
                    for path in [project.local_settings(), project.settings()] {
                        if let Some(document) = project.load(&path)?.map(Rc::new) {
                            let trusted = !self.asks_for_trust(&document) || self.is_trusted(&document)?;
                            files.push((Layer::Directory, document, trusted));
                        }
                    }
                }
                let user = self.dirs.user_settings().map(|path| (Layer::User, path));
                for (layer, path) in user.into_iter().chain([(Layer::System, self.dirs.system_settings())]) {
                    if let Some(document) = Document::load_as(Disclosure::Quoted, &path)? {
                        files.push((layer, Rc::new(document), true));
                    }
                }
            }
        }
        Ok(self.files.get_or_init(|| SettingsFiles { files }))
    }

    /// The file given with `--config`, parsed.
    pub(crate) fn isolated_document(&self) -> Result<Option<Rc<Document>>> {
        let ConfigSource::File(_) = self.source else { return Ok(None) };
        Ok(self.settings_files()?.files.first().map(|(_, file, _)| Rc::clone(file)))
    }

    /// Whether the project file with this content has been trusted.
    pub(crate) fn is_trusted(&self, document: &Document) -> Result<bool> {
        trust::is_trusted(&self.app, self.store()?, document.path(), document.text())
    }

    /// Whether a file says anything that needs trust; if not, the store need not be opened for it.
    pub(crate) fn asks_for_trust(&self, document: &Rc<Document>) -> bool {
        let source = Source::File {
            layer: Layer::Directory,
            name: None,
            document: Rc::clone(document),
            within: Vec::new(),
            trusted: false,
        };
        !Stack::new(&self.app, vec![source]).untrusted().is_empty()
    }

    /// The context that this call is about, and why it is that one.
    pub fn selected(&self) -> Result<Option<&Selected>> {
        if self.selected.get().is_none() {
            let selected = crate::context::select(self)?;
            let _ = self.selected.set(selected);
        }
        Ok(self.selected.get().and_then(Option::as_ref))
    }

    /// The selected context as it is defined; `None` if none is selected or there is none of that name.
    pub fn context(&self) -> Result<Option<&Context>> {
        if self.context.get().is_none() {
            let context = match self.selected()? {
                Some(selected) => self.contexts().find(&selected.name)?,
                None => None,
            };
            let _ = self.context.set(context);
        }
        Ok(self.context.get().and_then(Option::as_ref))
    }

    /// The contexts there are.
    pub fn contexts(&self) -> Contexts<'_> {
        Contexts::new(self)
    }

    /// The store, for reading; `None` if there is none yet or no file is to be read.
    pub fn store(&self) -> Result<Option<&Store>> {
        if self.store.get().is_none() {
            let store = match (&self.source, self.dirs.store()) {
                (ConfigSource::Nothing, _) | (_, Err(_)) => None,
                // Whoever only reads waits for nobody but a migration or a recovery, and those are short.
                (_, Ok(path)) => Store::open_for_reading(&path, &self.early_locker())?,
            };
            let _ = self.store.set(store);
        }
        Ok(self.store.get().and_then(Option::as_ref))
    }

    /// The store, for writing. A damaged one is moved aside first, and what can be read of it saved.
    pub fn store_for_writing(&self) -> Result<Store> {
        self.open_for_writing(&self.locker()?)
    }

    /// The same for what would be lost if it could not be written: it waits longer for its turn.
    pub(crate) fn store_for_writing_patiently(&self) -> Result<Store> {
        let locker = self.locker()?;
        let timeout = locker.timeout().max(Duration::from_secs(30));
        self.open_for_writing(&locker.with_timeout(timeout))
    }

    /// The same before the settings are known.
    pub(crate) fn store_for_writing_unlocked(&self) -> Result<Store> {
        self.open_for_writing(&self.early_locker())
    }

    fn open_for_writing(&self, locker: &Locker) -> Result<Store> {
        if self.source == ConfigSource::Nothing {
            return Err(UsageError::Arguments(
                "with --no-config nothing is kept, so nothing can be changed: leave it out".into(),
            )
            .into());
        }
        let path = self.dirs.store()?;
        self.wrote.set(true);
        match Store::open_for_writing(&path, locker) {
            Err(Error::Store(StoreError::Corrupt { .. })) => {
                self.recover_store(locker)?;
                Store::open_for_writing(&path, locker)
            }
            other => other,
        }
    }

    /// Recovers a store whose damage was found only while it was written, so that the next call can do its work. Who
    /// only reads moves nothing.
    pub fn recover_after(&self, error: &Error) {
        if self.wrote.get() && matches!(error, Error::Store(StoreError::Corrupt { .. })) {
            // If that fails, the damage is reported all the same.
            let _ = self.locker().and_then(|locker| self.recover_store(&locker));
        }
    }

    /// Moves a damaged store aside and saves what can be read of it; `false` if it is sound.
    pub fn recover_store(&self, locker: &Locker) -> Result<bool> {
        let Some(recovered) = Store::recover(&self.dirs.store()?, locker, self.now_ms())? else {
            return Ok(false);
        };
        self.warn(
            format!(
                "the state database was damaged; {} row(s) were saved, and the old one is kept as {}",
                recovered.rows,
                crate::text::shown(recovered.kept.display())
            ),
            None,
        );
        Ok(true)
    }

    /// The store as it is now, for reading: what this call itself has written is in it.
    pub fn fresh_store(&self) -> Result<Option<Store>> {
        match self.source {
            ConfigSource::Nothing => Ok(None),
            _ => Store::open_for_reading(&self.dirs.store()?, &self.early_locker()),
        }
    }

    /// The time in milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        self.world.now().as_millisecond()
    }

    /// Adds a warning, once.
    pub fn warn(&self, message: impl Into<String>, hint: Option<String>) {
        let warning = Warning { message: message.into(), hint };
        let mut warnings = self.warnings.borrow_mut();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// The warnings so far; they are handed out once.
    pub fn take_warnings(&self) -> Vec<Warning> {
        self.warnings.take()
    }

    /// A path made absolute, for messages and for the store.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.world.cwd().map_or_else(|| path.to_owned(), |cwd| cwd.join(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::LockedDir;
    use std::cell::Cell;

    fn open(dir: &Path) -> State {
        let world = World::empty()
            .with_variable("SESSILE_CONFIG_DIR", dir.join("config"))
            .with_variable("SESSILE_STATE_DIR", dir.join("state"));
        State::open(&App::new("sessile"), world, StateArgs::default()).unwrap()
    }

    #[test]
    fn wait_callback_survives_reopening_in_a_session() {
        let dir = tempfile::tempdir().unwrap();
        let waits = Rc::new(Cell::new(0));
        let count = Rc::clone(&waits);
        let state = open(dir.path()).on_wait(move |_| count.set(count.get() + 1));
        let time = Duration::from_secs(60);
        let session = state.start_session_to_run("run", None, None, time, time).unwrap();

        let inside = state.in_session(&session.id).unwrap();
        let locked = dir.path().join("locked");
        let _held = LockedDir::lock(&Locker::new(time), &locked, 0o700).unwrap();
        let locker = inside.locker().unwrap().with_timeout(Duration::from_millis(600));
        LockedDir::lock(&locker, &locked, 0o700).unwrap_err();
        assert_eq!(waits.get(), 1);
    }
}
