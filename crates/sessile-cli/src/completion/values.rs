//! Values of arguments: the names that exist now. A state that cannot be read has none, and nothing is printed about it.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap_complete::engine::CompletionCandidate;
use sessile::hook::is_of_hook;
use sessile::import;
use sessile::settings::{Definition, SettingKey, SettingKind};
use sessile::text::shown;
use sessile::vault::{Backend, Vault};
use sessile::{State, StateArgs, World};

use crate::completion::words;
use crate::settings::app;

/// Sessions and conversations that are offered at most.
const MOST: usize = 100;

/// The state that the line so far means.
fn state() -> Option<State> {
    let config = words().iter().enumerate().rev().find_map(|(at, word)| match word.to_str()? {
        "--config" => words().get(at + 1).map(PathBuf::from),
        word => word.strip_prefix("--config=").map(PathBuf::from),
    });
    State::open(&app(), World::from_process(), StateArgs { config, ..StateArgs::default() }).ok()
}

/// Candidates that begin as typed, each with a description.
fn matching(
    typed: &OsStr,
    all: impl IntoIterator<Item = (String, Option<String>)>,
) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    all.into_iter()
        // A control character would be typed into the shell.
        .filter(|(name, _)| name.starts_with(&*typed) && !name.contains(|c: char| c.is_control()))
        .map(|(name, help)| CompletionCandidate::new(name).help(help.map(|help| shown(help).into())))
        .collect()
}

/// Candidates for what follows the first `=`.
fn after_equals(
    typed: &OsStr,
    values: impl FnOnce(&str) -> Vec<(String, Option<String>)>,
) -> Option<Vec<CompletionCandidate>> {
    let text = typed.to_str()?;
    let (key, _) = text.split_once('=')?;
    let pairs = values(key).into_iter().map(|(value, help)| (format!("{key}={value}"), help));
    Some(matching(typed, pairs))
}

pub(super) fn contexts(typed: &OsStr) -> Vec<CompletionCandidate> {
    matching(typed, context_names())
}

fn context_names() -> Vec<(String, Option<String>)> {
    let Some(state) = state() else { return Vec::new() };
    let contexts = state.contexts().list().unwrap_or_default();
    contexts
        .into_iter()
        .map(|(name, context)| {
            (name.to_string(), context.ok().and_then(|context| context.shown_description()))
        })
        .collect()
}

pub(super) fn importable_contexts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(state) = state() else { return Vec::new() };
    let Ok(scan) = import::scan(&state) else { return Vec::new() };
    let contexts = state.contexts().list().unwrap_or_default();
    let existing: Vec<_> = contexts.into_iter().filter_map(|(_, context)| context.ok()).collect();
    let new = import::new_contexts(&existing, import::propose_all(&scan));
    let binds = |context: &import::ProposedContext| {
        let names = context.targets.iter().map(|target| format!("{} {}", target.tool, target.name));
        names.collect::<Vec<_>>().join(", ")
    };
    matching(
        typed,
        new.into_iter().map(|context| {
            let binds = binds(&context);
            (context.name, Some(binds))
        }),
    )
}

/// The names of the credentials, if the vault is open.
pub(super) fn credentials(typed: &OsStr) -> Vec<CompletionCandidate> {
    matching(typed, credential_names())
}

fn credential_names() -> Vec<(String, Option<String>)> {
    let Some(state) = state() else { return Vec::new() };
    // A keychain or a helper may be slow, and the user waits for the completion.
    let is_quick =
        |vault: &Vault<'_>| vault.status().is_ok_and(|status| status.backend == Some(Backend::File));
    let all = state.vault().ok().filter(is_quick).and_then(|vault| vault.list().ok()).unwrap_or_default();
    all.iter().map(|one| (one.about.name.to_string(), Some(one.about.kind.as_str().to_owned()))).collect()
}

pub(super) fn credentials_of_pairs(typed: &OsStr) -> Vec<CompletionCandidate> {
    after_equals(typed, |_| credential_names()).unwrap_or_default()
}

pub(super) fn tools(typed: &OsStr) -> Vec<CompletionCandidate> {
    let tools = state().and_then(|state| state.tools().list().ok()).unwrap_or_default();
    matching(typed, tools.into_iter().map(|(profile, _)| (profile.name, Some(profile.about))))
}

/// The names of the live sessions.
pub(super) fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let sessions = state().and_then(|state| state.sessions_to_look_at().ok().flatten());
    let live = sessions.and_then(|sessions| sessions.list(None, true, MOST).ok()).unwrap_or_default();
    let label = |name: &str| sessile::context::anonymous::label(name);
    matching(
        typed,
        // A hooked shell's own session has no name, and only that shell uses it.
        live.iter()
            .filter(|session| !is_of_hook(session))
            .map(|session| (session.label().to_owned(), session.context.as_deref().map(label))),
    )
}

pub(super) fn agents(typed: &OsStr) -> Vec<CompletionCandidate> {
    let agents = state().and_then(|state| state.agents().ok()).unwrap_or_default();
    matching(typed, agents.into_iter().filter_map(|agent| Some((agent.name?, Some(agent.url)))))
}

/// The names of the locks that are held.
pub(super) fn locks(typed: &OsStr) -> Vec<CompletionCandidate> {
    let locks = state().and_then(|state| state.locks_for_reading().ok().flatten()?.list().ok());
    matching(typed, locks.unwrap_or_default().into_iter().map(|lock| (lock.name, None)))
}

pub(super) fn conversations(typed: &OsStr) -> Vec<CompletionCandidate> {
    let conversations = state().and_then(|state| state.conversations_to_look_at().ok().flatten());
    let all = conversations.and_then(|all| all.list(None, None).ok()).unwrap_or_default();
    let named = all.into_iter().take(MOST).map(|one| (one.name.unwrap_or(one.id), Some(one.agent_url)));
    matching(typed, named)
}

/// Bindings: the keys of all tools, and behind `=` the targets that the tool has.
pub(super) fn bindings(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(state) = state() else { return Vec::new() };
    let values = |key: &str| -> Vec<(String, Option<String>)> {
        let Some((tool, key)) = key.split_once('.') else { return Vec::new() };
        let names = import::binding_values(&state, tool, key).unwrap_or_default();
        names.into_iter().map(|name| (name, None)).collect()
    };
    after_equals(typed, values).unwrap_or_else(|| {
        let tools = state.tools().list().unwrap_or_default();
        let keys = tools.into_iter().flat_map(|(profile, _)| {
            let tool = profile.name;
            profile
                .bind
                .into_iter()
                .map(move |(key, binding)| (format!("{tool}.{key}="), Some(binding.about)))
        });
        matching(typed, keys)
    })
}

pub(super) fn settings(typed: &OsStr) -> Vec<CompletionCandidate> {
    matching(typed, setting_keys(""))
}

fn setting_keys(ending: &str) -> Vec<(String, Option<String>)> {
    let app = app();
    let settings = app.settings().filter(|setting| !setting.is_pattern());
    settings.map(|setting| (format!("{}{ending}", setting.key), Some(setting.about.to_owned()))).collect()
}

/// Settings with their values: `KEY=VALUE`.
pub(super) fn setting_pairs(typed: &OsStr) -> Vec<CompletionCandidate> {
    after_equals(typed, values_of_setting).unwrap_or_else(|| matching(typed, setting_keys("=")))
}

/// The values of the setting that the word before names.
pub(super) fn setting_values(typed: &OsStr) -> Vec<CompletionCandidate> {
    let key = words().last().and_then(|word| word.to_str()).unwrap_or_default();
    matching(typed, values_of_setting(key))
}

fn values_of_setting(key: &str) -> Vec<(String, Option<String>)> {
    let app = app();
    let Ok(key) = key.parse::<SettingKey>() else { return Vec::new() };
    let is_it = |setting: &&Definition| setting.matches(key.segments());
    let Some(setting) = app.settings().find(is_it) else { return Vec::new() };
    match setting.kind {
        SettingKind::Bool => ["true", "false"].map(|word| (word.to_owned(), None)).into(),
        SettingKind::Choice(words) => words.iter().map(|word| ((*word).to_owned(), None)).collect(),
        SettingKind::Context => context_names(),
        _ if setting.key == "credential" => credential_names(),
        _ => Vec::new(),
    }
}
