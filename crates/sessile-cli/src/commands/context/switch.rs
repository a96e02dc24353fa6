//! `sessile context use`.

use serde_json::json;
use sessile::context::{SwitchScope, switch};
use sessile::text::{quoted, shown};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;

/// Select a context: for this terminal, this directory, or this user
///
/// On a terminal it is selected for that terminal alone: standard input and output must be the terminal, and neither CI nor
/// --no-input may be set. A script names the context of each command with --context, or passes --dir or --global. Inside
/// a session it is refused: a session keeps its context.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile context use staging            in this terminal"
    "sessile context use -                  back to the one before"
    "sessile context use staging --dir      in this directory, for you"
    "sessile context use staging --global   everywhere"
))]
pub struct Args {
    /// The context, or - for the one before
    #[arg(value_name = "CONTEXT", allow_hyphen_values = true)]
    name: String,

    /// Select it in this directory and below, in .sessile/local.toml
    #[arg(long, conflicts_with = "global")]
    dir: bool,

    /// Select it for this user, wherever nothing narrower says another
    #[arg(long)]
    global: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let scope = match (args.dir, args.global) {
        (true, _) => Some(SwitchScope::Directory),
        (_, true) => Some(SwitchScope::Global),
        _ => None,
    };
    let name = if args.name == "-" { None } else { Some(args.name.parse()?) };
    let switched = switch(&cx.state, name.as_ref(), scope)?;
    cx.changed(json!(switched), || {
        let whose = match switched.scope {
            SwitchScope::Terminal => "this terminal",
            SwitchScope::Directory => "this directory",
            SwitchScope::Global => "this user",
        };
        let was = switched.old.as_deref().map_or_else(|| "none".to_owned(), quoted);
        format!(
            "context {} selected for {whose}, {} (it was {was})\n",
            quoted(switched.new.as_str()),
            shown(&switched.place)
        )
    })
}
