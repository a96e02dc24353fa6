//! `sessile lock list`.

use serde_json::{Value, json};
use sessile::lock::LockHolder;

use super::locks_in;
use crate::cli::Cx;
use crate::commands::page::Page;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::Table;
use crate::remote::{Server, ServerArgs};

/// List the locks that are held
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock list" "sessile lock list --output json"))]
pub struct Args {
    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let items = match Server::of(cx, &cx.state)? {
        Some(server) => server.locks()?,
        None => {
            let store = cx.state.fresh_store()?;
            let found = store.map(|store| locks_in(&cx.state, store)?.list().map_err(Failure::from));
            found.transpose()?.unwrap_or_default().iter().map(|view| json!(view)).collect()
        }
    };
    let items = args.page.of(items, |item: &Value| item["name"].as_str().unwrap_or_default().to_owned());
    cx.out.list(&items, || {
        if items.is_empty() {
            return "no lock is held\n".to_owned();
        }
        let mut table = Table::new(&["LOCK", "TOKEN", "HOLDER", "SINCE", "UNTIL", "WAITING"]);
        for item in &items {
            let text = |key: &str, none: &str| item[key].as_str().unwrap_or(none).to_owned();
            let number = |key: &str| item[key].as_i64().map_or_else(|| "-".to_owned(), |one| one.to_string());
            let holder: Option<LockHolder> = serde_json::from_value(item["holder"].clone()).ok();
            let cells = [
                text("name", ""),
                number("token"),
                holder.map_or_else(|| "-".to_owned(), |holder| holder.short()),
                text("since", "-"),
                text("expires_at", "its command ends"),
                number("waiting"),
            ];
            table.row(&cells, None);
        }
        table.render(&cx.out)
    })
}
