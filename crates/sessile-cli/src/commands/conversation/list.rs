//! `sessile conversation list`.

use crate::cli::Cx;
use crate::commands::page::{WideArgs, cut};
use crate::error::Outcome;
use crate::help::examples;
use crate::local::LocalBackend;
use crate::output::Table;
use crate::view::ConversationView;

/// List conversations, most recently used first
///
/// Lists the conversations of this session; outside a session, or with --all, those of every session, live or ended. In JSON,
/// has_credentials states whether the vault or the session's context has a credential for the agent. It is null if
/// the vault is locked.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile conversation list"
    "sessile conversation list --all --agent https://agent.example --output json"
))]
pub struct Args {
    /// List the conversations of every session
    #[arg(long)]
    all: bool,

    /// List only conversations with this agent, by name or URL
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    /// Continue after this id, the last one of the previous page
    #[arg(long, value_name = "ID")]
    cursor: Option<String>,

    #[command(flatten)]
    wide: WideArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let agent = args.agent.as_deref().map(|text| cx.state.agent(text)).transpose()?;
    let agent = agent.as_ref().map(|agent| agent.url.as_str());
    let more = args.limit.saturating_add(1);
    let mut found = LocalBackend { cx }.list_conversations(agent, args.all, args.cursor.as_deref(), more)?;
    cut(cx, &mut found, args.limit, |one| one.id.clone());
    if cx.out.is_text() && !args.all {
        let others = LocalBackend { cx }.count_of_other_sessions(agent)?;
        if others > 0 {
            cx.out.note(&format!("{others} more of other sessions in this context: --all"));
        }
    }
    cx.out.list(&found, || {
        if found.is_empty() {
            return "no conversations\n".to_owned();
        }
        let mut table =
            Table::new(&ConversationView::COLUMNS).with_optional(&["TASK", "CONTEXT", "MESSAGES"]);
        for one in &found {
            table.row(&one.cells(), None);
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}
