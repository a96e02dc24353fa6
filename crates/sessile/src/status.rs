//! Status of a call: context, account, session, and the files behind them.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::call::ConfigSource;
use crate::context::{Guard, GuardState, anonymous};
use crate::error::Result;
use crate::hook::ShellStatus;
use crate::session::CurrentSession;
use crate::session::Lifecycle;
use crate::settings::{Origin, trust};
use crate::state::State;
use crate::text::{quoted, shown};
use crate::tool::{Drift, GuardedTarget, drift, guarded_targets};
use crate::vault::{CredentialSource, VaultStatus};

/// The answer of `status`.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Whether a valid credential is selected.
    pub logged_in: bool,
    /// The account of that credential; `None` if no credential is selected, or its account is not known.
    pub user: Option<String>,
    /// The OS user.
    pub os_user: String,
    /// The selected context.
    pub current_context: Option<String>,
    /// Bindings of the selected context, if it is anonymous.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_bindings: Option<Vec<String>>,
    /// Origin of the selection.
    pub context_origin: Option<Origin>,
    /// Whether a context of that name exists.
    pub context_exists: bool,
    /// Guard, and whether it lets this call through.
    pub guard: Option<GuardState>,
    /// Targets that exist only in sessions of guarded contexts.
    pub protected: Vec<GuardedTarget>,
    /// Expiry of the selected credential.
    pub token_expires: Option<String>,
    /// The selected credential, and what selected it.
    pub credential: Option<CredentialStatus>,
    /// Vault backend.
    pub vault: Option<VaultStatus>,
    /// The session this call works in, by its id.
    pub session: Option<String>,
    /// Pinned values that a command of the session has moved.
    pub drift: Vec<Drift>,
    /// More about it.
    pub session_details: Option<SessionStatus>,
    /// The shell that an interactive call was typed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellStatus>,
    /// The project of the working directory.
    pub project: Option<ProjectStatus>,
    /// File of `--config`, which replaces all settings, contexts and state.
    #[serde(serialize_with = "crate::text::maybe_path_in_json")]
    pub config: Option<PathBuf>,
    /// Every file that is read or kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_files: Option<Vec<StateFile>>,
}

/// The selected credential, as `status` shows it.
#[derive(Clone, Debug, Serialize)]
pub struct CredentialStatus {
    /// Name; `None` for a credential given for this call.
    pub name: Option<String>,
    /// Origin of the selection.
    pub origin: Origin,
    /// Kind; `None` if the credential does not exist.
    pub kind: Option<&'static str>,
    /// Account that the credential belongs to.
    pub account: Option<String>,
    /// Expiry.
    pub expires_at: Option<String>,
    /// Whether it can be used, or be renewed first.
    pub valid: bool,
}

impl CredentialStatus {
    /// Selected credential, without renewing it. An unreadable credential becomes a warning.
    pub fn of(state: &State) -> Result<Option<Self>> {
        let Some(selected) = state.selected_credential()? else { return Ok(None) };
        let about = match selected.about(state) {
            Ok(about) => about,
            Err(error) => {
                // `status` has to work above all where something is broken.
                state.warn(error.to_string(), error.hint(state.app()));
                None
            }
        };
        let name = match &selected.what {
            CredentialSource::Named(name) => Some(name.to_string()),
            _ => None,
        };
        Ok(Some(CredentialStatus {
            name,
            origin: selected.origin,
            kind: about.as_ref().map(|about| about.kind.as_str()),
            account: about.as_ref().and_then(|about| about.account.clone()),
            expires_at: about.as_ref().and_then(|about| about.expires_at).map(|end| end.to_string()),
            valid: about.as_ref().is_some_and(|about| about.is_valid(state.world().now())),
        }))
    }
}

/// A session, as `status` shows it.
#[derive(Clone, Debug, Serialize)]
pub struct SessionStatus {
    /// Name.
    pub name: Option<String>,
    /// Origin of the name.
    pub origin: Origin,
    /// Lifecycle state.
    pub state: Lifecycle,
    /// Expiry unless used before.
    pub expires_at: Option<String>,
}

impl SessionStatus {
    fn of(state: &State, current: &CurrentSession) -> Self {
        let look = current.session.look(state.world());
        SessionStatus {
            name: current.session.name.clone(),
            origin: current.origin.clone(),
            state: look.state,
            expires_at: look.expires_at,
        }
    }
}

/// A project, as `status` shows it.
#[derive(Clone, Debug, Serialize)]
pub struct ProjectStatus {
    /// Directory.
    #[serde(serialize_with = "crate::text::path_in_json")]
    pub path: PathBuf,
    /// Whether all its files are trusted.
    pub trusted: bool,
}

/// A file that is read or kept.
#[derive(Clone, Debug, Serialize)]
pub struct StateFile {
    /// Path.
    #[serde(serialize_with = "crate::text::path_in_json")]
    pub path: PathBuf,
    /// Purpose.
    pub purpose: &'static str,
    /// Whether the file exists.
    pub exists: bool,
    /// Mode, in octal.
    pub mode: Option<String>,
    /// Size in bytes.
    pub size: Option<u64>,
}

impl Status {
    /// Looks; changes nothing.
    pub fn of(state: &State, with_files: bool) -> Result<Self> {
        let selected = state.selected()?;
        let context = state.context()?;
        if let (Some(selected), None) = (selected, context) {
            let missing = state.contexts().not_found(&selected.name, Some(&selected.origin));
            state.warn(missing.to_string(), missing.hint(state.app()));
        }
        let guard = match (context, selected) {
            (Some(context), Some(selected)) => Some(context.guard_state(state, &selected.origin)?),
            _ => None,
        };
        let credential = CredentialStatus::of(state)?;
        let account = credential.as_ref().and_then(|credential| credential.account.clone());
        Ok(Status {
            logged_in: credential.as_ref().is_some_and(|credential| credential.valid),
            user: account,
            os_user: state.world().user_name(),
            current_context: selected.map(|selected| selected.name.to_string()),
            context_bindings: selected.and_then(|selected| anonymous::bindings_of(selected.name.as_str())),
            context_origin: selected.map(|selected| selected.origin.clone()),
            context_exists: context.is_some(),
            guard,
            protected: protected(state),
            token_expires: credential.as_ref().and_then(|credential| credential.expires_at.clone()),
            credential,
            vault: vault(state)?,
            session: state.session()?.map(|current| current.session.id.to_string()),
            drift: match state.session()? {
                Some(current) if current.session.ended.is_none() => drift(state, &current.session)?,
                _ => Vec::new(),
            },
            session_details: state.session()?.map(|current| SessionStatus::of(state, current)),
            shell: ShellStatus::of(state),
            project: project(state)?,
            config: match state.source() {
                ConfigSource::File(file) => Some(file.clone()),
                _ => None,
            },
            state_files: with_files.then(|| state_files(state)).transpose()?,
        })
    }

    /// The answer for people, as labels and values that are safe for terminals. The files are not in it.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let context = match (&self.current_context, &self.context_origin) {
            (Some(name), Some(origin)) => {
                let missing = if self.context_exists { "" } else { " does not exist" };
                format!("{}{missing}  from {origin}", shown(anonymous::label(name)))
            }
            _ => "none".to_owned(),
        };
        lines.push(("context", context));
        if let Some(guard) = self.guard.as_ref().filter(|guard| guard.guard != Guard::None) {
            let state = match (guard.satisfied, &guard.approved_until) {
                (true, Some(until)) => format!("open until {until}"),
                (true, None) => "open".to_owned(),
                (false, _) => "shut".to_owned(),
            };
            lines.push(("guard", format!("{} ({state})", guard.guard.as_str())));
        }
        if !self.protected.is_empty() {
            let names = self
                .protected
                .iter()
                .map(|target| format!("{} {} {}", target.tool, target.key, quoted(&target.name)));
            lines.push(("protected", names.collect::<Vec<_>>().join(", ")));
        }
        let session = match (&self.session, &self.session_details) {
            (Some(id), Some(SessionStatus { name, origin, state, expires_at })) => {
                let name = name.as_ref().map_or_else(String::new, |name| format!("{} ", shown(name)));
                let until = expires_at
                    .as_ref()
                    .map_or_else(|| state.as_str().to_owned(), |at| format!("expires {at}"));
                format!("{name}{id} ({until})  from {origin}")
            }
            _ => "none".to_owned(),
        };
        lines.push(("session", session));
        if let Some(shell) = &self.shell {
            lines.push(("shell", shell.line()));
        }
        lines.extend(self.drift.iter().map(|drift| ("drift", drift.to_string())));
        let login = match &self.credential {
            None => "no credential selected",
            Some(credential) if credential.valid => "logged in",
            Some(credential) if credential.kind.is_none() => "credential missing",
            Some(_) => "credential expired",
        };
        let user = match (&self.user, self.logged_in) {
            (Some(user), _) => shown(user),
            (None, true) => "unknown account".to_owned(),
            (None, false) => "none".to_owned(),
        };
        lines.push(("user", format!("{user} ({login})")));
        lines.push(("os user", shown(&self.os_user)));
        if let Some(credential) = &self.credential {
            let name = credential.name.as_deref().unwrap_or("for this call");
            let end =
                credential.expires_at.as_ref().map_or_else(String::new, |end| format!(" (expires {end})"));
            lines.push(("login", format!("{}{end}  from {}", shown(name), credential.origin)));
        }
        // As long as nothing is kept it is not worth a line.
        if let Some((vault, backend)) = self.vault.as_ref().and_then(|vault| Some((vault, vault.backend?))) {
            let place =
                vault.path.as_ref().map_or_else(String::new, |path| format!(" {}", shown(path.display())));
            let key = vault.key.map_or_else(String::new, |key| format!(", key from {key}"));
            let open = vault.unlocked_seconds.map_or_else(String::new, |seconds| {
                format!(", unlocked for {}", crate::duration::short(std::time::Duration::from_secs(seconds)))
            });
            lines.push(("vault", format!("{}{place}{key}{open}  from {}", backend.as_str(), vault.origin)));
        }
        if let Some(project) = &self.project {
            let trust = if project.trusted { "trusted" } else { "not trusted" };
            lines.push(("project", format!("{} ({trust})", shown(project.path.display()))));
        }
        if let Some(config) = &self.config {
            lines.push(("config", shown(config.display())));
        }
        lines
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|(label, value)| writeln!(f, "{label:<9} {value}"))
    }
}

/// The protected targets. A context that cannot be read is a warning here and an error of `run`.
fn protected(state: &State) -> Vec<GuardedTarget> {
    match guarded_targets(state) {
        Ok(targets) => targets.into_iter().filter(GuardedTarget::is_protected).collect(),
        Err(error) => {
            state.warn(error.to_string(), error.hint(state.app()));
            Vec::new()
        }
    }
}

fn vault(state: &State) -> Result<Option<VaultStatus>> {
    if *state.source() == ConfigSource::Nothing {
        return Ok(None);
    }
    match state.vault()?.status() {
        Ok(status) => Ok(Some(status)),
        Err(error) => {
            state.warn(error.to_string(), error.hint(state.app()));
            Ok(None)
        }
    }
}

fn project(state: &State) -> Result<Option<ProjectStatus>> {
    state.warn_of_foreign_dirs(true);
    let Some(project) = state.project() else { return Ok(None) };
    let store = state.store()?;
    let mut trusted = true;
    for path in trust::files(project)? {
        let text = project.read(&path)?.unwrap_or_default();
        trusted &= trust::is_trusted(state.app(), store, &path, &text)?;
    }
    Ok(Some(ProjectStatus { path: project.root().to_owned(), trusted }))
}

/// Every file and directory that this application reads or keeps here, existing or not.
pub fn state_files(state: &State) -> Result<Vec<StateFile>> {
    let mut files = Vec::new();
    let mut add = |path: &Path, purpose| files.push(StateFile::look(path, purpose));
    let dirs = state.dirs();
    match state.source() {
        ConfigSource::Nothing => return Ok(files),
        ConfigSource::File(file) => add(file, "settings and contexts"),
        ConfigSource::Usual => {
            if let Ok(config) = dirs.config() {
                add(&config.join("config.toml"), "the user's settings");
                add(&config.join("tools"), "the user's tool profiles");
                for file in crate::context::toml_files(&config.join("tools")).unwrap_or_default() {
                    add(&file, "a tool profile");
                }
                add(&config.join("contexts"), "the user's contexts");
                for file in crate::context::toml_files(&config.join("contexts")).unwrap_or_default() {
                    add(&file, "a context");
                }
            }
            if let Some(project) = state.project() {
                add(&project.settings(), "the project's settings");
                add(&project.local_settings(), "personal settings in the project");
                add(&project.dir().join(".gitignore"), "excludes the personal settings from the repository");
                add(&project.tools(), "the project's tool profiles");
                add(&project.contexts(), "the project's contexts");
                for file in project.toml_files(&project.contexts()).unwrap_or_default() {
                    add(&file, "a context of the project's");
                }
            }
            add(&dirs.system_settings(), "the administrator's settings");
        }
    }
    let mut databases = Vec::new();
    if let Ok(store) = dirs.store() {
        databases = StateFile::of_database(&store, "sessions, locks, history, pointers, approvals, trust");
        add(&crate::store::answers_beside(&store), "answers of the store, so that it need not be opened");
    }
    if let Ok(state_dir) = dirs.state() {
        for (path, _) in entries(&state_dir.join("rooms")) {
            if let Some(sockets) = crate::session::sockets::directory(&path) {
                add(&sockets, "sockets of a session");
            }
        }
        add(&state_dir.join("rooms"), "the sessions' rooms");
        add(
            &crate::session::spare_room::path(state_dir),
            "a spare room with copies, for the next ephemeral session",
        );
        add(&state_dir.join("shells"), "shells with a loaded hook");
        add(&state_dir.join("setup"), "records of changes to coding agents' files");
        add(&state_dir.join("wrappers"), "programs that start coding agents in a session");
        add(&state_dir.join("tickets"), "the queues of locks and turns");
        add(&state_dir.join("intents"), "pending changes");
        add(&state_dir.join(crate::conversation::DELIVERIES), "messages in delivery to agents");
        add(&state_dir.join(crate::context::request::FILE), "requests for an approval");
    }
    if let Some(cache) = dirs.cache() {
        add(&cache.join(crate::agents::CARDS), "cached cards of agents");
    }
    for (path, purpose) in state.vault().map(|vault| vault.files()).unwrap_or_default() {
        add(&path, purpose);
    }
    if let Ok(Some(current)) = state.session() {
        let room = current.session.room().dir();
        add(room, "this session's room");
        add(&crate::tool::Plan::path(room), "inputs of this session's room");
        for tool in crate::tool::tool_states(&current.session).unwrap_or_default() {
            for copy in tool.copies {
                add(&copy.copy, "a tool's state in this session");
                for original in copy.original {
                    add(&original, "original of a tool's state that this session copied");
                }
            }
        }
    }
    files.extend(databases);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Entries of a directory with their names; none if it cannot be read.
fn entries(dir: &Path) -> impl Iterator<Item = (PathBuf, String)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()))
}

impl StateFile {
    /// A database with its log, and its backups, replaced and damaged versions beside it.
    pub fn of_database(path: &Path, purpose: &'static str) -> Vec<Self> {
        let beside = |ending: &str| crate::files::with_ending(path, ending);
        let mut files = vec![
            StateFile::look(path, purpose),
            StateFile::look(&beside("-wal"), "write-ahead log of the store"),
            StateFile::look(&beside("-shm"), "shared memory of the store"),
        ];
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (path, found) in path.parent().map(entries).into_iter().flatten() {
            let purpose = match found.strip_prefix(&name).unwrap_or_default() {
                rest if rest.starts_with(".backup-") => "backup of the store",
                rest if rest.starts_with(".replaced-") => "store that a restore replaced",
                rest if rest.starts_with(".damaged-") => "damaged store, moved aside",
                _ => continue,
            };
            files.push(StateFile::look(&path, purpose));
        }
        files
    }

    fn look(path: &Path, purpose: &'static str) -> Self {
        let found = path.metadata().ok();
        StateFile {
            path: path.to_owned(),
            purpose,
            exists: found.is_some(),
            mode: found.as_ref().map(|found| format!("{:04o}", found.mode() & 0o7777)),
            size: found.as_ref().filter(|found| found.is_file()).map(std::fs::Metadata::len),
        }
    }
}
