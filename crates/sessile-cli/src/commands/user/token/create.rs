//! `sessile user token create`.

use std::time::Duration;

use serde_json::json;
use sessile::args::parse_duration;
use sessile_server::users;

use crate::cli::Cx;
use crate::commands::service_store::StoreArgs;
use crate::commands::user::{at, expiry, scopes, with_store};
use crate::error::Outcome;
use crate::help::examples;

/// Create a token for a user, and print it once
///
/// The service stores only the hash of the token.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile user token create ann"
    "sessile user token create ann --scope read --expires 30d --quiet > ann.token"
))]
pub struct Args {
    /// Name of the user
    #[arg(value_name = "USER")]
    user: String,

    /// Scopes: read, write or admin; default: read and write
    #[arg(long, value_name = "SCOPE", value_parser = ["read", "write", "admin"])]
    scope: Vec<String>,

    /// Lifetime; default: until revoked
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires: Option<Duration>,

    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (scopes, expires) = (scopes(&args.scope), expiry(cx, args.expires)?);
    let made = with_store(cx, &args.store, async |db| {
        users::create_token(db, &users::existing(&args.user)?, &scopes, expires).await
    })?;
    let secret = made.secret.expose().to_owned();
    let json = json!({
        "user": made.token.user,
        "id": made.token.id,
        "scopes": made.token.scopes,
        "expires_at": made.token.expires_ms.map(at),
        "token": secret,
    });
    // Alone on standard output, so that it can be redirected into a file.
    cx.changed(json, || format!("{secret}\n"))?;
    if cx.out.is_text() {
        cx.out.note(&format!("token {} of user {}; it is not printed again", made.token.id, made.token.user));
    }
    Ok(())
}
