//! `sessile lock break`.

use serde_json::json;
use sessile::confirm::can_ask;
use sessile::error::LockError;
use sessile::lock::LockName;

use super::note_server;
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;
use crate::terminal_prompt;

/// Break another holder's lock
///
/// Pass the holder's fencing token, from `lock list`. If the holder has changed since, the command fails. The old
/// holder keeps running: the protected resource must refuse its token.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock break deploy --holder 17"))]
pub struct Args {
    /// Name of the lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// Fencing token of the holder
    #[arg(long, value_name = "N")]
    holder: i64,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: LockName = args.name.parse()?;
    let backend = StateBackend::resolve(cx)?;
    let lock = backend.lock(&name)?.ok_or_else(|| LockError::NotFound(name.to_string()))?;
    let Some(holder) = lock.holder_with(args.holder) else {
        return Err(LockError::OtherHolder { name: name.to_string(), token: args.holder }.into());
    };
    // The holder's token is the confirmation; on a terminal a person can still think again.
    if can_ask(&cx.state) {
        terminal_prompt::confirm(&cx.state, &format!("break lock {name}, held by {}", holder.short()))?;
    }
    backend.break_lock(&name, args.holder, holder)?;
    cx.changed(json!({ "name": name, "token": args.holder, "holder": holder }), || {
        format!("broke lock {name}, held by {}\n", holder.short())
    })?;
    note_server(cx, &backend);
    Ok(())
}
