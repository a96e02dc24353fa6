//! `sessile user token list`.

use serde_json::{Value, json};
use sessile::text::shown;
use sessile_server::users;

use crate::cli::Cx;
use crate::commands::page::{Page, WideArgs};
use crate::commands::service_store::StoreArgs;
use crate::commands::user::{at, with_store};
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;

/// List the tokens of a user, without their secrets
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile user token list ann"))]
pub struct Args {
    /// Name of the user
    #[arg(value_name = "USER")]
    user: String,

    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    wide: WideArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let all = with_store(cx, &args.store, async |db| users::tokens(db, &users::existing(&args.user)?).await)?;
    let tokens = args.page.of(all, |token| token.id.to_string());
    let items: Vec<Value> = tokens
        .iter()
        .map(|token| {
            json!({
                "id": token.id,
                "user": token.user,
                "scopes": token.scopes,
                "made_at": at(token.made_ms),
                "expires_at": token.expires_ms.map(at),
                "revoked_at": token.revoked_ms.map(at),
            })
        })
        .collect();
    cx.out.list(&items, || {
        if tokens.is_empty() {
            return "the user has no tokens\n".to_owned();
        }
        let mut table =
            Table::new(&["ID", "SCOPES", "CREATED", "EXPIRES", "REVOKED"]).with_optional(&["CREATED"]);
        for token in &tokens {
            let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
            let or_dash = |time: Option<i64>| time.map_or_else(|| "-".to_owned(), at);
            let cells = [
                shown(token.id.as_str()),
                scopes.join(" "),
                at(token.made_ms),
                or_dash(token.expires_ms),
                or_dash(token.revoked_ms),
            ];
            table.row(&cells, None);
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}
