//! `sessile context export`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sessile::Error;
use sessile::context::transfer;
use sessile::files::LockedDir;
use sessile::text::shown;

use crate::cli::Cx;
use crate::counted::counted;
use crate::error::Outcome;
use crate::help::examples;
use crate::picker;
use crate::terminal_prompt;

/// Export contexts to one file, without secrets
///
/// The file is TOML, or JSON if its name ends in .json. Credentials are exported as names. Variables with secrets in
/// plain text are left out, with a warning.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile context export staging > staging.toml"
    "sessile context export --all --file contexts.toml"
))]
pub struct Args {
    /// Names of the contexts; prompts for one on a terminal by default
    #[arg(value_name = "CONTEXT", conflicts_with = "all")]
    names: Vec<String>,

    /// Export all contexts
    #[arg(long)]
    all: bool,

    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let contexts = cx.state.contexts();
    let names = if args.all {
        contexts.names()?
    } else if args.names.is_empty() {
        let question = "Context to export:";
        vec![picker::required_context(cx, None, question, "context export")?]
    } else {
        args.names.iter().map(|name| name.parse()).collect::<Result<Vec<_>, Error>>()?
    };
    let found = names.iter().map(|name| contexts.get(name)).collect::<Result<Vec<_>, Error>>()?;
    let printed = Path::new(if cx.out.is_text() { "contexts.toml" } else { "contexts.json" });
    let exported = transfer::export(cx.state.app(), args.file.as_deref().unwrap_or(printed), &found)?;
    for (context, key) in &exported.left_out {
        cx.state.warn(
            format!("left out {key} of context {context}: it looks like a secret"),
            Some("put the secret into the vault and refer to it: { credential = \"NAME\" }".to_owned()),
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
        format!("exported {} to {}\n", counted(names.len(), "context"), shown(path.display()))
    })
}
