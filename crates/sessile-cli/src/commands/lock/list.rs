//! `sessile lock list`.

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::commands::page::{Page, WideArgs};
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;
use crate::remote::ServerArgs;
use crate::view::LockView;

/// List the held locks and their waiters
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock list" "sessile lock list --output json"))]
pub struct Args {
    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    wide: WideArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let locks = args.page.of(StateBackend::resolve(cx)?.locks()?, |lock| lock.name.clone());
    cx.out.list(&locks, || {
        if locks.is_empty() {
            return "no locks held\n".to_owned();
        }
        let mut table = Table::new(&LockView::COLUMNS).with_optional(&["SINCE", "TOKEN"]);
        for lock in &locks {
            for cells in lock.rows() {
                table.row(&cells, None);
            }
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}
