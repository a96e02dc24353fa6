//! `sessile user add`.

use serde_json::json;
use sessile::text::shown;

use super::with_place;
use crate::cli::Cx;
use crate::commands::service_store::StoreArgs;
use crate::error::Outcome;
use crate::help::examples;

/// Add a user
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile user add ann" "sessile user add ann --store /srv/sessile/service.db"))]
pub struct Args {
    /// Name of the user: letters, digits, `.`, `_`, `-`, `@`
    #[arg(value_name = "USER")]
    user: String,

    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let place = args.store.existing_or_new(cx)?;
    with_place(place, async |db| sessile_server::users::add(db, &args.user).await)?;
    cx.changed(json!({ "user": args.user }), || {
        format!("added user {0}; create a token: sessile user token create {0}\n", shown(&args.user))
    })
}
