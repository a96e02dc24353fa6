//! Resolution: the session, the context and the settings of a call, in one order of precedence.
//!
//! The order is project, session, settings files, selected context, context definition, settings. Each step is resolved
//! at its first use, from those before it, and then kept: the hot commands pay for no step that they do not need.
//! Resolving adds warnings to the state and changes nothing else.

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::args::{Color, OutputFormat};
use crate::call::{ConfigSource, SessionMode};
use crate::context::{Context, SelectedContext};
use crate::error::{FileError, Result, SessionError, UsageError};
use crate::hook::HookedShell;
use crate::session::resolve::{
    CurrentSession, EndedSelection, PendingSession, ResolvedSession, resolve_session,
};
use crate::settings::project::{ForeignDir, Project, ProjectSearch};
use crate::settings::{
    DEFAULT_LOCK_TIMEOUT, Disclosure, Document, Layer, Origin, SettingSource, Stack, trust,
};
use crate::state::State;
use crate::text::{quoted, shell_quoted, shown};

/// Number of unknown keys of a file that warnings name.
const MAX_NAMED_KEYS: usize = 10;

/// A settings file of a call.
#[derive(Debug)]
struct SettingsFile {
    layer: Layer,
    document: Rc<Document>,
    /// Whether its values that need trust count. Only a project's file needs the store for the answer.
    is_trusted: OnceCell<bool>,
}

/// Session, context and settings of a call, each resolved at its first use.
#[derive(Default)]
pub(crate) struct Resolution {
    project: OnceCell<ProjectSearch>,
    session: OnceCell<ResolvedSession>,
    /// Strongest first.
    files: OnceCell<Vec<SettingsFile>>,
    base: OnceCell<Stack>,
    selected: OnceCell<Option<SelectedContext>>,
    context: OnceCell<Option<Context>>,
    settings: OnceCell<Stack>,
    /// Whether the call has just started the session. It has checked the expected context before.
    pub(crate) has_started_session: Cell<bool>,
    /// Hooked shell that the call was typed at.
    pub(crate) hooked_prompt: OnceCell<Option<HookedShell>>,
}

impl Resolution {
    /// Sets the session of a call that has started it.
    pub(crate) fn set_session(&self, current: CurrentSession) {
        self.has_started_session.set(true);
        let _ = self.session.set(ResolvedSession { current: Some(current), ..ResolvedSession::default() });
    }
}

impl State {
    /// The project the working directory belongs to, if any.
    pub fn project(&self) -> Option<&Project> {
        self.project_search().project.as_ref()
    }

    /// State directories of other users in the working directory or above it, which do not count.
    pub fn foreign_dirs(&self) -> &[ForeignDir] {
        &self.project_search().foreign
    }

    fn project_search(&self) -> &ProjectSearch {
        self.resolution.project.get_or_init(|| match (self.source(), self.world().cwd()) {
            (ConfigSource::Usual, Some(cwd)) => Project::search(self.app(), self.world(), cwd),
            _ => ProjectSearch::default(),
        })
    }

    /// Warns about ignored state directories: about all, or about those that no other user can have planted.
    pub(crate) fn warn_of_foreign_dirs(&self, all: bool) {
        // Anybody can plant one in a shared directory, so a warning at every call would only annoy.
        for foreign in self.foreign_dirs().iter().filter(|foreign| all || !foreign.is_shared) {
            let (message, hint) = foreign.warning();
            self.warn(message, Some(hint));
        }
    }

    /// The session this call works in, if any: by flag, by variable, or selected for this terminal.
    pub fn session(&self) -> Result<Option<&CurrentSession>> {
        Ok(self.resolved_session()?.current.as_ref())
    }

    /// The session that this call names and is to start, because it does not exist or has ended.
    pub fn pending_session(&self) -> Result<Option<&PendingSession>> {
        Ok(self.resolved_session()?.pending.as_ref())
    }

    fn resolved_session(&self) -> Result<&ResolvedSession> {
        // `get_or_init` cannot fail, and resolving can.
        if let Some(session) = self.resolution.session.get() {
            return Ok(session);
        }
        let has_none = match self.call().mode().session {
            SessionMode::Remote => true,
            // Without a context of its own the new session goes on in that of the current one.
            SessionMode::New => self.call().override_of("context").is_some(),
            SessionMode::Existing | SessionMode::StartMissing | SessionMode::StartEnded => false,
        };
        let session = if has_none || *self.source() == ConfigSource::Nothing {
            ResolvedSession::default()
        } else {
            resolve_session(self)?
        };
        Ok(self.resolution.session.get_or_init(|| session))
    }

    /// The session that this call's terminal has selected, if it is over.
    pub fn ended_selection(&self) -> Result<Option<&EndedSelection>> {
        Ok(self.resolved_session()?.over.as_ref())
    }

    /// Fails if this call runs in a session, or on a terminal that has one.
    pub fn refuse_in_session(&self, what: impl Into<String>, instead: &'static str) -> Result<()> {
        // The session of a flag counts, whoever typed it.
        if self.session_origin().layer == Layer::Environment && self.is_outside_hook_session() {
            return Ok(());
        }
        if self.is_in_inherited_shell() {
            return Err(SessionError::RefusedInside { what: what.into(), instead }.into());
        }
        // A call that may not use the terminal's session is not in it.
        let is_terminals = || self.args().session.is_some() || self.call().is_interactive();
        if self.enclosing_session().is_some() || (is_terminals() && self.session()?.is_some()) {
            return Err(SessionError::RefusedInside { what: what.into(), instead }.into());
        }
        Ok(())
    }

    /// The context that this call is about, and why it is that one.
    pub fn selected(&self) -> Result<Option<&SelectedContext>> {
        if self.resolution.selected.get().is_none() {
            let selected = crate::context::select(self)?;
            let _ = self.resolution.selected.set(selected);
        }
        Ok(self.resolution.selected.get().and_then(Option::as_ref))
    }

    /// Definition of the selected context; `None` without a selection or a definition.
    pub fn context(&self) -> Result<Option<&Context>> {
        if self.resolution.context.get().is_none() {
            let context = match self.selected()? {
                Some(selected) => self.contexts().find(&selected.name)?,
                None => None,
            };
            let _ = self.resolution.context.set(context);
        }
        Ok(self.resolution.context.get().and_then(Option::as_ref))
    }

    /// The selected context, if a call may act in it: its guard is satisfied, and no untrusted project selects another.
    pub fn usable_context(&self) -> Result<Option<&Context>> {
        crate::context::refuse_untrusted(self)?;
        match self.selected()? {
            Some(_) => self.contexts().require().map(Some),
            None => Ok(None),
        }
    }

    /// Fails if a project that is not trusted selects the context of this call.
    pub fn require_trusted_selection(&self) -> Result<()> {
        crate::context::refuse_untrusted(self)
    }

    /// The timeout of locks.
    pub fn lock_timeout(&self) -> Result<Duration> {
        match self.duration("lock-timeout") {
            // A call that repairs the settings needs locks before they can be read.
            Err(_) if self.call().mode().tolerates_broken_settings => Ok(self.early_lock_timeout()),
            timeout => Ok(timeout?.unwrap_or_else(default_lock_timeout)),
        }
    }

    /// A setting that is a duration.
    pub fn duration(&self, key: &str) -> Result<Option<Duration>> {
        let value = self.settings()?.get(key)?;
        Ok(value.and_then(|found| crate::duration::parse(found.value.as_str()?)))
    }

    /// Output format, from flags, variables and files.
    pub fn format(&self) -> Result<OutputFormat> {
        let found = self.settings()?.get("output")?;
        Ok(found.and_then(|found| OutputFormat::named(found.value.as_str()?)).unwrap_or_default())
    }

    /// Colouring of output, from flags, variables and files.
    pub fn color(&self) -> Result<Color> {
        let found = self.settings()?.get("color")?;
        Ok(found.and_then(|found| Color::named(found.value.as_str()?)).unwrap_or_default())
    }

    /// All layers, the selected context's among them.
    pub fn settings(&self) -> Result<&Stack> {
        if let Some(settings) = self.resolution.settings.get() {
            return Ok(settings);
        }
        let context = self.context()?.filter(|context| context.trusted);
        let mut sources = self.sources()?;
        if let Some(context) = context {
            let at = sources
                .iter()
                .position(
                    |source| matches!(source, SettingSource::File { layer, .. } if *layer > Layer::Context),
                )
                .unwrap_or(sources.len());
            sources.insert(at, context.settings());
        }
        Ok(self.resolution.settings.get_or_init(|| Stack::new(self.app(), sources)))
    }

    /// Layers without the context's, because a context cannot select a context.
    pub(crate) fn base(&self) -> Result<&Stack> {
        if let Some(base) = self.resolution.base.get() {
            return Ok(base);
        }
        let base = Stack::new(self.app(), self.sources()?);
        let (unknown, more) = base.unknown(MAX_NAMED_KEYS);
        for unknown in unknown {
            self.warn(
                format!("{}: setting {} not found", unknown.place, quoted(unknown.key.to_string())),
                unknown.near.map(|near| format!("did you mean {}?", quoted(near))),
            );
        }
        if more > 0 {
            let hint = format!("list them: {} config validate", self.app().name());
            self.warn(format!("{more} more unknown settings"), Some(hint));
        }
        self.warn_of_foreign_dirs(self.args().verbose > 0);
        let untrusted = base.untrusted();
        if let (Some(project), false) = (self.project(), untrusted.is_empty()) {
            let mut keys: Vec<String> =
                untrusted.iter().take(MAX_NAMED_KEYS).map(|(key, _)| shown(key)).collect();
            if untrusted.len() > MAX_NAMED_KEYS {
                keys.push(format!("and {} more", untrusted.len() - MAX_NAMED_KEYS));
            }
            let root = project.root().to_string_lossy();
            self.warn(
                format!("project {} is not trusted; ignoring its value of {}", shown(&root), keys.join(", ")),
                Some(format!(
                    "review the project, then trust it: {} trust {}",
                    self.app().name(),
                    shell_quoted(&root)
                )),
            );
        }
        Ok(self.resolution.base.get_or_init(|| base))
    }

    fn sources(&self) -> Result<Vec<SettingSource>> {
        let mut sources = vec![SettingSource::Values(self.call().overrides().to_values())];
        if let Some(current) = self.session()? {
            let origin = || Origin::named(Layer::Session, current.session.label());
            let settings = current.settings.iter();
            sources.push(SettingSource::Values(
                settings.map(|(key, value)| (key.clone(), value.clone(), origin())).collect(),
            ));
        }
        for file in self.settings_files()? {
            sources.push(file.source(self.trusts(file)?));
        }
        Ok(sources)
    }

    fn settings_files(&self) -> Result<&[SettingsFile]> {
        if let Some(files) = self.resolution.files.get() {
            return Ok(files);
        }
        let mut files = Vec::new();
        let mut add = |layer, document, is_trusted| {
            files.push(SettingsFile { layer, document: Rc::new(document), is_trusted });
        };
        match self.source() {
            ConfigSource::Nothing => {}
            ConfigSource::File(file) => {
                // A missing file that was named must not mean the defaults.
                let document = Document::load(file)?.ok_or_else(|| FileError::NotFound(file.clone()))?;
                add(Layer::File, document, OnceCell::from(true));
            }
            ConfigSource::Usual => {
                if let Some(project) = self.project() {
                    for path in [project.local_settings(), project.settings()] {
                        if let Some(document) = project.load(&path)? {
                            add(Layer::Directory, document, OnceCell::new());
                        }
                    }
                }
                let user = self.dirs().user_settings().map(|path| (Layer::User, path));
                for (layer, path) in user.into_iter().chain([(Layer::System, self.dirs().system_settings())])
                {
                    match Document::load_as(Disclosure::Quoted, &path)? {
                        Some(document) => add(layer, document, OnceCell::from(true)),
                        // Settings and contexts that are away must not mean the defaults.
                        None => crate::files::require_no_dangling_link(&path)?,
                    }
                }
            }
        }
        Ok(self.resolution.files.get_or_init(|| files))
    }

    fn trusts(&self, file: &SettingsFile) -> Result<bool> {
        if let Some(is_trusted) = file.is_trusted.get() {
            return Ok(*is_trusted);
        }
        // First, because trust is in the store, which most calls need not open.
        let is_trusted = !self.asks_for_trust(&file.document) || self.is_trusted(&file.document)?;
        Ok(*file.is_trusted.get_or_init(|| is_trusted))
    }

    /// The lock timeout before the store is open. Values of sessions and contexts do not count yet, for the store and
    /// the files that select them are what is about to be read; an unreadable file is reported when it is.
    pub(crate) fn early_lock_timeout(&self) -> Duration {
        if let Some(settings) = self.resolution.settings.get() {
            return readable_lock_timeout(settings);
        }
        let overrides = SettingSource::Values(self.call().overrides().to_values());
        let files = self.settings_files().unwrap_or_default();
        // Untrusted: trust is in the store that is about to be opened. A lock timeout needs none.
        let sources = [overrides].into_iter().chain(files.iter().map(|file| file.source(false)));
        readable_lock_timeout(&Stack::new(self.app(), sources.collect()))
    }

    /// The file given with `--config`, parsed.
    pub(crate) fn isolated_document(&self) -> Result<Option<Rc<Document>>> {
        let ConfigSource::File(_) = self.source() else { return Ok(None) };
        Ok(self.settings_files()?.first().map(|file| Rc::clone(&file.document)))
    }

    /// Whether the project file with this content has been trusted.
    pub(crate) fn is_trusted(&self, document: &Document) -> Result<bool> {
        trust::is_trusted(self.app(), self.store()?, document.path(), document.text())
    }

    /// Whether a file says anything that needs trust; if not, the store need not be opened for it.
    pub(crate) fn asks_for_trust(&self, document: &Rc<Document>) -> bool {
        let source = SettingSource::File {
            layer: Layer::Directory,
            name: None,
            document: Rc::clone(document),
            within: Vec::new(),
            trusted: false,
        };
        !Stack::new(self.app(), vec![source]).untrusted().is_empty()
    }

    /// The project that a file belongs to, if it is in the state directory of one, here or elsewhere.
    pub(crate) fn project_of(&self, path: &Path) -> Option<Project> {
        // The user's configuration directory may be named like a project's, and is trusted.
        let is_own = || self.dirs().config().is_ok_and(|config| path.starts_with(config));
        match self.source() {
            ConfigSource::Usual if !is_own() => Project::containing(self.app(), self.world(), path),
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

    /// Parses the text of a file, new or stored.
    pub(crate) fn parse(&self, path: &Path, text: String) -> Result<Document> {
        Document::parse_as(self.disclosure(path), path, text)
    }

    /// The project of the working directory, or the one that could be made there.
    pub(crate) fn writable_project(&self) -> Result<Project> {
        match (self.project(), self.world().cwd()) {
            (Some(project), _) => Ok(project.clone()),
            (None, Some(cwd)) if *self.source() == ConfigSource::Usual => {
                Ok(Project::at(self.app(), self.world(), cwd))
            }
            (None, Some(_)) => {
                Err(UsageError::Arguments("--dir cannot be used with --config or --no-config".into()).into())
            }
            (None, None) => Err(UsageError::Arguments("the working directory does not exist".into()).into()),
        }
    }

    /// The user's settings file, or the file of `--config`.
    pub(crate) fn user_settings_file(&self) -> Result<PathBuf> {
        match self.source() {
            ConfigSource::File(file) => Ok(file.clone()),
            ConfigSource::Usual => Ok(self.dirs().config()?.join("config.toml")),
            ConfigSource::Nothing => {
                Err(UsageError::Arguments("--no-config excludes every settings file; remove the flag".into())
                    .into())
            }
        }
    }

    /// Whether errors may show a file: only one in the user's configuration directory or in the system's.
    fn disclosure(&self, path: &Path) -> Disclosure {
        let is_own = || {
            path.starts_with(self.dirs().system())
                || self.dirs().config().is_ok_and(|dir| path.starts_with(dir))
        };
        let is_usual = matches!(self.source(), ConfigSource::Usual);
        if is_usual && self.project_of(path).is_none() && is_own() {
            Disclosure::Quoted
        } else {
            Disclosure::Hidden
        }
    }
}

impl SettingsFile {
    fn source(&self, trusted: bool) -> SettingSource {
        SettingSource::File {
            layer: self.layer,
            name: None,
            document: Rc::clone(&self.document),
            within: Vec::new(),
            trusted,
        }
    }
}

/// The lock timeout of a stack; the default where its value cannot be read, which the next use of it reports.
fn readable_lock_timeout(settings: &Stack) -> Duration {
    let found = settings.get("lock-timeout").ok().flatten();
    let timeout = found.and_then(|found| crate::duration::parse(found.value.as_str()?));
    timeout.unwrap_or_else(default_lock_timeout)
}

fn default_lock_timeout() -> Duration {
    crate::duration::parse(DEFAULT_LOCK_TIMEOUT).unwrap_or_default()
}
