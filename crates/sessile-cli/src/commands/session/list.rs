//! `sessile session list`.

use std::time::Duration;

use sessile::args::parse_duration;
use sessile::session::lifecycle::Lifecycle;

use crate::backend::{SessionFilter, StateBackend};
use crate::cli::Cx;
use crate::commands::page::{WideArgs, cut};
use crate::error::Outcome;
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::remote::ServerArgs;
use crate::view::{SessionListing, SessionView};

/// List sessions, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile session list"
    "sessile session list --state all --label team=web --output json"
    "sessile session list --of-context staging --older-than 1h"
    "sessile session list --conversations --output json"
))]
pub struct Args {
    /// List live, expired, ended or all sessions
    #[arg(long, value_name = "STATE", default_value = "live", value_parser = ["live", "expired", "ended", "all"])]
    state: String,

    /// List only sessions of this context
    #[arg(long, value_name = "CONTEXT")]
    of_context: Option<String>,

    /// List only sessions with this label
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,

    /// List only sessions started longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Option<Duration>,

    /// List only sessions started within this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    newer_than: Option<Duration>,

    /// Also list each session's agents
    #[arg(long)]
    conversations: bool,

    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    /// Continue after this id, the last one of the previous page
    #[arg(long, value_name = "ID")]
    cursor: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    wide: WideArgs,
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
    let backend = StateBackend::resolve(cx)?;
    // A service finds a session by its whole id or its name only.
    let is_wide = args.wide.wide || matches!(backend, StateBackend::Remote(_));
    let mut listing = backend.list_sessions(&filter, args.conversations)?;
    cut(cx, &mut listing.sessions, args.limit, |session| session.id.clone());
    cx.out.list(&listing.sessions, || text(&listing, args, cx, is_wide))
}

fn text(listing: &SessionListing, args: &Args, cx: &Cx, is_wide: bool) -> String {
    let with_conversations = args.conversations;
    if listing.sessions.is_empty() {
        return "no sessions found\n".to_owned();
    }
    let mut columns = vec![""];
    columns.extend(SessionView::COLUMNS);
    columns.extend(with_conversations.then_some("CONVERSATIONS"));
    let mut table = Table::new(&columns).with_optional(&["OWNER", "IDLE"]);
    for session in &listing.sessions {
        let is_current = listing.current.as_ref() == Some(&session.id);
        let mut cells = vec![if is_current { "*".to_owned() } else { String::new() }];
        cells.extend(session.cells());
        cells.extend(with_conversations.then(|| session.conversation_cell()));
        table.row(&cells, is_current.then_some(Tone::Strong));
    }
    table.render_fitted(&cx.out, is_wide)
}
