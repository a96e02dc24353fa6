//! `sessile history`: state changes with their time and actor.

use std::time::Duration;

use clap::Subcommand;
use sessile::args::parse_duration;
use sessile::history;

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::commands::page::{WideArgs, cut};
use crate::error::Outcome;
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::remote::ServerArgs;
use crate::view::{OperationView, operation_text};

/// Show the history of state changes
///
/// Each change of state is an operation with the old and the new value. With --session, lists the operations of that session and
/// the commands that `run` and `shell` started in it, for as long as the session lives. Secret arguments are hidden.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = examples!(
        "sessile history --since 1h"
        "sessile history --session deploy"
        "sessile history show 12"
    )
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// List only operations of this last period, e.g. 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,

    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,

    /// Continue after this id, the last one of the previous page
    #[arg(long, value_name = "ID")]
    cursor: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    wide: WideArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show one operation in full
    #[command(after_help = examples!("sessile history show 12"))]
    Show {
        /// Id of the operation
        #[arg(value_name = "ID")]
        id: i64,
    },
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(Command::Show { id }) = args.command {
        return show(id, cx);
    }
    let now = cx.state.world().now().as_millisecond();
    let since_ms = args.since.map(|since| now - i64::try_from(since.as_millis()).unwrap_or(now));
    let more = args.limit.saturating_add(1);
    let mut operations = StateBackend::resolve(cx)?.history(since_ms, more, args.cursor.as_deref())?;
    cut(cx, &mut operations, args.limit, OperationView::id);
    cx.out.list(&operations, || {
        if operations.is_empty() {
            return "no operations found\n".to_owned();
        }
        let mut table = Table::new(&OperationView::COLUMNS);
        for operation in &operations {
            table.row(&operation.cells(), operation.is_undone().then_some(Tone::Faint));
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}

fn show(id: i64, cx: &Cx) -> Outcome {
    let operation = history::find(&cx.state, id)?;
    cx.out.result(&operation, || operation_text(&operation))
}
