//! `sessile agent`: agents that have a name.

pub mod add;
pub mod card;
pub mod demo;
pub mod list;
pub mod listen;
pub mod remove;
pub mod show;
pub mod use_agent;
pub mod validate;

use sessile::agents::Agent;
use sessile::error::UsageError;
use sessile_wire::a2a::AgentCard;

use crate::agent_session::{AgentArgs, resolve_agent};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::lazy_command::Lazy;

/// Manage named agents and check their cards
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile agent add research https://agent.example --global"
    "sessile agent list"
    "sessile agent demo"
))]
pub enum Command {
    /// Add a named agent
    Add(Lazy<add::Args>),
    /// List the named agents
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Show an agent's name, settings and card
    Show(Lazy<show::Args>),
    /// Print an agent's card
    Card(Lazy<card::Args>),
    /// Check an agent's card
    Validate(Lazy<validate::Args>),
    /// Remove a named agent
    #[command(visible_alias = "rm")]
    Remove(Lazy<remove::Args>),
    /// Set the default agent for messages
    Use(Lazy<use_agent::Args>),
    /// Receive push notifications of agents
    Listen(Lazy<listen::Args>),
    /// Start a scripted agent on this machine, for trials
    Demo(Lazy<demo::Args>),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Add(Lazy(args)) => add::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Show(Lazy(args)) => show::run(args, cx),
            Command::Card(Lazy(args)) => card::run(args, cx),
            Command::Validate(Lazy(args)) => validate::run(args, cx),
            Command::Remove(Lazy(args)) => remove::run(args, cx),
            Command::Use(Lazy(args)) => use_agent::run(args, cx),
            Command::Listen(Lazy(args)) => listen::run(args, cx),
            Command::Demo(Lazy(args)) => demo::run(args, cx),
        }
    }
}

/// Agent of a command, and how it is reached.
#[derive(Debug, clap::Args)]
pub struct AgentTarget {
    /// The agent: its name or URL
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    #[command(flatten)]
    reach: AgentArgs,
}

impl AgentTarget {
    /// Agent and its current card.
    fn fetch_card(&self, cx: &Cx) -> Result<(Agent, AgentCard), Failure> {
        let agent = named(cx, self.agent.as_deref(), &self.reach)?;
        let card = self.reach.connection(cx, &agent)?.card()?;
        Ok((agent, card))
    }
}

/// Agent of the positional argument or of `--url`.
fn named(cx: &Cx, agent: Option<&str>, reach: &AgentArgs) -> Result<Agent, Failure> {
    let text = agent.or(reach.url.as_deref());
    resolve_agent(cx, text.ok_or_else(|| UsageError::Arguments("specify the agent by name or URL".into()))?)
}
