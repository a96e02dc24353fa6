//! The path of a call through the program: parse, open the state, run the command, print, exit.
//!
//! 1. `main` captures the `World` and parses the arguments.
//! 2. `StateCall` orders flags and variables, in the mode of the command's row in the effects table. It reads no file.
//! 3. Operations that a dead process left unfinished are settled, if a marker exists.
//! 4. The command asks the state for what it needs, which reads files and the store.
//! 5. `Output` prints the result, then the warnings. The error determines the exit status.
//!
//! A call that changed something also ends a few expired sessions (`Cx::changed_at`).

use std::ffi::OsString;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::ErrorKind;
use sessile::call::{SessionMode, StateCall};
use sessile::files::{LinePosition, LockWait};
use sessile::settings::{Layer, Origin, Value};
use sessile::{Error, State, StateArgs, World};

use crate::build_info;
use crate::child::monitor;
use crate::cli::{Cli, Command};
use crate::commands::{self, binding_args, import, run};
use crate::cx::Cx;
use crate::effects::{CommandEffect, CommandEntry};
use crate::error::{Failure, Outcome};
use crate::help;
use crate::lazy_command::Lazy;
use crate::output::{Output, OutputBuffers};
use crate::parse::{AfterUse, ParsedLine, early_output, parse, without_values};
use crate::remote;
use crate::settings::app;
use crate::suggestion;
use crate::watcher;

/// The program.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // Before everything else: a watcher and a monitor are this program under another name, and take other arguments.
    if args.first().is_some_and(|program| program == watcher::PROGRAM) {
        return ExitCode::from(watcher::main(args.into_iter().skip(1)));
    }
    if args.first().is_some_and(|program| program == monitor::PROGRAM) {
        let ended = monitor::main(args.into_iter().skip(1));
        return ExitCode::from(ended.map_or_else(|failure| exit_status(&failure), |()| 0));
    }
    let world = World::from_process();
    if world.variable(crate::completion::VARIABLE).is_some()
        && let Some(status) = crate::completion::answer(&world, &args)
    {
        return ExitCode::from(status);
    }
    ExitCode::from(run(&world, &args, None))
}

/// Makes a call in this process that prints into buffers. Only for commands that read: a command that writes may change its
/// process, and one that runs another becomes it.
pub(crate) fn run_in_process(world: &World, args: &[OsString], buffers: Arc<OutputBuffers>) {
    // The buffers have the failure; the status is that of a process.
    let _status = run(world, args, Some(buffers));
}

/// One call: parses the arguments, runs the command, prints, and returns the exit status.
fn run(world: &World, args: &[OsString], buffers: Option<Arc<OutputBuffers>>) -> u8 {
    let after_use = if buffers.is_some() { AfterUse::Drop } else { AfterUse::Leak };
    // Until the settings are read, only flags and variables can say how to print.
    let early = early_output(world, args).into_buffers(buffers);
    let outcome = match parse(args, after_use) {
        Err(error) if error.kind() == ErrorKind::DisplayVersion && build_info::is_asked(args) => {
            build_info::print(&early)
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelp => early.print(&help::asked_page(args, &early)),
        // A mistyped flag may have been followed by a secret.
        Err(error) => Err(suggestion::failure(without_values(error, args), args)),
        // Help reads no settings, and so works with broken ones.
        Ok(ParsedLine { cli: Cli { state, command: Some(Command::Help(Lazy(help))), .. }, .. }) => {
            commands::help::run(&help, &early, state.verbose > 0)
        }
        Ok(ParsedLine { cli: Cli { state, log, command: Some(command) }, entry: Some(entry) }) => {
            // In a process that makes several calls the log is that of the process.
            let log = if early.buffers().is_some() { Ok(()) } else { log.start(world, state.verbose) };
            match log {
                Ok(()) => return call(world, &early, state, &command, entry),
                Err(error) => Err(error.into()),
            }
        }
        Ok(ParsedLine { cli, .. }) => early.print(&help::start_page(&early, cli.state.verbose > 0)),
    };
    finish(&early, outcome)
}

fn call(
    world: &World,
    early: &Output,
    args: StateArgs,
    command: &Command,
    entry: &'static CommandEntry,
) -> u8 {
    if entry.effect != CommandEffect::Read {
        catch_file_size_limit();
    }
    // A command that runs another keeps the small numbers for that one.
    let own = |error: Error| {
        let failure = Failure::from(error);
        if entry.has_child_status { failure.into_own() } else { failure }
    };
    let finish = |out: &Output, outcome: Outcome| match command {
        Command::Run(Lazy(run::Args { report: Some(file), .. })) => finish_in(file, out, outcome),
        _ => finish(out, outcome),
    };
    let state = match state_call(world, early, args, command, entry) {
        Ok(call) => settled(open(call, entry), entry),
        Err(error) => return finish(early, Err(own(error))),
    };
    let named = |state: &State| match entry.reports_missing_context {
        true => Ok(()),
        false => state.contexts().require_named(),
    };
    let output = |state| output(state).map(|out| out.into_buffers(early.buffers().cloned()));
    let ready = output(&state).and_then(|out| named(&state).map(|()| out));
    let out = match ready {
        Ok(out) => out,
        // Commands that repair the settings must run with broken ones.
        Err(_) if entry.mode.tolerates_broken_settings => early.clone(),
        Err(error) => return finish(early, Err(import::with_hint(&state, own(error)))),
    };
    // Nothing in the state needs to be taken down in order before the process ends.
    let cx = ManuallyDrop::new(Cx { state, out });
    if !command.describes_itself() {
        cx.describe_call();
    }
    let outcome = command.run(&cx);
    if let Err(failure) = &outcome
        && let Some(error) = failure.library_error()
    {
        // A damaged database is moved aside now, so that the next command works.
        cx.state.recover_after(error);
    }
    let outcome = outcome.map_err(|failure| import::with_hint(&cx.state, failure));
    if entry.effect != CommandEffect::Read
        && let Err(error) = cx.state.remove_vacant_state()
    {
        cx.out.detail(&format!("cannot remove the state directory beside the configuration file: {error}"));
    }
    cx.state.save_answers();
    cx.out.warnings(&cx.state.take_warnings());
    let status = finish(&cx.out, outcome);
    if early.buffers().is_some() {
        drop(ManuallyDrop::into_inner(cx));
    }
    status
}

/// Makes a write beyond the limit of file sizes an error, which otherwise ends the process without a word. A handler, and not an
/// ignored signal: commands that are run get the default action back.
fn catch_file_size_limit() {
    // Without it such a write ends the process, as before.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// The call of a command, in the mode that its row gives it.
fn state_call(
    world: &World,
    early: &Output,
    args: StateArgs,
    command: &Command,
    entry: &CommandEntry,
) -> Result<StateCall, Error> {
    let waiting = early.clone();
    let mut mode = entry.mode;
    if command.restarts_session() {
        mode.session = SessionMode::StartEnded;
    }
    let call = StateCall::new(&app(), world.clone(), args)?
        .with_bindings(command.bindings(), binding_args::FLAG)?
        .with_mode(mode)
        .on_wait(move |wait| {
            waiting.note(&describe_wait(wait));
            waiting.slow_step(|| match &wait.line {
                Some(line) => format!("waiting for lock {}", sessile::text::quoted(&line.name)),
                None => "waiting for another process".to_owned(),
            })
        });
    Ok(match command.server() {
        Some(url) => {
            let flag = Origin::named(Layer::Flag, "--server");
            call.with_override(remote::KEY, Value::Text(url.to_owned()), flag)
        }
        None => call,
    })
}

/// Opens the state of a call. If the call means a session of a server, names are not looked up on this machine.
fn open(call: StateCall, entry: &CommandEntry) -> State {
    if !entry.uses_remote_session {
        return State::from(call);
    }
    let remote = |call: StateCall| State::from(call.with_session_mode(SessionMode::Remote));
    // A flag or a variable decides without reading any settings.
    if let Some(value) = call.override_of(remote::KEY) {
        return if remote::means_server(value) { remote(call) } else { State::from(call) };
    }
    let server = |state: &State| state.settings().and_then(|settings| settings.get(remote::KEY));
    let state = State::from(call);
    match server(&state) {
        // A session of this machine may have set it.
        Ok(Some(found)) if remote::means_server(&found.value) => {
            remote(state.call().clone().with_override(remote::KEY, found.value, found.origin))
        }
        Ok(_) => state,
        // No session of that name on this machine; it may be the server's.
        Err(_) => {
            let elsewhere = remote(state.call().clone());
            let found = server(&elsewhere).ok().flatten();
            let is_remote = found.is_some_and(|found| remote::means_server(&found.value));
            if is_remote { elsewhere } else { state }
        }
    }
}

/// The state after interrupted operations of dead processes were completed or rolled back. If that fails now, the next
/// write reports why.
fn settled(state: State, entry: &CommandEntry) -> State {
    match sessile::history::settle_if_marked(&state) {
        // What was settled may have changed files that the state has read.
        Ok(true) => open(state.call().clone(), entry),
        Ok(false) | Err(_) => state,
    }
}

fn finish(out: &Output, outcome: Outcome) -> u8 {
    match outcome {
        Ok(()) => sessile::exit::DONE,
        Err(Failure::Arguments(error)) if !error.use_stderr() => {
            // The version is a result: it goes to standard output.
            finish(out, out.print(&error.render().to_string()))
        }
        Err(failure) => {
            out.failure(&app(), &failure);
            exit_status(&failure)
        }
    }
}

/// The exit status of a failure. After an interrupt of its command this process ends by the same signal instead: only then
/// a shell ends the loop that it runs in.
fn exit_status(failure: &Failure) -> u8 {
    if matches!(failure, Failure::Interrupted) {
        let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGINT);
    }
    failure.exit()
}

/// The same with the error in a file that the caller made for it.
fn finish_in(file: &Path, out: &Output, outcome: Outcome) -> u8 {
    let failure = match outcome {
        Err(failure) => failure,
        done => return finish(out, done),
    };
    let written = failure.report(&app()).map(|report| {
        // The caller made it and reads it after this process has ended.
        // Not created: a path that the caller did not make is none of ours to write.
        let mut file = std::fs::OpenOptions::new().write(true).open(file)?;
        file.write_all(report.to_json().to_string().as_bytes())
    });
    if matches!(written, Some(Err(_))) {
        out.failure(&app(), &failure);
    }
    exit_status(&failure)
}

/// The output that the settings ask for.
fn output(state: &State) -> Result<Output, Error> {
    let (format, color) = (state.format()?, state.color()?);
    Ok(Output::new(state.world(), format, color, state.args().quiet, state.args().verbose > 0))
}

fn describe_wait(wait: &LockWait<'_>) -> String {
    if let Some(LinePosition { name, position, holder }) = &wait.line {
        let holder = holder.as_ref().map_or_else(String::new, |holder| format!(", held by {holder}"));
        let (name, remaining) = (sessile::text::quoted(name), sessile::duration::short(wait.remaining));
        return format!(
            "waiting for lock {name}{holder}; position {position} in line; giving up in {remaining}"
        );
    }
    let holder = wait.holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string);
    format!(
        "waiting for {}, held by {holder}; giving up in {}",
        sessile::text::shown(wait.path.display()),
        sessile::duration::short(wait.remaining)
    )
}
