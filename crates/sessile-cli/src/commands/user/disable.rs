//! `sessile user disable`.

use serde_json::json;
use sessile::text::shown;
use sessile_server::users;

use super::with_store;
use crate::cli::Cx;
use crate::commands::service_store::StoreArgs;
use crate::error::Outcome;
use crate::help::examples;

/// Shut a user out, or let them in again
///
/// Their tokens count for nothing meanwhile; what they have stays.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile user disable ann" "sessile user disable ann --undo"))]
pub struct Args {
    /// The user
    #[arg(value_name = "USER")]
    user: String,

    /// Let them in again
    #[arg(long)]
    undo: bool,

    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    with_store(cx, &args.store, async |db| {
        users::disable(db, &users::existing(&args.user)?, !args.undo).await
    })?;
    cx.changed(json!({ "user": args.user, "disabled": !args.undo }), || {
        let what = if args.undo { "is let in again" } else { "is shut out" };
        format!("user {} {what}\n", shown(&args.user))
    })
}
