//! `sessile lock list`.

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::commands::page::Page;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;
use crate::remote::ServerArgs;
use crate::view::LockView;

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
    let locks = args.page.of(StateBackend::resolve(cx)?.locks()?, |lock| lock.name.clone());
    cx.out.list(&locks, || {
        if locks.is_empty() {
            return "no lock is held\n".to_owned();
        }
        let mut table = Table::new(&LockView::COLUMNS);
        for lock in &locks {
            for cells in lock.rows() {
                table.row(&cells, None);
            }
        }
        table.render(&cx.out)
    })
}
