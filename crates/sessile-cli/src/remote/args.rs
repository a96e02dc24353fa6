//! The flag, and whether a call means a server.

use sessile::error::UsageError;
use sessile::settings::Value;
use sessile::{Error, State};

use crate::cli::Cx;

/// The setting that names it.
pub(crate) const KEY: &str = "server";

/// Server of a command.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ServerArgs {
    /// Work against the session service at this URL; '' works on this machine
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
}

/// The server that a call means, if any: as flags, variables and settings say. An empty text means this machine.
pub(crate) fn server_of(state: &State) -> Result<Option<String>, Error> {
    let said = state.settings()?.get(KEY)?;
    Ok(said.and_then(|found| text(&found.value)))
}

/// Fails if the settings name a server and a destructive command works on this machine only, because the caller may
/// mean the server.
pub(crate) fn refuse_there(cx: &Cx, command: &str) -> Result<(), Error> {
    match server_of(&cx.state)? {
        None => Ok(()),
        Some(url) => Err(UsageError::Arguments(format!(
            "{command} works on this machine only, but the setting server is {}; pass --set server= for this machine",
            sessile::text::shown(url)
        )).into()),
    }
}

/// Whether a value of the setting means a server.
pub(crate) fn means_server(value: &Value) -> bool {
    text(value).is_some()
}

/// The server that a value of the setting means, if any.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned)
}
