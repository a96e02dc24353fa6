//! `sessile session rename`.

use sessile::error::UsageError;
use sessile::session::SessionName;
use sessile::text::quoted;

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::picker;
use crate::remote::ServerArgs;

/// Rename a session
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session rename 01890a5d release"))]
pub struct Args {
    /// Name, id or prefix of the id; prompts on a terminal by default
    #[arg(value_name = "SESSION")]
    which: Option<String>,

    /// New name; prompts on a terminal by default
    #[arg(value_name = "NEW")]
    new: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let picked = if args.which.is_some() { None } else { picker::session(cx, "Session to rename:")? };
    let which = args.which.clone().or(picked);
    let which = which.ok_or_else(|| UsageError::Arguments("session rename requires a SESSION".into()))?;
    let new: SessionName = picker::required_name(cx, args.new.as_deref(), "session rename")?.parse()?;
    let renamed = StateBackend::resolve(cx)?.rename_session(&which, &new)?;
    renamed.print(cx, |renamed| {
        let label = renamed.old.as_ref().unwrap_or(&renamed.id);
        format!("renamed session {} to {}\n", quoted(label), quoted(&renamed.new))
    })
}
