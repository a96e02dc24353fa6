//! `sessile lock list`.

use serde_json::{Value, json};

use super::locks_in;
use crate::cli::Cx;
use crate::commands::page::Page;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::Table;

/// List the locks that are held
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock list" "sessile lock list --output json"))]
pub struct Args {
    #[command(flatten)]
    page: Page,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let found =
        cx.state.fresh_store()?.map(|store| locks_in(&cx.state, store)?.list().map_err(Failure::from));
    let views = args.page.of(found.transpose()?.unwrap_or_default(), |view| view.name.clone());
    let items: Vec<Value> = views.iter().map(|view| json!(view)).collect();
    cx.out.list(&items, || {
        if views.is_empty() {
            return "no lock is held\n".to_owned();
        }
        let mut table = Table::new(&["LOCK", "TOKEN", "HOLDER", "SINCE", "UNTIL", "WAITING"]);
        for view in &views {
            let until = view.expires_at.clone().unwrap_or_else(|| "its command ends".to_owned());
            let cells = [
                view.name.clone(),
                view.token.to_string(),
                view.holder.short(),
                view.since.clone(),
                until,
                view.waiting.to_string(),
            ];
            table.row(&cells, None);
        }
        table.render(&cx.out)
    })
}
