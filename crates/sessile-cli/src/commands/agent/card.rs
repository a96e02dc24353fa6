//! `sessile agent card`.

use serde_json::json;

use super::named;
use crate::agent_session::{AgentArgs, agent_error};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Print an agent's card
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent card http://localhost:8000" "sessile agent card research --extended"))]
pub struct Args {
    /// The agent: its name or URL
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    /// The card that is for those whom the agent knows
    #[arg(long)]
    extended: bool,

    #[command(flatten)]
    reach: AgentArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let named = named(cx, args.agent.as_deref(), &args.reach)?;
    let connection = args.reach.connection(&cx.state, &named)?;
    let card = if args.extended {
        let card = connection.agent(cx)?.extended_card();
        card.map_err(|error| agent_error(&named.url, None, error))?
    } else {
        connection.card()?
    };
    // Whatever stands in it, it is the agent's word.
    let mut json = card.raw.clone();
    json["source"] = json!("agent");
    cx.out.result(&json, || sessile::text::json_safe(&format!("{:#}", card.raw)) + "\n")
}
