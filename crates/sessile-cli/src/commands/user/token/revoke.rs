//! `sessile user token revoke`.

use serde_json::json;
use sessile::text::shown;

use crate::cli::Cx;
use crate::commands::service_store::StoreArgs;
use crate::commands::user::with_store;
use crate::error::Outcome;
use crate::help::examples;

/// Revoke a token
///
/// The service rejects the token from now on.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile user token revoke 0199c1d2-7a52-7f31-8a52-6f1f2a9d3b10"))]
pub struct Args {
    /// Id of the token
    #[arg(value_name = "TOKEN-ID")]
    id: String,

    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    with_store(cx, &args.store, async |db| sessile_server::users::revoke(db, &args.id).await)?;
    cx.changed(json!({ "id": args.id }), || format!("revoked token {}\n", shown(&args.id)))
}
