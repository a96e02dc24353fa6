//! `sessile conversation list`.

use crate::cli::Cx;
use crate::commands::page::cut;
use crate::error::Outcome;
use crate::help::examples;
use crate::local::LocalBackend;
use crate::output::Table;
use crate::view::ConversationView;

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
    let agent = agent.as_ref().map(|agent| agent.url.as_str());
    let more = args.limit.saturating_add(1);
    let mut found = LocalBackend { cx }.list_conversations(agent, args.all, args.cursor.as_deref(), more)?;
    cut(cx, &mut found, args.limit, |one| one.id.clone());
    cx.out.list(&found, || {
        if found.is_empty() {
            return "there are no conversations\n".to_owned();
        }
        let mut table = Table::new(&ConversationView::COLUMNS);
        for one in &found {
            table.row(&one.cells(), None);
        }
        table.render(&cx.out)
    })
}
