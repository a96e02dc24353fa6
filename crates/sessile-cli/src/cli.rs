//! The command tree, and the way of a call through it: parse, open the state, run, print.

use std::ffi::OsString;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use serde_json::{Value, json};
use sessile::args::{Color, Format};
use sessile::session::Session;
use sessile::settings::{Layer, Origin, Value as Setting};
use sessile::state::Starting;
use sessile::{Error, State, StateArgs, World};

use crate::commands::{
    agent, auth, backup, completions, config, context, conversation, demo, doctor, env, history, hook, lock,
    man, manifest, mcp, message, probe, prompt, run, serve, session, shell, skill, status, task, tool, trust,
    undo, user,
};
use crate::error::{Failure, Outcome};
use crate::help::examples_and_precedence;
use crate::lazy::{Lazy, LazyGroup};
use crate::output::Output;
use crate::remote;
use crate::settings::app;

/// State that stays put: contexts and settings that parallel agents cannot switch under each other.
#[derive(Debug, Parser)]
#[command(
    name = "sessile",
    version,
    max_term_width = 110,
    disable_help_subcommand = true,
    after_help = examples_and_precedence!(
        "sessile demo                                see the problem, and the cure"
        "sessile run --context staging -- claude     an agent with state of its own"
        "sessile context create staging              make a context"
        "sessile context use staging                 select it, in this terminal only"
        "sessile status --output json                where am I, and why"
    )
)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub state: StateArgs,

    /// The command.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[command(subcommand_help_heading = "Commands")]
pub enum Command {
    /// Run a command with state of its own: its kube context, cloud profile, account are the session's
    Run(Lazy<run::Args>),
    /// Open a shell in a session
    Shell(Lazy<shell::Args>),
    /// Print the variables of a session, for a shell to set
    Env(Lazy<env::Args>),
    /// Print the script that keeps a shell in its terminal's session
    Hook(Lazy<hook::Args>),
    /// Print the session and the context for a prompt
    Prompt(Lazy<prompt::Args>),
    /// Make, select, guard and move contexts: named targets such as "staging"
    Context(LazyGroup<context::Command>),
    /// Read and change settings, each with its origin
    Config(LazyGroup<config::Command>),
    /// Start, list and stop sessions: owned stretches of work, each pinned to one context
    Session(LazyGroup<session::Command>),
    /// Keep credentials in the vault, and use them without showing them
    Auth(LazyGroup<auth::Command>),
    /// Name agents, and look at their cards
    Agent(LazyGroup<agent::Command>),
    /// Talk to agents that speak A2A
    Message(LazyGroup<message::Command>),
    /// Look at, follow and call off what agents work on
    Task(LazyGroup<task::Command>),
    /// Look at, name and forget conversations with agents
    Conversation(LazyGroup<conversation::Command>),
    /// Test a service for mix-ups: many users at once, and whether one sees what another said
    Probe(Lazy<probe::Args>),
    /// Serve all of this as tools to an MCP client
    Mcp(Lazy<mcp::Args>),
    /// Print instructions for coding agents
    Skill(Lazy<skill::Args>),
    /// Exclude other agents: hold a lock while a command runs, or for a time
    Lock(LazyGroup<lock::Command>),
    /// Serve sessions, messages, turns, values and locks to many users over HTTP
    Serve(Lazy<serve::Args>),
    /// Add users of the session service, and give them tokens
    User(LazyGroup<user::Command>),
    /// Show what was changed, when and by whom
    History(Lazy<history::Args>),
    /// Undo an operation
    Undo(Lazy<undo::Args>),
    /// Copy the state database, or restore a copy
    Backup(Lazy<backup::Args>),
    /// Let a project's files take effect
    Trust(Lazy<trust::Args>),
    /// Show the current context, account and session, and where each comes from
    Status(Lazy<status::Args>),
    /// Look for what is wrong, and say how to mend it
    Doctor(Lazy<doctor::Args>),
    /// See what is known about other command-line tools, and prove it on this machine
    Tool(LazyGroup<tool::Command>),
    /// Show what parallel agents do to shared state, without Sessile and with it
    Demo(Lazy<demo::Args>),
    /// Describe every command, flag, effect and error code, for programs
    Manifest(Lazy<manifest::Args>),
    /// Print the script that completes commands and names in your shell
    Completions(Lazy<completions::Args>),
    /// Print the manual page, or write all of them to a directory
    Man(Lazy<man::Args>),
}

/// What a command is handed.
pub struct Cx {
    /// The state.
    pub state: State,
    /// The output.
    pub out: Output,
}

impl Cx {
    /// Prints what a change did, with the context and the session it was done in.
    pub(crate) fn changed(&self, json: Value, text: impl FnOnce() -> String) -> Outcome {
        self.changed_in(None, json, text)
    }

    /// The same for a change that made a session of its own.
    pub(crate) fn changed_in(
        &self,
        made: Option<&Session>,
        mut json: Value,
        text: impl FnOnce() -> String,
    ) -> Outcome {
        // The change may have been one of the selection itself: look again.
        let fresh = State::open(self.state.app(), self.state.world().clone(), self.flags());
        let selected = fresh.as_ref().ok().and_then(|state| state.selected().ok().flatten());
        let session = made
            .map(|session| session.id.to_string())
            .or_else(|| self.state.session().ok().flatten().map(|current| current.session.id.to_string()));
        json["session"] = json!(session);
        if let Some(made) = made {
            // An imported session brings its context along, whatever is selected here.
            let selected = self.state.selected().ok().flatten();
            let chosen = selected.filter(|selected| Some(selected.name.as_str()) == made.context.as_deref());
            json["context"] = json!(made.context);
            json["context_origin"] = json!(chosen.map(|selected| &selected.origin));
        } else {
            json["context"] = json!(selected.map(|selected| &selected.name));
            json["context_origin"] = json!(selected.map(|selected| &selected.origin));
        }
        self.out.result(&json, text)?;
        if self.out.is_text() {
            let context = json["context"]
                .as_str()
                .map_or_else(|| "no context".to_owned(), |name| format!("context {name}"));
            let session = session.map_or_else(|| "no session".to_owned(), |id| format!("session {id}"));
            let origin = selected
                .filter(|_| made.is_none())
                .map_or_else(String::new, |found| format!(" ({})", found.origin));
            self.out.note(&format!("in {context}{origin}, {session}"));
        }
        // What has expired goes with the next change; if that fails, the one after it tries again.
        let _ = self.state.tidy();
        Ok(())
    }

    /// The same for a change that was made on a server: `place` is the session, and where it is.
    pub(crate) fn changed_there(
        &self,
        session: &str,
        context: Option<&str>,
        origin: Option<&Origin>,
        place: &str,
        mut json: Value,
        text: impl FnOnce() -> String,
    ) -> Outcome {
        json["session"] = json!(session);
        json["context"] = json!(context);
        json["context_origin"] = json!(origin);
        self.out.result(&json, text)?;
        if self.out.is_text() {
            let context = context.map_or_else(|| "no context".to_owned(), |name| format!("context {name}"));
            let origin = origin.map_or_else(String::new, |origin| format!(" ({origin})"));
            self.out.note(&format!("in {context}{origin}, {place}"));
        }
        Ok(())
    }

    /// The flags of this call without what its variables say, which the world still has.
    fn flags(&self) -> StateArgs {
        let from_variable = self.state.session_origin().layer == Layer::Environment;
        let args = self.state.args().clone();
        if from_variable { StateArgs { session: None, ..args } } else { args }
    }
}

impl Command {
    /// Whether it must work when the settings cannot be read: it is what one mends them with.
    fn tolerates_broken_settings(&self) -> bool {
        matches!(
            self,
            Command::Doctor(_)
                | Command::Hook(_)
                | Command::Manifest(_)
                | Command::Completions(_)
                | Command::Man(_)
                | Command::Mcp(Lazy(mcp::Args { command: Some(_), .. }))
                | Command::Skill(_)
                | Command::Config(LazyGroup(
                    config::Command::Edit(_)
                        | config::Command::Path(_)
                        | config::Command::Validate(_)
                        | config::Command::Schema(_)
                ))
        )
    }

    /// What puts the commands of a group into a tree.
    fn group(name: &str) -> Option<fn(clap::Command) -> clap::Command> {
        match name {
            "context" => Some(context::Command::augment_subcommands),
            "config" => Some(config::Command::augment_subcommands),
            "session" => Some(session::Command::augment_subcommands),
            "agent" => Some(agent::Command::augment_subcommands),
            "message" => Some(message::Command::augment_subcommands),
            "task" => Some(task::Command::augment_subcommands),
            "conversation" => Some(conversation::Command::augment_subcommands),
            "auth" => Some(auth::Command::augment_subcommands),
            "lock" => Some(lock::Command::augment_subcommands),
            "tool" => Some(tool::Command::augment_subcommands),
            "user" => Some(user::Command::augment_subcommands),
            _ => None,
        }
    }

    /// Whether its exit status is that of a command it runs.
    fn runs_a_command(&self) -> bool {
        matches!(self, Command::Run(_) | Command::Shell(_) | Command::Lock(LazyGroup(lock::Command::Run(_))))
    }

    /// Whether it starts the session it is told to work in, if there is none of that name.
    fn starts_its_session(&self) -> Option<Starting> {
        let starting = |anew: bool| if anew { Starting::IfOver } else { Starting::IfMissing };
        match self {
            Command::Run(Lazy(args)) => Some(starting(args.starts_anew())),
            Command::Shell(Lazy(args)) => Some(starting(args.starts_anew())),
            Command::Message(_) => Some(Starting::IfMissing),
            // The server is there before the session it is to work in, and after it.
            Command::Mcp(_) => Some(Starting::IfOver),
            _ => None,
        }
    }

    /// Whether it only looks, or leaves a session behind: what a variable still says must not stand in its way.
    fn only_looks(&self) -> bool {
        use session::Command::{Clear, Gc, List, Show, Start, Stop};
        matches!(
            self,
            Command::Doctor(_)
                | Command::Hook(_)
                | Command::History(_)
                | Command::Skill(_)
                | Command::Context(LazyGroup(context::Command::List(_) | context::Command::Show(_)))
                | Command::Lock(LazyGroup(lock::Command::List(_)))
                | Command::Session(LazyGroup(Clear(_) | Gc(_) | List(_) | Show(_) | Start(_) | Stop(_)))
        )
    }

    /// Whether it starts a session of its own, whichever this terminal has.
    fn begins_a_session(&self) -> bool {
        matches!(self, Command::Session(LazyGroup(session::Command::Start(_) | session::Command::Import(_))))
    }

    /// The server that the command line names, of a command that can work there.
    fn server(&self) -> Option<&str> {
        let args = match self {
            Command::Run(Lazy(args)) => &args.server,
            Command::Lock(LazyGroup(command)) => command.server(),
            Command::Session(LazyGroup(command)) => command.server()?,
            Command::Message(LazyGroup(command)) => command.server(),
            Command::Conversation(LazyGroup(command)) => command.server()?,
            Command::History(Lazy(args)) => &args.server,
            _ => return None,
        };
        args.server.as_deref()
    }

    /// Whether the session of a call is one of the server's, if the call means one. A command that runs, and a lock that is
    /// held meanwhile, belong to a session of this machine.
    fn has_its_session_there(&self) -> bool {
        match self {
            Command::Session(LazyGroup(command)) => command.server().is_some(),
            Command::Conversation(LazyGroup(command)) => command.server().is_some(),
            Command::Message(_) | Command::History(_) => true,
            _ => false,
        }
    }

    fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Run(Lazy(args)) => run::run(args, cx),
            Command::Shell(Lazy(args)) => shell::run(args, cx),
            Command::Env(Lazy(args)) => env::run(args, cx),
            Command::Hook(Lazy(args)) => hook::run(args, cx),
            Command::Prompt(Lazy(args)) => prompt::run(args, cx),
            Command::Tool(LazyGroup(command)) => command.run(cx),
            Command::Context(LazyGroup(command)) => command.run(cx),
            Command::Config(LazyGroup(command)) => command.run(cx),
            Command::Session(LazyGroup(command)) => command.run(cx),
            Command::Auth(LazyGroup(command)) => command.run(cx),
            Command::Agent(LazyGroup(command)) => command.run(cx),
            Command::Conversation(LazyGroup(command)) => command.run(cx),
            Command::Message(LazyGroup(command)) => command.run(cx),
            Command::Probe(Lazy(args)) => probe::run(args, cx),
            Command::Mcp(Lazy(args)) => mcp::run(args, cx),
            Command::Skill(Lazy(args)) => skill::run(args, cx),
            Command::Task(LazyGroup(command)) => command.run(cx),
            Command::Lock(LazyGroup(command)) => command.run(cx),
            Command::Serve(Lazy(args)) => serve::run(args, cx),
            Command::User(LazyGroup(command)) => command.run(cx),
            Command::History(Lazy(args)) => history::run(args, cx),
            Command::Undo(Lazy(args)) => undo::run(args, cx),
            Command::Backup(Lazy(args)) => backup::run(args, cx),
            Command::Trust(Lazy(args)) => trust::run(args, cx),
            Command::Status(Lazy(args)) => status::run(args, cx),
            Command::Doctor(Lazy(args)) => doctor::run(args, cx),
            Command::Demo(Lazy(args)) => demo::run(args, cx),
            Command::Manifest(Lazy(args)) => manifest::run(args, cx),
            Command::Completions(Lazy(args)) => completions::run(args, cx),
            Command::Man(Lazy(args)) => man::run(args, cx),
        }
    }
}

/// The program.
pub fn main() -> ExitCode {
    let world = World::from_process();
    if world.variable(crate::completion::VARIABLE).is_some()
        && let Some(status) = crate::completion::answer(&world)
    {
        return ExitCode::from(status);
    }
    ExitCode::from(run(&world, std::env::args_os()))
}

/// One call: parses the arguments, runs the command, prints, and returns the exit status.
pub fn run(world: &World, args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    // Until the settings are read, only flags and variables can say how to print.
    let early = early_output(world, &args);
    let outcome = match parse(&args) {
        Err(error) => Err(Failure::Arguments(Box::new(unrepeated(error, &args)))),
        Ok(Cli { command: None, .. }) => print_help(&early),
        Ok(Cli { state, command: Some(command) }) => return call(world, &early, &state, &command),
    };
    finish(&early, outcome)
}

/// An error that does not repeat a value, where that may be a secret in a place in which none belongs.
fn unrepeated(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if !args.iter().any(|arg| arg == "auth") {
        return error;
    }
    let is_word = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(arg)) if !arg.starts_with('-'));
    let kind = match error.kind() {
        ErrorKind::UnknownArgument if is_word => ContextKind::InvalidArg,
        _ if error.get(ContextKind::InvalidValue).is_some() => ContextKind::InvalidValue,
        _ => return error,
    };
    error.insert(kind, ContextValue::String("********".to_owned()));
    error
}

/// Parses the arguments: with a tree that holds the called command alone, which is what a hot command can afford,
/// and with the whole one for help, suggestions and errors.
fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    if let Some(cli) = pruned(args).and_then(|tree| parse_with(tree, args).ok()) {
        return Ok(cli);
    }
    parse_with(Cli::command(), args)
}

/// Whether arguments are a call that there is.
#[cfg(test)]
pub(crate) fn parses(args: impl Iterator<Item = OsString>) -> Result<(), clap::Error> {
    parse(&args.collect::<Vec<_>>()).map(|_| ())
}

/// The tree is not taken down again: the process ends soon, and that would cost as much as half the parsing.
fn parse_with(tree: clap::Command, args: &[OsString]) -> Result<Cli, clap::Error> {
    let mut tree = ManuallyDrop::new(tree);
    let mut matches = ManuallyDrop::new(tree.try_get_matches_from_mut(args)?);
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut tree))
}

/// The tree without the commands that were not called. clap copies every global flag into every command it knows,
/// called or not.
fn pruned(args: &[OsString]) -> Option<clap::Command> {
    let word = |at: usize| args.get(at).and_then(|arg| arg.to_str());
    let pick = |tree: clap::Command, name: &str| {
        let tree = ManuallyDrop::new(tree);
        tree.find_subcommand(name).cloned()
    };
    let first = word(1)?;
    let mut called = pick(Command::augment_subcommands(clap::Command::new("all")), first)?;
    if let Some(group) = Command::group(first) {
        let leaf = pick(group(clap::Command::new("group")), word(2)?)?;
        called = clap::Command::new(first.to_owned()).subcommand_required(true).subcommand(leaf);
    }
    Some(StateArgs::augment_args(clap::Command::new("sessile")).subcommand(called))
}

fn call(world: &World, early: &Output, args: &StateArgs, command: &Command) -> u8 {
    let mends = command.tolerates_broken_settings();
    // What runs a command keeps the small numbers for that command.
    let own = |error: Error| if command.runs_a_command() { Failure::Own(error) } else { error.into() };
    let open_here = || {
        let waiting = early.clone();
        let state = State::open(&app(), world.clone(), args.clone())?;
        let state = state.on_wait(move |wait| waiting.note(&describe_wait(wait)));
        let state = if mends { state.for_mending() } else { state };
        let state = if command.only_looks() { state.for_looking() } else { state };
        let state = match command.starts_its_session() {
            Some(starting) => state.starting(starting),
            None => state,
        };
        let state = match command.server() {
            Some(url) => {
                let flag = Origin::named(Layer::Flag, "--server");
                state.saying(remote::KEY, Setting::Text(url.to_owned()), flag)
            }
            None => state,
        };
        Ok::<_, Error>(if command.begins_a_session() {
            state.beginning_anew().for_new_session()
        } else {
            state
        })
    };
    let open = || match open_here()? {
        state if command.has_its_session_there() => there_if_meant(state, open_here),
        state => Ok(state),
    };
    let finish = |out: &Output, outcome: Outcome| match command {
        Command::Run(Lazy(run::Args { report: Some(file), .. })) => finish_in(file, out, outcome),
        _ => finish(out, outcome),
    };
    // If it cannot be settled now, the call that changes something will say why.
    let settled = |state: State| match sessile::history::settle_if_marked(&state) {
        Ok(true) => open(),
        Ok(false) | Err(_) => Ok(state),
    };
    let state = match open().and_then(settled) {
        Ok(state) => state,
        Err(error) => return finish(early, Err(own(error))),
    };
    let out = match output(&state) {
        Ok(out) => out,
        Err(_) if mends => early.clone(),
        Err(error) => return finish(early, Err(own(error))),
    };
    // Nothing in the state needs to be taken down in order.
    let cx = ManuallyDrop::new(Cx { state, out });
    let outcome = command.run(&cx);
    if let Err(Failure::Library(error) | Failure::Own(error)) = &outcome {
        cx.state.recover_after(error);
    }
    cx.out.warnings(&cx.state.take_warnings());
    finish(&cx.out, outcome)
}

/// The state for a command whose session is the server's, if the call means one: what names it is not looked up here.
fn there_if_meant(state: State, reopen: impl Fn() -> Result<State, Error>) -> Result<State, Error> {
    if let Some(said) = state.said(remote::KEY) {
        let is_meant = remote::means_server(said);
        return Ok(if is_meant { state.apart_from_sessions() } else { state });
    }
    let found = state.settings().and_then(|settings| settings.get(remote::KEY));
    match found {
        // A session of this machine may have said it.
        Ok(Some(found)) if remote::means_server(&found.value) => {
            let apart = reopen()?.saying(remote::KEY, found.value, found.origin);
            Ok(apart.apart_from_sessions())
        }
        Ok(_) => Ok(state),
        // There is none of that name here; it may be the server's.
        Err(_) => {
            let apart = reopen()?.apart_from_sessions();
            let meant = apart.settings().and_then(|settings| settings.get(remote::KEY)).ok().flatten();
            let is_meant = meant.is_some_and(|found| remote::means_server(&found.value));
            Ok(if is_meant { apart } else { state })
        }
    }
}

fn finish(out: &Output, outcome: Outcome) -> u8 {
    match outcome {
        Ok(()) => sessile::exit::DONE,
        Err(Failure::Arguments(error)) if !error.use_stderr() => {
            // Help and version are results: they go to standard output.
            finish(out, out.print(&error.render().to_string()))
        }
        Err(failure) => {
            out.failure(&app(), &failure);
            failure.exit()
        }
    }
}

/// The same, with what is to be said in a file that was made for it.
fn finish_in(file: &Path, out: &Output, outcome: Outcome) -> u8 {
    let failure = match outcome {
        Err(failure) => failure,
        done => return finish(out, done),
    };
    let told = failure.report(&app()).map(|report| {
        // Whoever wants to know has made it, and reads it when this has ended.
        let mut file = std::fs::OpenOptions::new().write(true).open(file)?;
        file.write_all(report.to_json().to_string().as_bytes())
    });
    if matches!(told, Some(Err(_))) {
        out.failure(&app(), &failure);
    }
    failure.exit()
}

fn print_help(out: &Output) -> Outcome {
    out.print(&Cli::command().render_help().to_string())
}

/// How results are printed, as the settings say.
fn output(state: &State) -> Result<Output, Error> {
    let (format, color) = (state.format()?, state.color()?);
    Ok(Output::new(state.world(), format, color, state.args().quiet, state.args().verbose))
}

/// How to print what goes wrong before the arguments and settings are understood.
fn early_output(world: &World, args: &[OsString]) -> Output {
    let words: Vec<&str> =
        args.iter().skip(1).filter_map(|arg| arg.to_str()).take_while(|arg| *arg != "--").collect();
    let said = |long: &str, short: Option<&str>, variable: &str| {
        let flag = words.iter().enumerate().rev().find_map(|(at, word)| match *word {
            word if word == long || Some(word) == short => words.get(at + 1).copied(),
            word => {
                let joined = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
                joined.or_else(|| short.and_then(|short| word.strip_prefix(short)))
            }
        });
        flag.or_else(|| world.variable(variable).and_then(|value| value.to_str()))
    };
    let format = said("--output", Some("-o"), "SESSILE_OUTPUT").and_then(Format::named).unwrap_or_default();
    let color = said("--color", None, "SESSILE_COLOR").and_then(Color::named).unwrap_or_default();
    let quiet = words.contains(&"--quiet") || words.contains(&"-q");
    Output::new(world, format, color, quiet, false)
}

fn describe_wait(wait: &sessile::files::Waiting<'_>) -> String {
    let holder = wait.holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string);
    format!(
        "waiting for {}, held by {holder}; giving up in {}",
        sessile::text::shown(wait.path.display()),
        sessile::duration::short(wait.remaining)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_of_commands_can_be_pruned() {
        let tree = Cli::command();
        let groups = tree.get_subcommands().filter(|command| command.is_subcommand_required_set());
        let names: Vec<&str> = groups.map(clap::Command::get_name).collect();
        assert!(names.contains(&"context"));
        for name in names {
            assert!(Command::group(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_pruned_tree_is_used_for_what_it_can_parse_and_for_nothing_else() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let parses =
            |line: &str| pruned(&words(line)).is_some_and(|tree| parse_with(tree, &words(line)).is_ok());
        assert!(parses("sessile context use staging --global -q"));
        assert!(parses("sessile session state get key --session s"));
        assert!(parses("sessile status --output json"));
        for line in [
            "sessile",
            "sessile contxt use",
            "sessile context",
            "sessile --quiet status",
            "sessile status -h",
        ] {
            assert!(!parses(line), "{line}");
        }
    }
}
