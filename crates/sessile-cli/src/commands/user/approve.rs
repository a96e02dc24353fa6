//! `sessile user approve`.

use std::time::Duration;

use serde::Serialize;
use sessile::args::parse_duration;
use sessile::text::{quoted, shown};
use sessile_server::account::{Login, LoginDecision};
use sessile_server::login;

use super::{at, expiry, scopes, with_store};
use crate::cli::Cx;
use crate::commands::service_store::StoreArgs;
use crate::error::{Failure, Outcome, ServiceError};
use crate::help::examples;
use crate::terminal_prompt;

/// Approve or deny a device login
///
/// A machine that logs in prints a code and waits. Approve a code only if the person at that machine gave it to you:
/// the machine gets a token of the user. The command first prints the machine's name, its address and the time of the
/// request.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile user approve BCDF-GHJK --user ann"
    "sessile user approve BCDF-GHJK --user ann --scope read --expires 90d --yes"
    "sessile user approve BCDF-GHJK --deny"
))]
pub struct Args {
    /// Code that the machine prints
    #[arg(value_name = "CODE")]
    code: String,

    /// User that the token belongs to
    #[arg(long, value_name = "USER", required_unless_present = "deny")]
    user: Option<String>,

    /// Scopes of the token: read, write or admin; default: read and write
    #[arg(long, value_name = "SCOPE", value_parser = ["read", "write", "admin"])]
    scope: Vec<String>,

    /// Lifetime of the token; default: until revoked
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires: Option<Duration>,

    /// Deny the login; possible until the machine has collected its token
    #[arg(long, conflicts_with_all = ["user", "scope", "expires"])]
    deny: bool,

    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let found = with_store(cx, &args.store, async |db| login::find(db, &args.code).await)?;
    let decision = match &args.user {
        None => LoginDecision::Deny,
        // The machine may have collected its token by now, which a second approval cannot change.
        Some(_) if found.is_approved => return Err(ServiceError::LoginNotFound(args.code.clone()).into()),
        Some(user) => {
            let (scopes, expires_ms) = (scopes(&args.scope), expiry(cx, args.expires)?);
            // Checked before the question is asked.
            let user = with_store(cx, &args.store, async |db| login::check_user(db, user).await)?;
            LoginDecision::Approve { user, scopes, expires_ms }
        }
    };
    if let LoginDecision::Approve { user, .. } = &decision {
        terminal_prompt::confirm(
            &cx.state,
            &format!("approve the login of {} as user {}", described(&found), quoted(user.as_str())),
        )?;
    }
    with_store(cx, &args.store, async |db| login::decide(db, &args.code, decision.clone()).await)?;
    told(cx, &found, &decision)
}

/// Decision about a login.
#[derive(Debug, Serialize)]
struct LoginDecisionView<'a> {
    client: &'a str,
    from: Option<&'a str>,
    asked_at: String,
    approved: bool,
    #[serde(flatten)]
    grant: Option<GrantView<'a>>,
}

/// Permissions of an approved login.
#[derive(Debug, Serialize)]
struct GrantView<'a> {
    user: &'a str,
    scopes: Vec<&'static str>,
    expires_at: Option<String>,
}

fn told(cx: &Cx, found: &Login, decision: &LoginDecision) -> Result<(), Failure> {
    let grant = match decision {
        LoginDecision::Approve { user, scopes, expires_ms } => {
            let scopes = scopes.iter().map(|scope| scope.as_str()).collect();
            Some(GrantView { user: user.as_str(), scopes, expires_at: expires_ms.map(at) })
        }
        LoginDecision::Deny => None,
    };
    let view = LoginDecisionView {
        client: &found.client,
        from: found.peer.as_deref(),
        asked_at: at(found.asked_ms),
        approved: grant.is_some(),
        grant,
    };
    cx.changed(view, || match decision {
        LoginDecision::Approve { user, .. } => {
            format!("approved the login of {} as user {}\n", described(found), shown(user.as_str()))
        }
        LoginDecision::Deny => format!("denied the login of {}\n", described(found)),
    })
}

/// Machine, as it describes itself; not verified.
fn described(found: &Login) -> String {
    let from = found.peer.as_ref().map(|peer| format!(" from {}", shown(peer))).unwrap_or_default();
    format!("{}, requested{from} at {}", quoted(&found.client), at(found.asked_ms))
}
