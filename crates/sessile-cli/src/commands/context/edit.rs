//! `sessile context edit`.

use serde_json::json;
use sessile::call::ConfigSource;
use sessile::context::ContextEdit;
use sessile::error::UsageError;
use sessile::text::{quoted, shown};

use super::changes::ChangeArgs;
use crate::cli::Cx;
use crate::editor::EditorFile;
use crate::error::Outcome;
use crate::help::examples;
use crate::picker;

/// Change a context, in your editor or by flags
///
/// With flags, changes the file in place and keeps its comments. Without flags, opens it in VISUAL, EDITOR or vi, and
/// saves only a valid file.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile context edit staging"
    "sessile context edit production --guard approval"
    "sessile context edit staging --bind kubectl.namespace=web --remove env.DEBUG"
))]
pub struct Args {
    /// Name of the context; prompts on a terminal by default
    #[arg(value_name = "CONTEXT")]
    name: Option<String>,

    #[command(flatten)]
    changes: ChangeArgs,

    /// Remove a key, for example description, env.NAME or tools.kubectl.namespace
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name = picker::required_context(cx, args.name.as_deref(), "Context to change:", "context edit")?;
    let context = if args.changes.is_empty() && args.remove.is_empty() {
        let existing = cx.state.contexts().get(&name)?;
        // The editor would show the whole settings file.
        if let ConfigSource::File(_) = cx.state.source() {
            let what =
                "with --config the contexts are in that file; edit it with `config edit`, or use flags";
            return Err(UsageError::Arguments(what.into()).into());
        }
        let old = cx.state.read(existing.path())?.unwrap_or_default();
        let edited = EditorFile::open(&cx.state, &old, ".toml", "pass the changes as flags; see --help")?;
        edited.until(&cx.state, &cx.out, |new| cx.state.contexts().put_text(&existing, &old, new))?
    } else {
        let mut changes = args.changes.changes()?;
        for key in &args.remove {
            changes.push(ContextEdit { key: key.parse()?, value: None });
        }
        cx.state.contexts().change(&name, &changes)?
    };
    super::warn_about_targets(cx, &context);
    cx.changed(
        json!({ "name": name, "path": context.path().to_string_lossy(), "guard": context.guard }),
        || format!("changed context {} in {}\n", quoted(name.as_str()), shown(context.path().display())),
    )
}
