//! `sessile agent list`.

use sessile::text::shown;

use crate::cli::Cx;
use crate::commands::page::{Page, WideArgs};
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;

/// List the named agents
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent list" "sessile agent list --output json"))]
pub struct Args {
    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    wide: WideArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let found = args.page.of(cx.state.agents()?, |agent| agent.name.clone().unwrap_or_default());
    cx.out.list(&found, || {
        if found.is_empty() {
            return "no agents found; add one: sessile agent add NAME URL --global\n".to_owned();
        }
        let mut table = Table::new(&["NAME", "URL", "CREDENTIAL", "FROM"]);
        for agent in &found {
            let cell = |text: Option<&str>| shown(text.unwrap_or("-"));
            let from = agent.origin.as_ref().map_or_else(String::new, ToString::to_string);
            let (name, credential) = (cell(agent.name.as_deref()), cell(agent.credential.as_deref()));
            table.row(&[name, shown(&agent.url), credential, from], None);
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}
