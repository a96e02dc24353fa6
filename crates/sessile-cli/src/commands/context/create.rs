//! `sessile context create`.

use serde_json::json;
use sessile::error::UsageError;
use sessile::names::ContextName;
use sessile::text::{quoted, shown};
use sessile::tool::current_bindings;

use super::changes::ChangeArgs;
use crate::cli::Cx;
use crate::commands::binding_args;
use crate::error::Outcome;
use crate::help::examples;

/// Create a context
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile context create staging --description 'the test cluster'"
    "sessile context create dev --bind kubectl.context=dev --bind aws.profile=dev"
    "sessile context create here --from-current"
    "sessile context create production --guard approval"
))]
pub struct Args {
    /// Name of the context
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    changes: ChangeArgs,

    /// Bind the current targets of your tools: kube context, profile, account
    #[arg(long)]
    from_current: bool,

    /// Create the context in this project, for all its users
    #[arg(long)]
    project: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: ContextName = args.name.parse()?;
    let mut changes = Vec::new();
    if args.from_current {
        let named = |binding: &str| binding.split_once('=').map(|(key, _)| key.to_owned());
        let own: Vec<_> = args.changes.bind.iter().map(|binding| named(binding)).collect();
        let current = current_bindings(&cx.state)?.into_iter();
        let current: Vec<String> = current.filter(|binding| !own.contains(&named(binding))).collect();
        if current.is_empty() && own.is_empty() {
            let what = "--from-current: no tool has selected a target; pass --bind TOOL.KEY=VALUE";
            return Err(UsageError::Arguments(what.into()).into());
        }
        changes = binding_args::edits(&current)?;
    }
    changes.extend(args.changes.changes()?);
    let context =
        cx.state.contexts().create("context create", &name, &changes, args.project, cx.state.args().yes)?;
    super::warn_about_targets(cx, &context);
    cx.changed(
        json!({ "name": name, "path": context.path().to_string_lossy(), "guard": context.guard }),
        || {
            let path = shown(context.path().display());
            let mut text = format!("created context {} in {path}\n", quoted(name.as_str()));
            if args.from_current {
                context.tools.iter().for_each(|(tool, bindings)| {
                    bindings.iter().for_each(|(key, value)| {
                        text.push_str(&format!("  {}\n", shown(format!("{tool}.{key} = {value}"))));
                    });
                });
            }
            text
        },
    )
}
