//! `sessile undo`: take the last change back.

use serde_json::json;
use sessile::history::undo;
use sessile::text::shown;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Undo an operation
///
/// Without a number it undoes the last one of this session or terminal; elsewhere the number must be given. It
/// refuses if what the operation changed was changed again since. Undoing an undo does the operation again.
/// What cannot be undone is marked in `history`.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile undo" "sessile undo 12"))]
pub struct Args {
    /// The operation, as `history` numbers it
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
