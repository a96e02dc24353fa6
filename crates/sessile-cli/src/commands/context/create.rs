//! `sessile context create`.

use serde_json::json;
use sessile::names::ContextName;
use sessile::text::{quoted, shown};

use super::changes::ChangeArgs;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Make a context
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile context create staging --description 'the test cluster'"
    "sessile context create staging --tool kubectl.context=staging --tool aws.profile=staging"
    "sessile context create production --guard approval"
))]
pub struct Args {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    changes: ChangeArgs,

    /// Make it in this project, for everyone who works on it
    #[arg(long)]
    project: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: ContextName = args.name.parse()?;
    let changes = args.changes.changes()?;
    let context =
        cx.state.contexts().create("context create", &name, &changes, args.project, cx.state.args().yes)?;
    super::warn_about_targets(cx, &context);
    cx.changed(
        json!({ "name": name, "path": context.path().to_string_lossy(), "guard": context.guard }),
        || format!("created context {} in {}\n", quoted(name.as_str()), shown(context.path().display())),
    )
}
