//! `sessile context edit`.

use serde_json::json;
use sessile::call::ConfigSource;
use sessile::context::ContextEdit;
use sessile::error::UsageError;
use sessile::names::ContextName;
use sessile::text::{quoted, shown};

use super::changes::ChangeArgs;
use crate::cli::Cx;
use crate::editor::EditorFile;
use crate::error::Outcome;
use crate::help::examples;

/// Change a context, in your editor or by flags
///
/// With flags the file is changed in place and keeps its comments. Without any it opens in VISUAL, EDITOR or vi,
/// and is replaced only if it is still valid.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile context edit staging"
    "sessile context edit production --guard approval"
    "sessile context edit staging --bind kubectl.namespace=web --remove env.DEBUG"
))]
pub struct Args {
    /// The context
    #[arg(value_name = "CONTEXT")]
    name: String,

    #[command(flatten)]
    changes: ChangeArgs,

    /// Remove a key, for instance description, env.NAME or tools.kubectl.namespace
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: ContextName = args.name.parse()?;
    let context = if args.changes.is_empty() && args.remove.is_empty() {
        let existing = cx.state.contexts().get(&name)?;
        // The editor would show the whole settings file.
        if let ConfigSource::File(_) = cx.state.source() {
            let what =
                "with --config the contexts stand in that file: edit it with `config edit`, or use flags";
            return Err(UsageError::Arguments(what.into()).into());
        }
        let old = cx.state.read(existing.path())?.unwrap_or_default();
        let edited = EditorFile::open(&cx.state, &old, ".toml", "say the changes with flags; see --help")?;
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
