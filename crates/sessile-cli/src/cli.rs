//! The command tree, and the function of each command in it.

use clap::{Parser, Subcommand};
use sessile::StateArgs;

use crate::commands::{
    agent, auth, backup, chat, completions, config, context, conversation, demo, doctor, env, help, history,
    hook, import, lock, man, manifest, mcp, message, probe, prompt, run, serve, session, setup, shell, skill,
    status, task, tool, trust, tui, undo, user,
};
pub use crate::cx::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::lazy_command::{Lazy, LazyGroup};
use crate::logging::LogArgs;

/// Isolate the state of command-line tools per session and context
#[derive(Debug, Parser)]
#[command(
    name = "sessile",
    version,
    max_term_width = 110,
    disable_help_subcommand = true,
    after_help = examples_and_precedence!(
        "sessile demo                                see the problem, and the cure"
        "sessile run --context staging -- claude     an agent with state of its own"
        "sessile context create staging              create a context"
        "sessile context use staging                 select it, in this terminal only"
        "sessile status --output json                show the current context, and why"
    )
)]
pub struct Cli {
    /// Global flags.
    #[command(flatten)]
    pub state: StateArgs,

    /// Flags of the log.
    #[command(flatten)]
    pub log: LogArgs,

    /// The command.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[command(subcommand_help_heading = "Commands")]
pub enum Command {
    /// Run a command with isolated tool state
    #[command(visible_alias = "exec")]
    Run(Lazy<run::Args>),
    /// Open a shell in a session
    Shell(Lazy<shell::Args>),
    /// Print the variables of a session
    Env(Lazy<env::Args>),
    /// Keep a shell in the selected session and context
    Hook(Lazy<hook::Args>),
    /// Print the session and the context for a prompt
    Prompt(Lazy<prompt::Args>),
    /// Create, select and guard contexts
    Context(LazyGroup<context::Command>),
    /// Create contexts from the targets of your tools
    Import(Lazy<import::Args>),
    /// Read and change settings, each with its origin
    Config(LazyGroup<config::Command>),
    /// Start, list and stop sessions
    Session(LazyGroup<session::Command>),
    /// Manage credentials in the vault
    Auth(LazyGroup<auth::Command>),
    /// Name agents and show their cards
    Agent(LazyGroup<agent::Command>),
    /// Send messages to A2A agents
    Message(LazyGroup<message::Command>),
    /// Chat with an agent
    Chat(Box<Lazy<chat::Args>>),
    /// Show, watch and cancel tasks of agents
    Task(LazyGroup<task::Command>),
    /// Show, rename and delete conversations with agents
    Conversation(LazyGroup<conversation::Command>),
    /// Test a service for leaks between users under load
    Probe(Lazy<probe::Args>),
    /// Serve Sessile to MCP clients
    Mcp(Lazy<mcp::Args>),
    /// Print instructions for coding agents
    Skill(Lazy<skill::Args>),
    /// Set up a coding agent: MCP server, skill, sessions
    Setup(Lazy<setup::Args>),
    /// Acquire and release named locks
    Lock(LazyGroup<lock::Command>),
    /// Serve sessions, values and locks to many users
    Serve(Lazy<serve::Args>),
    /// Manage users and tokens of the session service
    User(LazyGroup<user::Command>),
    /// Show the history of state changes
    History(Lazy<history::Args>),
    /// Undo an operation
    Undo(Lazy<undo::Args>),
    /// Back up the state database, or restore a backup
    Backup(Lazy<backup::Args>),
    /// Trust a project's settings, contexts and tools
    Trust(Lazy<trust::Args>),
    /// Show the current context, account and session
    Status(Lazy<status::Args>),
    /// Show sessions, contexts, locks and history on one screen
    Tui(Lazy<tui::Args>),
    /// Check the installation and its state for problems
    Doctor(Lazy<doctor::Args>),
    /// Show tool profiles, and check that tools are isolated
    Tool(LazyGroup<tool::Command>),
    /// See parallel agents with and without Sessile
    Demo(Lazy<demo::Args>),
    /// Describe all commands and error codes for programs
    Manifest(Lazy<manifest::Args>),
    /// Print a shell's completion script
    Completions(Lazy<completions::Args>),
    /// Print the manual page, or write all of them to a directory
    Man(Lazy<man::Args>),
    /// Show help on a command, or on the global options
    Help(Lazy<help::Args>),
}

impl Command {
    /// Function that adds the commands of a group to a tree.
    pub(crate) fn group(name: &str) -> Option<fn(clap::Command) -> clap::Command> {
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

    /// The server that the command line names.
    pub(crate) fn server(&self) -> Option<&str> {
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

    /// The bindings that the command line names instead of a context.
    pub(crate) fn bindings(&self) -> &[String] {
        match self {
            Command::Run(Lazy(args)) => &args.binding.bind,
            Command::Shell(Lazy(args)) => &args.binding.bind,
            Command::Session(LazyGroup(session::Command::Start(Lazy(args)))) => &args.binding.bind,
            _ => &[],
        }
    }

    /// Whether the command line demands a new session of the name that it gives: `--new`.
    pub(crate) fn restarts_session(&self) -> bool {
        match self {
            Command::Run(Lazy(args)) => args.restarts_session(),
            Command::Shell(Lazy(args)) => args.restarts_session(),
            _ => false,
        }
    }

    /// Whether the command names its session itself, for `--verbose`, since it may start one.
    pub(crate) fn describes_itself(&self) -> bool {
        matches!(self, Command::Run(_) | Command::Shell(_))
    }

    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Run(Lazy(args)) => run::run(args, cx),
            Command::Shell(Lazy(args)) => shell::run(args, cx),
            Command::Env(Lazy(args)) => env::run(args, cx),
            Command::Hook(Lazy(args)) => hook::run(args, cx),
            Command::Prompt(Lazy(args)) => prompt::run(args, cx),
            Command::Tool(LazyGroup(command)) => command.run(cx),
            Command::Context(LazyGroup(command)) => command.run(cx),
            Command::Import(Lazy(args)) => import::run(args, cx),
            Command::Config(LazyGroup(command)) => command.run(cx),
            Command::Session(LazyGroup(command)) => command.run(cx),
            Command::Auth(LazyGroup(command)) => command.run(cx),
            Command::Agent(LazyGroup(command)) => command.run(cx),
            Command::Conversation(LazyGroup(command)) => command.run(cx),
            Command::Message(LazyGroup(command)) => command.run(cx),
            Command::Chat(args) => chat::run(&args.0, cx),
            Command::Probe(Lazy(args)) => probe::run(args, cx),
            Command::Mcp(Lazy(args)) => mcp::run(args, cx),
            Command::Skill(Lazy(args)) => skill::run(args, cx),
            Command::Setup(Lazy(args)) => setup::run(args, cx),
            Command::Task(LazyGroup(command)) => command.run(cx),
            Command::Lock(LazyGroup(command)) => command.run(cx),
            Command::Serve(Lazy(args)) => serve::run(args, cx),
            Command::User(LazyGroup(command)) => command.run(cx),
            Command::History(Lazy(args)) => history::run(args, cx),
            Command::Undo(Lazy(args)) => undo::run(args, cx),
            Command::Backup(Lazy(args)) => backup::run(args, cx),
            Command::Trust(Lazy(args)) => trust::run(args, cx),
            Command::Status(Lazy(args)) => status::run(args, cx),
            Command::Tui(Lazy(args)) => tui::run(args, cx),
            Command::Doctor(Lazy(args)) => doctor::run(args, cx),
            Command::Demo(Lazy(args)) => demo::run(args, cx),
            Command::Manifest(Lazy(args)) => manifest::run(args, cx),
            Command::Completions(Lazy(args)) => completions::run(args, cx),
            Command::Man(Lazy(args)) => man::run(args, cx),
            Command::Help(Lazy(args)) => help::run(args, &cx.out, cx.out.is_verbose()),
        }
    }
}
