//! Catalog of contexts: the user's, the project's, or those in the `--config` file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::call::{ConfigSource, WithheldSelection};
use crate::context::guard::recorded_guard;
use crate::context::guard_weakening::guard_of;
use crate::context::{Bindings, Context, Guard, SelectedContext};
use crate::error::{ContextError, Error, FileError, GuardLoss, Result};
use crate::files::require_no_dangling_link;
use crate::names::{ContextName, nearest};
use crate::settings::{Disclosure, Document, Layer, Origin, trust};
use crate::state::State;
use crate::store::Store;
use crate::text::{quoted, shown};

/// Time that an empty context file may be in the middle of a write.
const SETTLING: Duration = Duration::from_millis(100);

/// Time that an empty file is read again whatever its times say. File systems truncate a file before they set its times, so for
/// a moment an emptied file looks like one that was empty for long.
const TRUNCATING: Duration = Duration::from_millis(25);

/// Owner of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextLocation {
    /// The user's.
    User,
    /// The project's.
    Project,
    /// In the file given with `--config`.
    File,
    /// Named by a call for its session, without a file.
    Anonymous,
}

impl ContextLocation {
    /// Name.
    pub fn as_str(self) -> &'static str {
        match self {
            ContextLocation::User => "user",
            ContextLocation::Project => "project",
            ContextLocation::File => "file",
            ContextLocation::Anonymous => "anonymous",
        }
    }
}

/// The contexts of a state.
pub struct Contexts<'a> {
    pub(super) state: &'a State,
}

impl State {
    /// Existing contexts.
    pub fn contexts(&self) -> Contexts<'_> {
        Contexts::new(self)
    }
}

impl<'a> Contexts<'a> {
    pub(crate) fn new(state: &'a State) -> Self {
        Contexts { state }
    }

    /// Every name, in order.
    pub fn names(&self) -> Result<Vec<ContextName>> {
        let mut names = BTreeSet::new();
        if let Some(document) = self.state.isolated_document()? {
            let inline = document.root().get("contexts").map(|node| node.members()).unwrap_or_default();
            for (name, node) in inline {
                names.insert(document.context_name(name, node)?);
            }
        }
        for path in self.files()? {
            match path.file_stem().and_then(|stem| stem.to_str()).map(str::parse) {
                Some(Ok(name)) => drop(names.insert(name)),
                // One badly named file must not hide all other contexts.
                _ => {
                    self.state
                        .warn(format!("{} is not a context: invalid name", shown(path.display())), None);
                }
            }
        }
        Ok(names.into_iter().collect())
    }

    /// The files of the user's contexts.
    pub(crate) fn user_files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.user_dir().map(|dir| toml_files(&dir)).transpose()?.unwrap_or_default())
    }

    /// The files and directories that define the user's contexts; the directory changes with every new file.
    pub(crate) fn user_sources(&self) -> Result<Vec<PathBuf>> {
        let mut sources = self.user_files()?;
        sources.extend(self.user_dir());
        if let ConfigSource::File(file) = self.state.source() {
            sources.push(file.clone());
        }
        Ok(sources)
    }

    /// The user's contexts, without those of a project and without warnings about unknown keys. A file that cannot be
    /// read is an error only if it may have a guard, because its protected targets are then unknown.
    pub(crate) fn user_contexts(&self) -> Result<Vec<Context>> {
        let app = self.state.app();
        let mut contexts = Vec::new();
        if let Some(document) = self.state.isolated_document()? {
            let tables = document.root().get("contexts").map(|node| node.members()).unwrap_or_default();
            for (name, node) in tables {
                let within = vec!["contexts".to_owned(), name.clone()];
                let name = document.context_name(name, node)?;
                let document = Rc::clone(&document);
                contexts.push(Context::read(app, name, ContextLocation::File, true, document, within)?);
            }
        }
        for path in self.settled_user_files()? {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let Some(Ok(name)) = stem.map(str::parse::<ContextName>) else { continue };
            let document = settled(&path, |path| Document::load_as(Disclosure::Quoted, path));
            let read = document.and_then(|document| {
                let read = |document| {
                    let name = name.clone();
                    Context::read(app, name, ContextLocation::User, true, Rc::new(document), Vec::new())
                };
                document.map(read).transpose()
            });
            match read {
                // What such a file protected is lost with its text.
                Ok(Some(context)) if context.may_lack_guard() => {
                    let guard = context.effective_guard(self.state, self.state.store()?)?;
                    let is_empty = context.root().members().is_empty();
                    let reason = if is_empty { "no keys" } else { "unknown keys and no `guard`" };
                    require_no_guard(guard, &context.name, &path, GuardLoss::Keys(reason))?;
                    contexts.push(context);
                }
                Ok(Some(context)) => contexts.push(context),
                Ok(None) if path.is_symlink() => {
                    let guard = recorded_guard(self.state, self.state.store()?, &path, &name)?;
                    require_no_guard(guard, &name, &path, GuardLoss::DanglingLink)?;
                }
                Ok(None) => {}
                Err(error) if is_misspelt_guard(&error) || may_be_guarded(&path) => return Err(error),
                Err(error) => {
                    let guard = recorded_guard(self.state, self.state.store()?, &path, &name)?;
                    require_no_guard(guard, &name, &path, GuardLoss::Unreadable(error.to_string()))?;
                }
            }
        }
        contexts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(contexts)
    }

    /// The files of the user's contexts. An editor may move a file away before it puts the new one in its place: so a directory
    /// that changed a moment ago is listed again.
    fn settled_user_files(&self) -> Result<Vec<PathBuf>> {
        let begun = Instant::now();
        if let Some(dir) = self.user_dir() {
            while is_recent(&dir) && begun.elapsed() < SETTLING {
                std::thread::sleep(SETTLING / 20);
            }
        }
        self.user_files()
    }

    /// The files of contexts, the user's and the project's.
    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = self.user_files()?;
        if let Some(project) = self.state.project() {
            files.extend(project.toml_files(&project.contexts())?);
        }
        Ok(files)
    }

    /// All contexts, by name. An unreadable file is an error of its entry only.
    pub fn list(&self) -> Result<Vec<(ContextName, Result<Context>)>> {
        let names = self.names()?;
        Ok(names.into_iter().map(|name| (name.clone(), self.get(&name))).collect())
    }

    /// A context, or the error that it is not there.
    pub fn get(&self, name: &ContextName) -> Result<Context> {
        self.find(name)?.ok_or_else(|| self.not_found(name, None))
    }

    /// The context a call is about, ready for use: it exists, it is trusted, its guard is satisfied.
    pub fn require(&self) -> Result<&'a Context> {
        let selected = self.state.selected()?.ok_or(ContextError::NotSelected)?;
        let context =
            self.state.context()?.ok_or_else(|| self.not_found(&selected.name, Some(&selected.origin)))?;
        context.require_trust(self.state)?;
        context.check_guard(self.state, &selected.origin)?;
        Ok(context)
    }

    /// Checks the selected context again, immediately before something uses it: since [`Contexts::require`] an approval
    /// may have been revoked or have expired, or the file may have changed. A context without the guard `approval` is
    /// checked only after a wait, for a lock or a credential for instance, so that nothing is read twice in vain.
    pub fn recheck(&self, has_waited: bool) -> Result<()> {
        let (Some(selected), Some(used)) = (self.state.selected()?, self.state.context()?) else {
            return Ok(());
        };
        if used.guard != Guard::Approval && !has_waited {
            return Ok(());
        }
        // The database itself may have been replaced during a wait.
        let fresh = if has_waited { self.state.fresh_store()? } else { None };
        let store = if has_waited { fresh.as_ref() } else { self.state.store()? };
        // The approval must cover both what was prepared and what the file says now.
        used.check_guard_in(self.state, store, &selected.origin)?;
        let now = self.reload(used, store)?;
        let mut now = now.ok_or_else(|| self.not_found(&selected.name, Some(&selected.origin)))?;
        now.require_trust(self.state)?;
        // Another context of that name may have come with a pull or an edit.
        if let Some(path) = self.namesake(&now).filter(|_| now.guard < Guard::Approval) {
            now.guard = now.guard.max(self.guard_in(&path));
        }
        now.check_guard_in(self.state, store, &selected.origin)
    }

    /// Context reloaded from its file; `None` if it was deleted.
    fn reload(&self, used: &Context, store: Option<&Store>) -> Result<Option<Context>> {
        // A file that only names its context defines nothing, and an anonymous one has no file.
        let is_named_only = used.home == ContextLocation::File && used.within().is_empty();
        if is_named_only || used.home == ContextLocation::Anonymous {
            return Ok(Some(used.clone()));
        }
        let Some(document) = settled(used.path(), |path| self.state.load(path))? else { return Ok(None) };
        let within = used.within().to_vec();
        if within.iter().try_fold(document.root(), |node, name| node.get(name)).is_none() {
            return Ok(None);
        }
        let trusted = used.home != ContextLocation::Project
            || trust::is_trusted(self.state.app(), store, document.path(), document.text())?;
        let app = self.state.app();
        Context::read(app, used.name.clone(), used.home, trusted, Rc::new(document), within).map(Some)
    }

    /// The file in which a context of the same name may be: the project's for one of the user's, and the other way round.
    fn namesake(&self, context: &Context) -> Option<PathBuf> {
        match context.home {
            ContextLocation::User => {
                self.state.project().map(|project| file_in(&project.contexts(), &context.name))
            }
            ContextLocation::Project => self.user_dir().map(|dir| file_in(&dir, &context.name)),
            ContextLocation::File | ContextLocation::Anonymous => None,
        }
    }

    /// Guard of the context in a file. An unreadable file counts as the strictest.
    fn guard_in(&self, path: &Path) -> Guard {
        match settled(path, |path| self.state.load(path)) {
            Ok(document) => document.map(|document| guard_of(document.root())).unwrap_or_default(),
            Err(_) => Guard::Approval,
        }
    }

    /// Fails if a flag or a variable of this call names a context that does not exist. For a call that ignores selections
    /// only flags count: its variable may name the context that it is about to create.
    pub fn require_named(&self) -> Result<()> {
        let Some((value, origin)) = self.state.call().overrides().explain("context") else { return Ok(()) };
        let name = ContextName::of_session(value.as_str().unwrap_or_default())?;
        let ignores_selection = self.state.call().mode().withheld_selection == WithheldSelection::Ignore;
        if ignores_selection && origin.layer == Layer::Environment {
            return Ok(());
        }
        let exists = match self.state.selected()? {
            Some(selected) if selected.name == name => self.state.context()?.is_some(),
            _ => self.find(&name)?.is_some(),
        };
        if exists { Ok(()) } else { Err(self.not_found(&name, Some(origin))) }
    }

    /// Fails if a context binds a tool or a key that does not exist. Bindings that already existed are not checked.
    pub(crate) fn check_bindings(&self, context: &Context, before: &[(String, Bindings)]) -> Result<()> {
        // A binding of a tool that was removed since must not keep the user from editing other keys.
        let changed: Vec<_> = context.tools.iter().filter(|binding| !before.contains(binding)).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let all = self.state.tools().list()?;
        changed.into_iter().try_for_each(|(tool, bindings)| {
            crate::tool::check_binding(&all, context.name.as_str(), tool, bindings)
        })
    }

    /// The context that a session is pinned to which is kept elsewhere, ready for use.
    pub fn require_of_session(&self, session: &str, name: &str) -> Result<Context> {
        let (name, origin) = (name.parse()?, Origin::named(Layer::Session, session));
        let context = self.find(&name)?.ok_or_else(|| self.not_found(&name, Some(&origin)))?;
        context.require_trust(self.state)?;
        context.check_guard(self.state, &origin)?;
        Ok(context)
    }

    /// Fails if this call asks for another context than the one that its session is pinned to, where that session is kept
    /// elsewhere and none of those here.
    pub fn require_pinned(&self, session: &str, pinned: Option<&str>) -> Result<()> {
        let asked = self.state.selected()?.filter(|selected| selected.origin.layer.is_explicit());
        let asked = asked.map(|selected| selected.name.as_str());
        super::selection::require_pinned(self.state, session, pinned, asked)
    }

    /// Context of a name, if it exists. The user's own wins over the project's.
    pub fn find(&self, name: &ContextName) -> Result<Option<Context>> {
        if name.is_anonymous() {
            return super::anonymous::definition(self.state.app(), name).map(Some);
        }
        if let ConfigSource::File(_) = self.state.source() {
            // With `--config` neither the user's nor a project's contexts count.
            return self.find_inline(name);
        }
        let project = self.state.project().map(|project| file_in(&project.contexts(), name));
        let own = self.user_dir().map(|dir| file_in(&dir, name));
        let load_own = |path: &PathBuf| settled(path, |path| Document::load_as(Disclosure::Quoted, path));
        if let Some(document) = own.as_ref().map(load_own).transpose()?.flatten() {
            let mut context = self.read(name, ContextLocation::User, true, Rc::new(document), Vec::new())?;
            if let Some(shadowed) = project.filter(|path| path.exists()) {
                // The stricter guard counts: a context of the same name is no way around the project's.
                let guard = self.guard_in(&shadowed);
                let but = if guard > context.guard {
                    context.guard = guard;
                    format!(", except for its guard {}", guard.as_str())
                } else {
                    String::new()
                };
                self.state.warn(
                    format!(
                        "ignoring the project's context {} ({}): your own context has the same name{but}",
                        quoted(name.as_str()),
                        shown(shadowed.display())
                    ),
                    None,
                );
            }
            return Ok(Some(context));
        }
        // The project's context must not take the place of the user's, which is away.
        own.as_deref().map_or(Ok(()), require_no_dangling_link)?;
        let load = |path: PathBuf| settled(&path, |path| self.state.load(path));
        let Some(document) = project.map(load).transpose()?.flatten() else {
            return Ok(None);
        };
        let trusted = self.state.is_trusted(&document)?;
        self.read(name, ContextLocation::Project, trusted, Rc::new(document), Vec::new()).map(Some)
    }

    fn find_inline(&self, name: &ContextName) -> Result<Option<Context>> {
        let Some(document) = self.state.isolated_document()? else { return Ok(None) };
        let within = vec!["contexts".to_owned(), name.to_string()];
        let all = document.root().get("contexts");
        match all.and_then(|all| all.get(name.as_str())) {
            Some(_) => self.read(name, ContextLocation::File, true, Rc::clone(&document), within).map(Some),
            // A file that defines no contexts may still name one: `{"context": "production"}`.
            None if all.is_none()
                && document.root().get("context").and_then(|node| node.as_str()) == Some(name.as_str()) =>
            {
                let empty = Document::parse(
                    document.path(),
                    crate::settings::empty_text(document.path()).to_owned(),
                )?;
                self.read(name, ContextLocation::File, true, Rc::new(empty), Vec::new()).map(Some)
            }
            None => Ok(None),
        }
    }

    fn read(
        &self,
        name: &ContextName,
        home: ContextLocation,
        trusted: bool,
        document: Rc<Document>,
        within: Vec<String>,
    ) -> Result<Context> {
        let context = Context::read(self.state.app(), name.clone(), home, trusted, document, within)?;
        for unknown in &context.unknown {
            self.state.warn(
                format!("{}: unknown key {}", unknown.place, quoted(unknown.key.to_string())),
                unknown.near.as_ref().map(|near| format!("did you mean {}?", quoted(near))),
            );
        }
        Ok(context)
    }

    /// The error that a selected context does not exist.
    pub fn missing(&self, selected: &SelectedContext) -> Error {
        self.not_found(&selected.name, Some(&selected.origin))
    }

    /// The error that a context is not there, with the nearest one that is.
    pub(crate) fn not_found(&self, name: &ContextName, named_by: Option<&Origin>) -> Error {
        // The error is that the context is missing; a name that is near is only added to it.
        let names = self.names().unwrap_or_default();
        Error::Context(ContextError::NotFound {
            name: name.to_string(),
            near: nearest(name.as_str(), names.iter().map(ContextName::as_str)),
            named_by: named_by.map(ToString::to_string),
        })
    }

    pub(crate) fn user_dir(&self) -> Option<PathBuf> {
        match self.state.source() {
            ConfigSource::Usual => self.state.dirs().config().ok().map(|dir| dir.join("contexts")),
            _ => None,
        }
    }
}

/// Loads a context file. An editor may empty a file before it writes the new text, and an empty file demands nothing: so one
/// that changed a moment ago is read again.
fn settled(path: &Path, load: impl Fn(&Path) -> Result<Option<Document>>) -> Result<Option<Document>> {
    let is_empty = |document: &Option<Document>| {
        document.as_ref().is_some_and(|document| document.text().trim_ascii().is_empty())
    };
    let mut document = load(path)?;
    // The common case reads the file once and asks no clock.
    if is_empty(&document) {
        let begun = Instant::now();
        let is_settling = || begun.elapsed() < TRUNCATING || (begun.elapsed() < SETTLING && is_recent(path));
        // The last read begins after the time to settle, however long this process did not run in between.
        let mut is_last = false;
        while is_empty(&document) && !is_last {
            is_last = !is_settling();
            if !is_last {
                std::thread::sleep(SETTLING / 20);
            }
            document = load(path)?;
        }
    }
    Ok(document)
}

/// Fails if a context file that lost its guard by accident had one: its protected targets are unknown.
fn require_no_guard(guard: Guard, name: &ContextName, path: &Path, reason: GuardLoss) -> Result<()> {
    if guard == Guard::None {
        return Ok(());
    }
    Err(ContextError::LostGuard { name: name.to_string(), path: path.to_owned(), reason }.into())
}

/// Whether a context file has a key that looks like `guard`.
fn is_misspelt_guard(error: &Error) -> bool {
    matches!(error, Error::File(FileError::MisspeltKey { near, .. }) if near == "guard")
}

/// Whether a context file that cannot be read speaks of a guard.
fn may_be_guarded(path: &Path) -> bool {
    // A file that cannot even be read may say anything, and so may one that was emptied or removed since.
    let is_possible = |text: String| text.contains("guard") || text.trim_ascii().is_empty();
    crate::files::read(path).map_or(true, |text| text.is_none_or(is_possible))
}

/// Whether a file changed less than the time to settle ago. A time to come is of a wrong clock, and counts.
fn is_recent(path: &Path) -> bool {
    let changed = path.metadata().and_then(|found| found.modified());
    changed.is_ok_and(|changed| changed.elapsed().map_or(true, |age| age < SETTLING))
}

pub(super) fn file_in(dir: &Path, name: &ContextName) -> PathBuf {
    dir.join(format!("{name}.toml"))
}

/// `.toml` files of a directory; empty if it does not exist.
pub(crate) fn toml_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        // A link to a directory that is missing hides guards, and a missing directory has none.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            require_no_dangling_link(dir)?;
            return Ok(Vec::new());
        }
        Err(error) => return Err(Error::io("read", dir, error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| Error::io("read", dir, error))?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path);
        }
    }
    Ok(files)
}
