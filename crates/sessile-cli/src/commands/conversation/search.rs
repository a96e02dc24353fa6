//! `sessile conversation search`.

use sessile::text::shown;

use crate::cli::Cx;
use crate::commands::page::WideArgs;
use crate::error::Outcome;
use crate::help::examples;
use crate::local::LocalBackend;
use crate::output::Table;
use crate::view::FoundMessage;

/// Find messages that contain a text
///
/// Case does not matter. Searches the conversations of this session; outside a session, or with --all, those of every
/// session.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile conversation search rollback"
    "sessile conversation search deploy --all --output json"
))]
pub struct Args {
    /// Text to find
    #[arg(value_name = "TEXT")]
    text: String,

    /// Search the conversations of every session
    #[arg(long)]
    all: bool,

    /// Show at most this many messages
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,

    #[command(flatten)]
    wide: WideArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut found =
        LocalBackend { cx }.search_conversations(&args.text, args.all, args.limit.saturating_add(1))?;
    if found.len() > args.limit {
        found.truncate(args.limit);
        cx.out.note(&format!("more than {} messages contain the text: pass --limit", args.limit));
    }
    cx.out.list(&found, || {
        if found.is_empty() {
            return format!("no message contains {}\n", sessile::text::quoted(&args.text));
        }
        let mut table = Table::new(&FoundMessage::COLUMNS);
        for one in &found {
            table.row(&one.cells(&args.text).map(shown), None);
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}
