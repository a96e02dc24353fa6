//! `sessile context export`.

use std::path::{Path, PathBuf};

use serde_json::json;
use sessile::Error;
use sessile::context::transfer;
use sessile::files::LockedDir;
use sessile::text::shown;

use crate::ask;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;

/// Write contexts into one file, without secrets
///
/// Credentials travel as names. A variable whose name says that it is a secret and whose value stands in plain
/// text is left out, and said.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile context export staging > staging.toml"
    "sessile context export --all --file contexts.toml"
))]
pub struct Args {
    /// The contexts
    #[arg(value_name = "CONTEXT", required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,

    /// Every context
    #[arg(long)]
    all: bool,

    /// Write into this file instead of printing
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let contexts = cx.state.contexts();
    let names = if args.all {
        contexts.names()?
    } else {
        args.names.iter().map(|name| name.parse()).collect::<Result<Vec<_>, Error>>()?
    };
    let found = names.iter().map(|name| contexts.get(name)).collect::<Result<Vec<_>, Error>>()?;
    let exported = transfer::export(cx.state.app(), &found)?;
    for (context, key) in &exported.left_out {
        cx.state.warn(
            format!("{key} of context {context} looks like a secret and was left out"),
            Some("keep it in the vault and refer to it: { credential = \"NAME\" }".to_owned()),
        );
    }
    let Some(file) = &args.file else {
        return if cx.out.is_text() { cx.out.print(&exported.text) } else { print_json(cx, &found) };
    };
    let path = cx.state.absolute(file);
    if path.exists() {
        ask::confirm(&cx.state, &format!("replace {}", shown(path.display())))?;
    }
    let (dir, name) = LockedDir::of_file(&cx.state.locker()?, &path, 0o755)?;
    dir.replace(Path::new(&name), &exported.text, 0o644)?;
    cx.changed(json!({ "contexts": names, "path": path }), || {
        format!("exported {} context(s) to {}\n", names.len(), shown(path.display()))
    })
}

/// In JSON the result is the contexts themselves, as `import` takes them.
fn print_json(cx: &Cx, contexts: &[sessile::context::Context]) -> Result<(), Failure> {
    let mut all = serde_json::Map::new();
    for context in contexts {
        let mut json = context.to_json(cx.state.app())?;
        for (table, secret) in [("env", transfer::looks_secret as fn(&str) -> bool)] {
            if let Some(members) = json[table].as_object_mut() {
                members.retain(|name, value| !(value.is_string() && secret(name)));
            }
        }
        if json["description"].is_null() {
            json.as_object_mut().map(|members| members.shift_remove("description"));
        }
        all.insert(context.name.to_string(), json);
    }
    cx.out.result(&json!({ "contexts": all }), String::new)
}
