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
    let found: Vec<(Value, LockHolder)> = match Server::of(cx, &cx.state)? {
        Some(server) => server.locks()?,
        None => {
            let store = cx.state.fresh_store()?;
            let found = store.map(|store| locks_in(&cx.state, store)?.list().map_err(Failure::from));
            found
                .transpose()?
                .unwrap_or_default()
                .into_iter()
                .map(|view| (json!(view), view.holder))
                .collect()
        }
    };
    let found = args.page.of(found, |(item, _)| item["name"].as_str().unwrap_or_default().to_owned());
    let (items, holders): (Vec<Value>, Vec<LockHolder>) = found.into_iter().unzip();
    cx.out.list(&items, || {
        if items.is_empty() {
            return "no lock is held\n".to_owned();
        }
        let mut table = Table::new(&["LOCK", "TOKEN", "HOLDER", "SINCE", "UNTIL", "WAITING"]);
        for (item, holder) in items.iter().zip(&holders) {
            let text = |key: &str, none: &str| item[key].as_str().unwrap_or(none).to_owned();
            let number = |key: &str| item[key].as_i64().map_or_else(|| "-".to_owned(), |one| one.to_string());
            let cells = [
                text("name", ""),
                number("token"),
                holder.short(),
                text("since", "-"),
                text("expires_at", "its command ends"),
                number("waiting"),
            ];
            table.row(&cells, None);
        }
        table.render(&cx.out)
    })
}
