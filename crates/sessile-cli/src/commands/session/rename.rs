//! `sessile session rename`.

use sessile::session::SessionName;
use sessile::text::quoted;

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Rename a session
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session rename 01890a5d release"))]
pub struct Args {
    /// Name, id or prefix of the id
    #[arg(value_name = "SESSION")]
    which: String,

    /// New name
    #[arg(value_name = "NEW")]
    new: String,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let new: SessionName = args.new.parse()?;
    let renamed = StateBackend::resolve(cx)?.rename_session(&args.which, &new)?;
    renamed.print(cx, |renamed| {
        let label = renamed.old.as_ref().unwrap_or(&renamed.id);
        format!("renamed session {} to {}\n", quoted(label), quoted(&renamed.new))
    })
}
