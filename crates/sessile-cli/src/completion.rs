//! Completion in the shell, of commands, flags and the names that exist now.

use std::ffi::OsStr;

use clap::{Arg, Command, CommandFactory};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use sessile::text::shown;
use sessile::{State, StateArgs, World, exit};

use crate::cli::Cli;
use crate::settings::app;

/// The variable by which a shell's script asks for completions.
pub(crate) const VARIABLE: &str = "SESSILE_COMPLETE";

/// Answers the shell; returns the exit status, unless nothing was asked.
pub(crate) fn answer(world: &World) -> Option<u8> {
    let complete = CompleteEnv::with_factory(tree).var(VARIABLE);
    match complete.try_complete(std::env::args_os(), world.cwd()) {
        Ok(true) => Some(exit::DONE),
        Ok(false) => None,
        // The shell is no longer listening, or asks in a way of its own; a line in the middle of what a person
        // types would help nobody.
        Err(_) => Some(exit::FAILED),
    }
}

/// The whole tree; what an ordinary call builds only for the command it runs must be there to be completed.
fn tree() -> Command {
    let mut tree = Cli::command();
    tree.build();
    with_completers(tree)
}

/// The tree with completers for the values that have names. Ordinary calls are spared the cost.
fn with_completers(mut command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, with_completers);
    }
    command.mut_args(complete_arg)
}

fn complete_arg(arg: Arg) -> Arg {
    let names: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let is_context_flag = arg.get_long() == Some("context");
    let is_credential = arg.get_long() == Some("credential") || arg.get_long() == Some("login");
    match names.first().map(String::as_str) {
        Some("CONTEXT") => arg.add(ArgValueCompleter::new(contexts)),
        Some("NAME") if is_context_flag => arg.add(ArgValueCompleter::new(contexts)),
        Some("NAME") if is_credential => arg.add(ArgValueCompleter::new(credentials)),
        Some("TOOL") => arg.add(ArgValueCompleter::new(tools)),
        Some("CREDENTIAL") => arg.add(ArgValueCompleter::new(credentials)),
        Some("SESSION") => arg.add(ArgValueCompleter::new(sessions)),
        Some("KEY" | "KEY=VALUE") => arg.add(ArgValueCompleter::new(settings)),
        _ => arg,
    }
}

fn contexts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(state) = State::open(&app(), World::from_process(), StateArgs::default()) else {
        return Vec::new();
    };
    let contexts = state.contexts().list().unwrap_or_default();
    let typed = typed.to_string_lossy();
    contexts
        .into_iter()
        .filter(|(name, _)| name.as_str().starts_with(&*typed))
        .map(|(name, context)| {
            let help =
                // A context whose file is broken still has a name to complete.
                context.ok().and_then(|context| context.shown_description()).map(|text| shown(text).into());
            CompletionCandidate::new(name.as_str()).help(help)
        })
        .collect()
}

/// The names of the credentials, if the vault is open.
fn credentials(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(state) = State::open(&app(), World::from_process(), StateArgs::default()) else {
        return Vec::new();
    };
    // A keychain or a helper may take its time, and a person waits.
    let is_quick = |vault: &sessile::vault::Vault<'_>| {
        vault.status().is_ok_and(|status| status.backend == Some(sessile::vault::Backend::File))
    };
    let all = state.vault().ok().filter(is_quick).and_then(|vault| vault.list().ok()).unwrap_or_default();
    let typed = typed.to_string_lossy();
    all.iter()
        .filter(|one| one.about.name.as_str().starts_with(&*typed))
        .map(|one| {
            CompletionCandidate::new(one.about.name.as_str()).help(Some(one.about.kind.as_str().into()))
        })
        .collect()
}

fn tools(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(state) = State::open(&app(), World::from_process(), StateArgs::default()) else {
        return Vec::new();
    };
    let typed = typed.to_string_lossy();
    let tools = state.tools().list().unwrap_or_default().into_iter().map(|(profile, _)| profile);
    tools
        .filter(|profile| profile.name.starts_with(&*typed))
        .map(|profile| CompletionCandidate::new(profile.name).help(Some(shown(profile.about).into())))
        .collect()
}

/// The names of the live sessions.
fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    const MOST: usize = 100;
    let Ok(state) = State::open(&app(), World::from_process(), StateArgs::default()) else {
        return Vec::new();
    };
    let Ok(Some(sessions)) = state.sessions_to_look_at() else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let live = sessions.list(None, true, MOST).unwrap_or_default();
    live.iter()
        .map(|session| session.label())
        .filter(|label| label.starts_with(&*typed))
        .map(CompletionCandidate::new)
        .collect()
}

fn settings(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    app()
        .settings()
        .filter(|setting| !setting.is_pattern() && setting.key.starts_with(&*typed))
        .map(|setting| CompletionCandidate::new(setting.key).help(Some(setting.about.into())))
        .collect()
}
