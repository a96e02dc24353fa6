//! `sessile help`: the pages of help by name.

use serde_json::json;
use sessile::text::quoted;
use sessile::{Code, Report};

use crate::error::{Failure, Outcome};
use crate::help::{examples, named_page};
use crate::output::Output;
use crate::suggestion::{commands, with_commands};

/// Show help on a command, or on the global options
///
/// Without --verbose a page leaves out rarely used options and explanations.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile help run"
    "sessile help session start --verbose"
    "sessile help options"
))]
pub struct Args {
    /// Words of a command, or `options`
    #[arg(value_name = "COMMAND")]
    topic: Vec<String>,
}

/// Prints the page. It needs no state, and works with broken settings.
pub(crate) fn run(args: &Args, out: &Output, is_verbose: bool) -> Outcome {
    match named_page(&args.topic, out, is_verbose) {
        Ok(page) => out.result(&json!({ "page": page }), || page.clone()),
        Err(unknown) => {
            let report = Report::new(Code::Usage, format!("unknown command {}", quoted(&unknown.word)));
            let report = match commands(&unknown.group, &unknown.word) {
                Some(commands) => with_commands(report, commands),
                None => Report {
                    hint: Some(format!("list the commands: sessile help {}", unknown.group)),
                    ..report
                },
            };
            Err(Failure::Remote(Box::new(report)))
        }
    }
}
