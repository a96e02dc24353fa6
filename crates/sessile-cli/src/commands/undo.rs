//! `sessile undo`: take the last change back.

use serde_json::json;
use sessile::history::undo;
use sessile::text::shown;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Undo an operation
///
/// Without an id, undoes the last operation of this session or terminal; elsewhere the id is required. Refused if a
/// later operation changed the same thing. Undoing an undo repeats the operation. `history` marks operations that
/// cannot be undone.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile undo" "sessile undo 12"))]
pub struct Args {
    /// Id of the operation, from `history`
    #[arg(value_name = "ID")]
    id: Option<i64>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (undone, by) = undo(&cx.state, args.id)?;
    cx.changed(
        json!({ "undone": undone.id, "operation": by, "command": undone.command, "subject": undone.subject }),
        || format!("undid operation {}: {} {}\n", undone.id, undone.command, shown(&undone.subject)),
    )
}
