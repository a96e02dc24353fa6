//! `sessile user disable`.

use serde_json::json;
use sessile::text::shown;
use sessile_server::users;

use super::with_store;
use crate::cli::Cx;
use crate::commands::service_store::StoreArgs;
use crate::error::Outcome;
use crate::help::examples;

/// Disable or enable a user
///
/// The service rejects the tokens of a disabled user. The user's data stays.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile user disable ann" "sessile user disable ann --undo"))]
pub struct Args {
    /// Name of the user
    #[arg(value_name = "USER")]
    user: String,

    /// Enable the user again
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
        let verb = if args.undo { "enabled" } else { "disabled" };
        format!("{verb} user {}\n", shown(&args.user))
    })
}
