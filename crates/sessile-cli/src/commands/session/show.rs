//! `sessile session show`.

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::picker;
use crate::remote::ServerArgs;

/// Show a session, its copies of tool state and their drift
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session show deploy" "sessile session show --output json"))]
pub struct Args {
    /// Name, id or prefix of the id; default: the current session
    #[arg(value_name = "SESSION")]
    which: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let is_current = args.which.is_some() || cx.state.session()?.is_some();
    let picked = if is_current { None } else { picker::session(cx, "Session to show:")? };
    let which = args.which.as_deref().or(picked.as_deref());
    let session = StateBackend::resolve(cx)?.show_session(which)?;
    cx.out.result(&session, || session.text())
}
