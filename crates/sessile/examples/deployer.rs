//! `deployer`: another command-line tool, whose contexts, settings, guards and `status` are this library's.
//!
//! Its name alone gives it `DEPLOYER_CONTEXT`, `~/.config/deployer`, `.deployer/` in a project, and a store of
//! its own. Try it: `cargo run -p sessile --example deployer -- status --show-state-files`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the library never prints; a program does")]

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use sessile::args::OutputFormat;
use sessile::context::{SwitchScope, SwitchTarget, switch};
use sessile::error::SettingsError;
use sessile::run::{IsolationArgs, RunRequest, RunSessionArgs};
use sessile::settings::{Definition, SettingKind};
use sessile::{App, Error, State, StateArgs, Status, World};

/// The settings it has beside those that the library brings.
const SETTINGS: &[Definition] = &[
    Definition::new("region", SettingKind::Text, "Where to deploy to.").with_default("eu-1"),
    Definition::new("endpoint", SettingKind::Text, "Whom to ask.").needing_trust(),
];

/// Deploy a version of a service
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    state: StateArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the current context and where it comes from
    Status {
        /// Also list every file that is read or kept
        #[arg(long)]
        show_state_files: bool,
    },
    /// Select a context
    #[command(subcommand)]
    Context(ContextCommand),
    /// Deploy to the current context
    Deploy {
        /// What to deploy
        version: String,
    },
    /// Run a command in a session, with its own copies of the tools' state
    Exec(Box<ExecArgs>),
}

#[derive(Args)]
struct ExecArgs {
    #[command(flatten)]
    session: RunSessionArgs,
    #[command(flatten)]
    isolation: IsolationArgs,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    words: Vec<OsString>,
}

#[derive(Subcommand)]
enum ContextCommand {
    /// Select a context for this terminal
    Use {
        /// Name
        name: String,
        /// For this user, everywhere
        #[arg(long)]
        global: bool,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let app = App::new("deployer").with_settings(SETTINGS);
    let outcome = State::open(&app, World::from_process(), cli.state).and_then(|state| {
        let printed = run(&state, &cli.command);
        state.take_warnings().iter().for_each(|warning| eprint!("{warning}"));
        printed
    });
    match outcome {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprint!("{}", error.report(&app));
            ExitCode::from(error.code().exit())
        }
    }
}

fn run(state: &State, command: &Command) -> Result<String, Error> {
    match command {
        Command::Status { show_state_files } => {
            let status = Status::of(state, *show_state_files)?;
            Ok(match state.format()? {
                OutputFormat::Text => status.to_string(),
                OutputFormat::Json | OutputFormat::Jsonl => format!("{}\n", serde_json::json!(status)),
            })
        }
        Command::Context(ContextCommand::Use { name, global }) => {
            let switched =
                switch(state, &SwitchTarget::Named(name.parse()?), global.then_some(SwitchScope::Global))?;
            let new = switched.new.map(|new| new.to_string()).unwrap_or_default();
            Ok(format!("context {new} selected in {}\n", switched.place))
        }
        Command::Deploy { version } => {
            // It exists, it is trusted, and its guard lets this call through; or this is the error.
            let context = state.contexts().require()?;
            let region = state
                .settings()?
                .get("region")?
                .ok_or(SettingsError::NotSet { key: "region".into(), path: None })?;
            Ok(format!("deployed {version} in context {}, region {}\n", context.name, region.value))
        }
        Command::Exec(args) => {
            let ExecArgs { session, isolation, words } = &**args;
            let request = RunRequest { operation: "exec", words, session, isolation };
            if state.session()?.is_some() {
                // Returns only if it fails: this process becomes the command.
                return sessile::run::exec(state, &request, &()).map(|never| match never {});
            }
            Ok(format!("{}\n", sessile::run::status(state, &request, &())?))
        }
    }
}
