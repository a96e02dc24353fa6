//! `sessile session list`.

use std::time::Duration;

use sessile::args::parse_duration;
use sessile::session::lifecycle::Lifecycle;

use crate::backend::{SessionFilter, StateBackend};
use crate::cli::Cx;
use crate::commands::page::cut;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::remote::ServerArgs;
use crate::view::{SessionListing, SessionView};

/// List sessions, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile session list"
    "sessile session list --state all --label team=web --output json"
    "sessile session list --of-context staging --older-than 1h"
    "sessile session list --conversations --output json"
))]
pub struct Args {
    /// Which sessions: live, expired, ended or all
    #[arg(long, value_name = "STATE", default_value = "live", value_parser = ["live", "expired", "ended", "all"])]
    state: String,

    /// Only those pinned to this context
    #[arg(long, value_name = "CONTEXT")]
    of_context: Option<String>,

    /// Only those with this label
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,

    /// Only those started longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Option<Duration>,

    /// Only those started not longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    newer_than: Option<Duration>,

    /// Tell of each with which agents it talks
    #[arg(long)]
    conversations: bool,

    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    /// Go on after this one, the last id of the page before
    #[arg(long, value_name = "ID")]
    cursor: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let states = [Lifecycle::Live, Lifecycle::Expired, Lifecycle::Ended];
    let filter = SessionFilter {
        state: states.into_iter().find(|state| state.as_str() == args.state),
        context: args.of_context.as_deref(),
        labels: &args.label,
        older_than: args.older_than,
        newer_than: args.newer_than,
        limit: args.limit.saturating_add(1),
        cursor: args.cursor.as_deref(),
    };
    let mut listing = StateBackend::resolve(cx)?.list_sessions(&filter, args.conversations)?;
    cut(cx, &mut listing.sessions, args.limit, |session| session.id.clone());
    cx.out.list(&listing.sessions, || text(&listing, args.conversations, cx))
}

fn text(listing: &SessionListing, with_conversations: bool, cx: &Cx) -> String {
    if listing.sessions.is_empty() {
        return "there are no such sessions\n".to_owned();
    }
    let mut columns = vec![""];
    columns.extend(SessionView::COLUMNS);
    columns.extend(with_conversations.then_some("CONVERSATIONS"));
    let mut table = Table::new(&columns);
    for session in &listing.sessions {
        let is_current = listing.current.as_ref() == Some(&session.id);
        let mut cells = vec![if is_current { "*".to_owned() } else { String::new() }];
        cells.extend(session.cells());
        cells.extend(with_conversations.then(|| session.conversation_cell()));
        table.row(&cells, is_current.then_some(Tone::Strong));
    }
    table.render(&cx.out)
}
