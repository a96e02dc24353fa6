//! The command tree, and the function of each command in it.

use clap::{Parser, Subcommand};
use sessile::StateArgs;

use crate::commands::{
    agent, auth, backup, completions, config, context, conversation, demo, doctor, env, history, hook,
    import, lock, man, manifest, mcp, message, probe, prompt, run, serve, session, shell, skill, status,
    task, tool, trust, undo, user,
};
pub use crate::cx::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::lazy_command::{Lazy, LazyGroup};
use crate::logging::LogArgs;

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
    /// Create contexts for what your tools already have
    Import(Lazy<import::Args>),
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

impl Command {
    /// The function that adds the commands of a group to a tree.
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
            Command::Run(Lazy(args)) => args.starts_anew(),
            Command::Shell(Lazy(args)) => args.starts_anew(),
            _ => false,
        }
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
