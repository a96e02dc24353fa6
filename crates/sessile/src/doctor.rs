//! Diagnosis of this machine: problems, each with a fix.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::call::ConfigSource;
use crate::config::validate;
use crate::context::{Context, Variable};
use crate::error::{Error, Result, StoreError, VaultError};
use crate::files::{TEMPORARY, network_file_system};
use crate::hook::{HookLine, START_UP_FILES, ShellStatus, assigned, is_comment};
use crate::run::shell::Shell;
use crate::runtime::RuntimeProblem;
use crate::secrets::is_secret;
use crate::session::Session;
use crate::settings::Layer;
use crate::state::State;
use crate::store::{PointerKind, Scope};
use crate::terminal::Terminal;
use crate::text::{quoted, shell_quoted, shown};

/// Message of a check without findings.
pub const HEALTHY: &str = "nothing wrong";

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// No problem found.
    Ok,
    /// Works, with a recommendation.
    Warning,
    /// Broken or unsafe.
    Error,
}

/// One check and its outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// Result.
    pub health: Health,
    /// Finding.
    pub message: String,
    /// Fix, as a command or an instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// Runs every check. It changes nothing and needs nothing to be right.
pub fn examine(state: &State) -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, check) in [
        ("directories", directories as fn(&State) -> Result<Vec<Finding>>),
        ("permissions", permissions),
        ("file system", file_system),
        ("settings", settings),
        ("contexts", contexts),
        ("store", store),
        ("pointers", pointers),
        ("sessions", sessions),
        ("vault", vault),
        ("tools", tools),
        ("start-up files", start_up_files),
        ("shell hook", shell_hook),
        ("clock", clock),
        ("leftovers", leftovers),
    ] {
        // One check that fails must not hide the others.
        let findings = check(state).unwrap_or_else(|error| vec![Finding::of_error(state, &error)]);
        if findings.is_empty() {
            checks.push(Check { name, health: Health::Ok, message: HEALTHY.into(), fix: None });
        }
        checks.extend(findings.into_iter().map(|Finding { health, message, fix }| Check {
            name,
            health,
            message,
            fix,
        }));
    }
    checks
}

struct Finding {
    health: Health,
    message: String,
    fix: Option<String>,
}

impl Finding {
    fn error(message: impl Into<String>, fix: impl Into<Option<String>>) -> Self {
        Finding { health: Health::Error, message: message.into(), fix: fix.into() }
    }

    fn warning(message: impl Into<String>, fix: impl Into<Option<String>>) -> Self {
        Finding { health: Health::Warning, message: message.into(), fix: fix.into() }
    }

    fn of_error(state: &State, error: &Error) -> Self {
        // A command that can be pasted is better than words.
        let fix = error.fix_command(state.app()).or_else(|| error.hint(state.app()));
        Finding::error(
            error.to_string(),
            fix.or_else(|| error.location().map(|place| format!("edit {place}"))),
        )
    }
}

fn word(path: &Path) -> String {
    shell_quoted(&path.to_string_lossy())
}

fn directories(state: &State) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if *state.source() == ConfigSource::Usual {
        state.dirs().config()?;
    }
    state.dirs().state()?;
    if let Some(runtime) = state.world().path_variable("XDG_RUNTIME_DIR")
        && !runtime.is_dir()
    {
        findings.push(Finding::warning(
            format!("XDG_RUNTIME_DIR is {}, which does not exist", shown(runtime.display())),
            "log in again, or unset XDG_RUNTIME_DIR".to_owned(),
        ));
    } else if let Err(RuntimeProblem::Exposed { path, reason }) = state.runtime_dir() {
        findings.push(Finding::warning(
            format!("runtime directory {} {reason}; ignored", shown(path.display())),
            format!(
                "chmod 700 {} if only you use it; otherwise set XDG_RUNTIME_DIR to another directory",
                word(&path)
            ),
        ));
    }
    Ok(findings)
}

/// Checks that no other user can write configuration or read state.
fn permissions(state: &State) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let uid = state.world().uid();
    let mut check = |path: &Path, forbidden: u32, mode: &str| {
        let Ok(found) = path.metadata() else { return };
        if found.mode() & forbidden != 0 {
            findings.push(Finding::error(
                format!("{} has mode {:04o}", shown(path.display()), found.mode() & 0o7777),
                format!("chmod {mode} {}", word(path)),
            ));
        }
        // Files of root are the administrator's, and safe.
        if found.uid() != uid && found.uid() != 0 {
            findings.push(Finding::warning(
                format!("{} belongs to user {}", shown(path.display()), found.uid()),
                format!("chown {uid} {}", word(path)),
            ));
        }
    };
    if let Ok(config) = state.dirs().config() {
        check(config, 0o022, "go-w");
        check(&config.join("config.toml"), 0o022, "go-w");
        check(&config.join("contexts"), 0o022, "go-w");
        for file in crate::context::toml_files(&config.join("contexts")).unwrap_or_default() {
            check(&file, 0o022, "go-w");
        }
    }
    check(state.dirs().state()?, 0o077, "0700");
    let store = state.dirs().store()?;
    for ending in ["", "-wal", "-shm"] {
        check(&crate::files::with_ending(&store, ending), 0o077, "0600");
    }
    // Commands refuse directories in which others can write.
    for dir in directories_in(state.dirs().state()?) {
        check(&dir, 0o022, "go-w");
    }
    for room in directories_in(&state.dirs().state()?.join("rooms")) {
        check(&room, 0o022, "go-w");
    }
    check(&state.dirs().state()?.join("vault"), 0o077, "0700");
    check(&state.dirs().state()?.join("vault/credentials"), 0o077, "0600");
    findings.extend(state.foreign_dirs().iter().map(|foreign| {
        let (message, fix) = foreign.warning();
        Finding::warning(message, fix)
    }));
    Ok(findings)
}

/// The directories in a directory, in the order of their names. Links are left out.
fn directories_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_dir = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut found: Vec<PathBuf> = entries.filter(is_dir).map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn file_system(state: &State) -> Result<Vec<Finding>> {
    let dir = state.dirs().state()?;
    Ok(network_file_system(dir)
        .map(|kind| {
            Finding::of_error(
                state,
                &Error::Store(StoreError::NetworkFileSystem { path: dir.to_owned(), kind }),
            )
        })
        .into_iter()
        .collect())
}

/// Validates every settings and context file; one finding per problem.
fn settings(state: &State) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let layer = if let ConfigSource::File(_) = state.source() { Layer::File } else { Layer::User };
    for path in validate::files(state)? {
        for problem in validate::file(state, &path, layer) {
            let place = problem.line.map_or_else(String::new, |line| format!(":{line}"));
            let message = format!("{}{place}: {}", shown(path.display()), problem.message);
            let fix = problem.hint.unwrap_or_else(|| format!("edit {}", word(&path)));
            let health = if problem.is_error { Health::Error } else { Health::Warning };
            findings.push(Finding { health, message, fix: Some(fix) });
        }
    }
    Ok(findings)
}

/// Warnings about readable files: untrusted content, secrets in plain text, dangling selections.
fn contexts(state: &State) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (_, context) in state.contexts().list()? {
        // A broken file is told under settings.
        findings.extend(context.iter().flat_map(secrets_in));
    }
    findings.extend(secrets_in_settings(state).unwrap_or_default());
    let Ok(base) = state.base() else { return Ok(findings) };
    if let (Some(project), false) = (state.project(), base.untrusted().is_empty()) {
        findings.push(Finding::warning(
            format!("project {} is not trusted", shown(project.root().display())),
            format!("{} trust {}", state.app().name(), word(project.root())),
        ));
    }
    if let Ok(Some(selected)) = state.selected()
        && let Ok(None) = state.contexts().find(&selected.name)
    {
        let missing = state.contexts().not_found(&selected.name, Some(&selected.origin));
        findings.push(Finding::of_error(state, &missing));
    }
    Ok(findings)
}

fn secrets_in(context: &Context) -> Vec<Finding> {
    let plain = context
        .env
        .iter()
        .filter(|(name, value)| matches!(value, Variable::Plain(text) if is_secret(name, text)));
    plain
        .map(|(name, _)| {
            Finding::warning(
                format!("{} contains {} in plain text", shown(context.path().display()), shown(name)),
                format!("refer to a credential: {name} = {{ credential = \"NAME\" }}"),
            )
        })
        .collect()
}

/// Variables for commands in settings files that hold a secret. Contexts are looked at by themselves.
fn secrets_in_settings(state: &State) -> Result<Vec<Finding>> {
    let settings = state.settings()?;
    let mut findings = Vec::new();
    for key in settings.keys(false) {
        let [table, name] = key.segments() else { continue };
        if table != "env" {
            continue;
        }
        // Flags and variables hold for one call, and contexts are checked by `secrets_in`.
        let is_file = |layer: Layer| !matches!(layer, Layer::Context | Layer::Flag | Layer::Environment);
        for found in settings.explain(&key)?.into_iter().filter(|found| is_file(found.origin.layer)) {
            if found.value.as_str().is_some_and(|text| is_secret(name, text)) {
                findings.push(Finding::warning(
                    format!("{} contains {} in plain text", found.origin, shown(name)),
                    crate::secrets::USE_THE_VAULT.replace("{name}", state.app().name()),
                ));
            }
        }
    }
    Ok(findings)
}

fn store(state: &State) -> Result<Vec<Finding>> {
    let Some(store) = state.store()? else { return Ok(Vec::new()) };
    let problems = store.integrity_problems()?;
    Ok(problems
        .into_iter()
        .map(|detail| {
            Finding::of_error(
                state,
                &Error::Store(StoreError::Corrupt { path: store.path().to_owned(), detail }),
            )
        })
        .collect())
}

fn pointers(state: &State) -> Result<Vec<Finding>> {
    let Some(store) = state.store()? else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for pointer in store.pointers(PointerKind::Context)? {
        // A terminal that is gone selects nothing.
        let alive = pointer.key.scope == Scope::Terminal && Terminal::key_is_alive(&pointer.key.place);
        let Some(name) = pointer.value.filter(|_| alive) else { continue };
        if state.contexts().find(&name.parse()?)?.is_none() {
            findings.push(Finding::warning(
                format!(
                    "terminal {} has selected context {}, which does not exist",
                    shown(Terminal::key_device(&pointer.key.place)),
                    quoted(name)
                ),
                format!("{} context use NAME, in that terminal", state.app().name()),
            ));
        }
    }
    Ok(findings)
}

/// A session that lives has a room; without one it cannot be used.
fn sessions(state: &State) -> Result<Vec<Finding>> {
    const MOST: usize = 1000;
    let Some(store) = state.store()? else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for row in store.sessions(&state.account(), None, true, MOST)? {
        let session = Session::of_row(row, state.dirs().state()?)?;
        if !session.room().exists() {
            findings.push(Finding::error(
                format!("the room of session {} is missing", quoted(session.label())),
                format!("{} session stop {}", state.app().name(), session.id),
            ));
        }
    }
    Ok(findings)
}

/// Checks that every profile is readable and that contexts bind only known tools and keys.
fn tools(state: &State) -> Result<Vec<Finding>> {
    let all = state.tools().list()?;
    let mut findings = Vec::new();
    for (_, context) in state.contexts().list()? {
        let Ok(context) = context else { continue };
        findings.extend(crate::tool::unknown_bindings(&all, &context).into_iter().map(|message| {
            let name = shell_quoted(context.name.as_str());
            Finding::error(
                format!("context {}: {message}", quoted(context.name.as_str())),
                format!("{} context edit {name}", state.app().name()),
            )
        }));
    }
    Ok(findings)
}

/// Whether the vault opens, and has what the contexts give out.
fn vault(state: &State) -> Result<Vec<Finding>> {
    if state.settings().is_err() {
        // That is told where the settings are.
        return Ok(Vec::new());
    }
    let vault = state.vault()?;
    let all = match vault.list() {
        // That a person must open it first is how it was made.
        Err(Error::Vault(VaultError::Locked { .. }) | Error::Vault(VaultError::KeychainLocked)) => {
            return Ok(Vec::new());
        }
        all => all?,
    };
    let now = state.world().now();
    let mut findings = Vec::new();
    if vault.has_leftover() {
        findings.push(Finding::warning(
            "credentials are in the keychain, but an interrupted move left some in a file".to_owned(),
            format!("{} auth move --to keychain --from file", state.app().name()),
        ));
    }
    let mut warn = |message: String, fix: Option<String>| {
        findings.push(Finding { health: Health::Warning, message, fix });
    };
    for about in all.iter().map(|one| &one.about).filter(|about| !about.is_valid(now)) {
        let end = about.expires_at.map(|end| end.to_string()).unwrap_or_default();
        let fix = format!("{} auth set {}", state.app().name(), about.name);
        warn(format!("credential {} expired at {end}", about.name), Some(fix));
    }
    for (name, context) in state.contexts().list()? {
        let Ok(context) = context else { continue };
        let variables = context.env.iter().filter_map(|(_, variable)| match variable {
            Variable::Credential { credential } => Some(credential),
            Variable::Plain(_) => None,
        });
        for credential in variables.chain(context.agents.iter().map(|(_, credential)| credential)) {
            let said = match context.credential_name(credential, "a credential") {
                Ok(name) => state.world().variable(&state.app().credential_variable(&name)).is_some(),
                Err(error) => {
                    warn(error.to_string(), None);
                    continue;
                }
            };
            if !said && !all.iter().any(|one| one.about.name.as_str() == credential) {
                let fix = format!("{} auth set {}", state.app().name(), shell_quoted(credential));
                warn(
                    format!("context {name} uses credential {}, which does not exist", quoted(credential)),
                    Some(fix),
                );
            }
        }
    }
    Ok(findings)
}

/// A variable that a shell's start-up file sets leads every shell in a session out of it.
/// Checks that the shell of an interactive call is hooked, and in step with its selection.
fn shell_hook(state: &State) -> Result<Vec<Finding>> {
    let Some(status) = ShellStatus::of(state) else { return Ok(Vec::new()) };
    let app = state.app().name();
    let finding = if !status.hooked {
        let program = state.world().variable("SHELL").and_then(|path| path.to_str());
        let shell = program.and_then(Shell::of_program);
        let line = shell.map(|shell| HookLine::of(state, shell)).transpose()?;
        let fix = match line.and_then(|line| Some((line.path, line.found_at?))) {
            Some((path, at)) => format!("start a new shell: {}:{at} loads the hook", shown(path.display())),
            None => format!("{app} hook install"),
        };
        Finding::warning(
            "this shell is not hooked: commands typed in it are not affected by a selection",
            fix,
        )
    } else if status.in_step {
        Finding { health: Health::Ok, message: "this shell is hooked and in step".into(), fix: None }
    } else {
        let places = status.overridden.iter().filter_map(|variable| variable.place.clone());
        let places: Vec<String> = places.collect();
        let fix = match places.is_empty() {
            true => format!("select again: {app} context use NAME"),
            false => format!("remove {}, or load the hook after it", places.join(", ")),
        };
        Finding::warning(format!("this shell is not in step: {}", status.line()), fix)
    };
    Ok(vec![finding])
}

fn start_up_files(state: &State) -> Result<Vec<Finding>> {
    let Some(home) = state.world().home() else { return Ok(Vec::new()) };
    let mut names = std::collections::BTreeMap::new();
    // What is wrong with a profile is told under tools.
    for (profile, _) in state.tools().list().unwrap_or_default() {
        let bound = profile.bind.into_iter().flat_map(|(_, binding)| binding.variables);
        let set = profile.variables.into_iter().chain(bound).map(|(name, _)| name);
        // What overrides a pin leads away from it as well.
        // A pattern names no single variable that a line could set.
        let clears = profile.clears.into_iter().filter(|name| !name.ends_with('*'));
        names.extend(set.chain(clears).map(|name| (name, profile.name.clone())));
    }
    let app = state.app().name();
    let mut findings = Vec::new();
    for (file, shell) in START_UP_FILES {
        let path = home.join(file);
        // What cannot be read here is the shell's to complain about.
        let Ok(Some(text)) = crate::files::read(&path) else { continue };
        let hook = format!("{app} hook");
        let hooked_at = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains(&hook) && !is_comment(line))
            // The last hook counts: an earlier one does not correct a line after it.
            .last()
            .map(|(at, _)| at);
        for (at, line) in text.lines().enumerate() {
            let Some(name) = assigned(line) else { continue };
            // A login shell then reads the file that the line names, and not the session's, so the hook does not help.
            if (name, *shell) == ("BASH_ENV", "bash") {
                findings.push(Finding::warning(
                    format!(
                        "{}:{} sets {name}, which leads login shells out of their session",
                        shown(path.display()),
                        at + 1
                    ),
                    format!("remove the line, and set {name} where {app} is started"),
                ));
                continue;
            }
            let Some((name, tool)) = names.get_key_value(name) else { continue };
            // The hook sets the session's variables again, so a line before it does no harm.
            if hooked_at.is_some_and(|hooked_at| hooked_at > at) {
                continue;
            }
            let load = if *shell == "fish" {
                format!("{app} hook fish | source")
            } else {
                format!("eval \"$({app} hook {shell})\"")
            };
            findings.push(Finding::warning(
                format!(
                    "{}:{} sets {name}, which redirects {tool} away from its session and its context's targets",
                    shown(path.display()),
                    at + 1
                ),
                format!("remove the line, or add at the end of the file: {load}"),
            ));
        }
    }
    Ok(findings)
}

/// A clock behind the newest thing it wrote has been set back.
fn clock(state: &State) -> Result<Vec<Finding>> {
    const TOLERANCE_S: i64 = 120;
    let now = state.world().now().as_second();
    let newest = state.dirs().store()?.metadata().map(|found| found.mtime()).unwrap_or(0);
    let behind = newest.saturating_sub(now);
    Ok((behind > TOLERANCE_S)
        .then(|| {
            Finding::error(
                format!("the clock is {behind} s behind the state database"),
                "set the clock (timedatectl set-ntp true); approvals may be shorter or longer until then"
                    .to_owned(),
            )
        })
        .into_iter()
        .collect())
}

/// Temporary files of killed writers, which the next write in the directory would remove.
fn leftovers(state: &State) -> Result<Vec<Finding>> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    if let Ok(config) = state.dirs().config() {
        dirs.extend([config.to_owned(), config.join("contexts")]);
        // A linked settings file is written where it really is.
        let real = crate::files::resolve_links(&config.join("config.toml"))?;
        dirs.extend(real.parent().map(Path::to_owned));
    }
    dirs.extend(
        state.project().into_iter().flat_map(|project| [project.dir().to_owned(), project.contexts()]),
    );
    if let ConfigSource::File(file) = state.source() {
        dirs.extend(file.parent().map(Path::to_owned));
    }
    dirs.sort();
    dirs.dedup();
    Ok(dirs
        .into_iter()
        .map(|dir| dir.join(TEMPORARY))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| {
            Finding::warning(
                format!("{} was left by a killed process", shown(path.display())),
                format!("rm {}", word(&path)),
            )
        })
        .collect())
}
