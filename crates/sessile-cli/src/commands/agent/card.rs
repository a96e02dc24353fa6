//! `sessile agent card`.

use serde_json::json;

use super::named;
use crate::agent_session::{AgentArgs, agent_error};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Print an agent's card
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent card http://localhost:8738" "sessile agent card research --extended"))]
pub struct Args {
    /// The agent: its name or URL
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    /// Print the extended card, for authenticated callers
    #[arg(long)]
    extended: bool,

    /// Print the card unchanged, without "source"
    #[arg(long)]
    raw: bool,

    #[command(flatten)]
    reach: AgentArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let named = named(cx, args.agent.as_deref(), &args.reach)?;
    let connection = args.reach.connection(cx, &named)?;
    let card = if args.extended {
        let card = connection.agent(cx)?.extended_card();
        card.map_err(|error| agent_error(&named.url, None, error))?
    } else {
        connection.card()?
    };
    if args.raw {
        return cx.out.protocol_json(&card.raw, false);
    }
    // Whatever stands in it, it is the agent's word.
    let mut json = card.raw.clone();
    json["source"] = json!("agent");
    cx.out.result(&json, || sessile::text::json_safe(&format!("{:#}", card.raw)) + "\n")
}
