//! `sessile context export`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sessile::Error;
use sessile::context::transfer;
use sessile::files::LockedDir;
use sessile::text::shown;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::terminal_prompt;

/// Write contexts into one file, without secrets
///
/// The file is TOML, or JSON if its name ends in .json. Credentials travel as names. A variable whose name says
/// that it is a secret and whose value stands in plain text is left out, and said.
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
    let printed = Path::new(if cx.out.is_text() { "contexts.toml" } else { "contexts.json" });
    let exported = transfer::export(cx.state.app(), args.file.as_deref().unwrap_or(printed), &found)?;
    for (context, key) in &exported.left_out {
        cx.state.warn(
            format!("{key} of context {context} looks like a secret and was left out"),
            Some("keep it in the vault and refer to it: { credential = \"NAME\" }".to_owned()),
        );
    }
    let Some(file) = &args.file else {
        // None for TOML, which is printed as text.
        let json: Option<Value> = sessile::json::from_str(&exported.text).ok();
        return cx.out.result(&json, || exported.text);
    };
    let path = cx.state.absolute(file);
    if path.exists() {
        terminal_prompt::confirm(&cx.state, &format!("replace {}", shown(path.display())))?;
    }
    let (dir, name) = LockedDir::of_file(&cx.state.locker()?, &path, 0o755)?;
    dir.replace_by_umask(Path::new(&name), &exported.text)?;
    cx.changed(json!({ "contexts": names, "path": path.to_string_lossy() }), || {
        format!("exported {} context(s) to {}\n", names.len(), shown(path.display()))
    })
}
