//! `sessile conversation clear`.

use serde_json::json;
use sessile::conversation::Conversation;
use sessile::error::UsageError;

use crate::cli::Cx;
use crate::counted::counted;
use crate::error::Outcome;
use crate::help::examples;
use crate::local::{find_conversation, session_filter};
use crate::terminal_prompt;

/// Delete conversations
///
/// The conversations are deleted on this machine only; the agent keeps its own. Credentials stay in the vault.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile conversation clear research"
    "sessile conversation clear --agent https://agent.example --yes"
    "sessile conversation clear --all"
))]
pub struct Args {
    /// Names or ids of the conversations
    #[arg(value_name = "CONVERSATION")]
    which: Vec<String>,

    /// Delete the conversations with this agent, by name or URL
    #[arg(long, visible_alias = "url", value_name = "AGENT", conflicts_with = "which")]
    agent: Option<String>,

    /// Delete all conversations of this session; outside a session, of every session
    #[arg(long, conflicts_with_all = ["which", "agent"])]
    all: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut all = cx.state.conversations()?;
    let session = session_filter(&cx.state, false)?;
    let chosen: Vec<Conversation> = if let Some(agent) = &args.agent {
        all.list(session.as_deref(), Some(&cx.state.agent(agent)?.url))?
    } else if args.all {
        all.list(session.as_deref(), None)?
    } else {
        // All are found before the question, so that a typo forgets nothing.
        let find = |text: &String| find_conversation(&cx.state, &all, Some(text));
        args.which.iter().map(find).collect::<Result<_, _>>()?
    };
    if chosen.is_empty() && args.which.is_empty() && args.agent.is_none() && !args.all {
        return Err(UsageError::Arguments("specify CONVERSATION, --agent AGENT or --all".into()).into());
    }
    if !chosen.is_empty() {
        terminal_prompt::confirm(
            &cx.state,
            &format!("delete {} with all messages", counted(chosen.len(), "conversation")),
        )?;
    }
    let forgotten = all.forget(&chosen)?;
    for one in &chosen {
        sessile::history::record(&cx.state, "conversation clear", one.label(), "the messages are deleted")?;
    }
    let ids: Vec<&str> = chosen.iter().map(|one| one.id.as_str()).collect();
    cx.changed(json!({ "cleared": ids }), || format!("deleted {}\n", counted(forgotten, "conversation")))
}
