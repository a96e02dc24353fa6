//! `sessile user list`.

use serde_json::{Value, json};
use sessile::text::shown;

use super::{at, with_store};
use crate::cli::Cx;
use crate::commands::page::{Page, WideArgs};
use crate::commands::service_store::StoreArgs;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;

/// List the users
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile user list" "sessile user list --output json"))]
pub struct Args {
    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    wide: WideArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let all = with_store(cx, &args.store, async |db| sessile_server::users::list(db).await)?;
    let accounts = args.page.of(all, |account| account.user.to_string());
    let items: Vec<Value> = accounts
        .iter()
        .map(|account| {
            json!({
                "user": account.user,
                "added_at": at(account.made_ms),
                "disabled_at": account.disabled_ms.map(at),
            })
        })
        .collect();
    cx.out.list(&items, || {
        if accounts.is_empty() {
            return "no users found; add one: sessile user add NAME\n".to_owned();
        }
        let mut table = Table::new(&["USER", "CREATED", "DISABLED"]);
        for account in &accounts {
            let disabled = account.disabled_ms.map_or_else(|| "-".to_owned(), at);
            table.row(&[shown(account.user.as_str()), at(account.made_ms), disabled], None);
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}
