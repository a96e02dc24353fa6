//! `sessile agent`: agents that have a name.

pub mod add;
pub mod card;
pub mod list;
pub mod remove;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy::Lazy;

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
    Show(Lazy<card::ShowArgs>),
    /// Print an agent's card
    Card(Lazy<card::Args>),
    /// Check an agent's card
    Validate(Lazy<card::ValidateArgs>),
    /// Take an agent's name away
    Remove(Lazy<remove::Args>),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Add(Lazy(args)) => add::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Show(Lazy(args)) => card::show(args, cx),
            Command::Card(Lazy(args)) => card::card(args, cx),
            Command::Validate(Lazy(args)) => card::validate(args, cx),
            Command::Remove(Lazy(args)) => remove::run(args, cx),
        }
    }
}
