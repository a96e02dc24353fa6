//! `sessile agent list`.

use sessile::text::shown;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;

/// List the agents that have a name
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent list" "sessile agent list --output json"))]
pub struct Args {
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    /// Go on after this one, the last name of the page before
    #[arg(long, value_name = "NAME")]
    cursor: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let all = cx.state.agents()?;
    let after = |name: Option<&str>| args.cursor.as_deref().is_none_or(|cursor| name > Some(cursor));
    let found: Vec<_> = all.iter().filter(|one| after(one.name.as_deref())).take(args.limit).collect();
    cx.out.list(&found, || {
        if found.is_empty() {
            return "no agent has a name\n".to_owned();
        }
        let mut table = Table::new(&["NAME", "URL", "CREDENTIAL", "FROM"]);
        for agent in &found {
            let cell = |text: Option<&str>| shown(text.unwrap_or("-"));
            let from = agent.origin.as_ref().map_or_else(String::new, ToString::to_string);
            let (name, credential) = (cell(agent.name.as_deref()), cell(agent.credential.as_deref()));
            table.row(&[name, shown(&agent.url), credential, from], None);
        }
        table.render(&cx.out)
    })
}
