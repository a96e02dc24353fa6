//! `sessile lock break`.

use serde_json::json;
use sessile::confirm::can_ask;
use sessile::error::LockError;
use sessile::history::record;
use sessile::lock::LockName;

use super::{locks, tell_server};
use crate::ask;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::{ServerArgs, ServiceClient};

/// Take a lock away from its holder
///
/// The holder must be named by its token, which `lock list` shows, so that a lock that has changed hands in the
/// meantime is not broken. The holder is not stopped: what the lock protects must refuse its old token.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock break deploy --holder 17"))]
pub struct Args {
    /// The lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// The token of its holder
    #[arg(long, value_name = "N")]
    holder: i64,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: LockName = args.name.parse()?;
    let server = ServiceClient::of(cx, &cx.state)?;
    let mut here = server.is_none().then(|| locks(&cx.state)).transpose()?;
    let found = match (&server, &mut here) {
        (Some(server), _) => server.lock_holder(&name)?,
        (None, Some(locks)) => locks.view(&name)?.map(|view| (view.token, view.holder)),
        (None, None) => None,
    };
    let (found, holder) = found.ok_or_else(|| LockError::NotFound(name.to_string()))?;
    if found != args.holder {
        return Err(LockError::OtherHolder { name: name.to_string(), asked: args.holder, found }.into());
    }
    // The holder's token is the confirmation; on a terminal a person can still think again.
    if can_ask(&cx.state) {
        ask::confirm(&cx.state, &format!("take lock {name} away from {}", holder.short()))?;
    }
    if let Some(server) = &server {
        server.release_lock(&name, args.holder)?;
    }
    if let Some(locks) = &mut here {
        locks.break_lock(&name, args.holder)?;
        let subject = format!("{name} token {} of {}", args.holder, holder.short());
        record(&cx.state, "lock break", &subject, "the holder has lost the lock; acquire it anew")?;
    }
    cx.changed(json!({ "name": name, "token": args.holder, "holder": holder }), || {
        format!("lock {name} was taken away from {}\n", holder.short())
    })?;
    if let Some(server) = &server {
        tell_server(cx, server);
    }
    Ok(())
}
