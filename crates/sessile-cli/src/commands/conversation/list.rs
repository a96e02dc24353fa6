//! `sessile conversation list`.

use serde_json::Value;
use sessile::conversation::Conversation;
use sessile::text::shown;

use super::session_of;
use crate::agent_session::described_anywhere;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;

/// List conversations, the last used first
///
/// Those of this session; where there is none, or with --all, those of every session. As JSON each tells in
/// has_credentials whether the vault or the session's context has a credential for its agent; null if the vault would
/// have to ask somebody.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile conversation list"
    "sessile conversation list --all --agent https://agent.example --output json"
))]
pub struct Args {
    /// Of every session
    #[arg(long)]
    all: bool,

    /// Only those with this agent: its name or URL
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    /// Go on after this one, the last id of the page before
    #[arg(long, value_name = "ID")]
    cursor: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let agent = args.agent.as_deref().map(|text| cx.state.agent(text)).transpose()?;
    let session = session_of(&cx.state, args.all)?;
    let all = match cx.state.conversations_to_look_at()? {
        Some(all) => all.list(session.as_deref(), agent.as_ref().map(|agent| agent.url.as_str()))?,
        None => Vec::new(),
    };
    let after = match &args.cursor {
        Some(cursor) => all.iter().position(|one| one.id == *cursor).map_or(all.len(), |at| at + 1),
        None => 0,
    };
    let page: Vec<Conversation> = all.into_iter().skip(after).take(args.limit).collect();
    let found: Vec<Value> = described_anywhere(cx, &page);
    cx.out.list(&found, || {
        if found.is_empty() {
            return "there are no conversations\n".to_owned();
        }
        let mut table = Table::new(&["ID", "NAME", "AGENT", "CONTEXT", "TASK", "STATE", "SAID", "LAST USED"]);
        for one in &found {
            let cell = |key: &str| shown(one[key].as_str().unwrap_or("-"));
            table.row(
                &[
                    cell("id"),
                    cell("name"),
                    cell("agent_url"),
                    cell("context_id"),
                    cell("task_id"),
                    cell("task_state"),
                    one["items"].to_string(),
                    cell("used_at"),
                ],
                None,
            );
        }
        table.render(&cx.out)
    })
}
