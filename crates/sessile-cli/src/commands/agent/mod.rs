//! `sessile agent`: agents that have a name.

pub mod add;
pub mod card;
pub mod list;
pub mod remove;
pub mod show;
pub mod validate;

use sessile::Error;
use sessile::agents::Agent;
use sessile::error::UsageError;
use sessile_wire::a2a::AgentCard;

use crate::agent_session::AgentArgs;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::lazy_command::Lazy;

/// Name agents, and look at their cards
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile agent add research https://agent.example --global"
    "sessile agent list"
))]
pub enum Command {
    /// Give an agent a name
    Add(Lazy<add::Args>),
    /// List the agents that have a name
    List(Lazy<list::Args>),
    /// Show an agent: what it is called here, and what it says about itself
    Show(Lazy<show::Args>),
    /// Print an agent's card
    Card(Lazy<card::Args>),
    /// Check an agent's card
    Validate(Lazy<validate::Args>),
    /// Take an agent's name away
    Remove(Lazy<remove::Args>),
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
        let card = self.reach.connection(&cx.state, &agent)?.card()?;
        Ok((agent, card))
    }
}

/// The agent that is meant: as said in its place, or with --url.
fn named(cx: &Cx, agent: Option<&str>, reach: &AgentArgs) -> Result<Agent, Error> {
    let text = agent.or(reach.url.as_deref());
    cx.state.agent(text.ok_or_else(|| UsageError::Arguments("say which agent: its name or URL".into()))?)
}
