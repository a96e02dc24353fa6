//! Selected server, for `status`.

use serde::Serialize;
use sessile::State;
use sessile::settings::Origin;
use sessile::text::shown;

use super::args::{KEY, text};
use super::client::token_variable;

/// A server that commands work against unless a call says otherwise.
#[derive(Debug, Serialize)]
pub(crate) struct ServerStatus {
    url: String,
    origin: Origin,
    /// Whether this machine has a token for the server; `None` if the vault is locked. The server is not contacted,
    /// so the token may be invalid.
    has_token: Option<bool>,
}

impl ServerStatus {
    /// Selected server, if any. An invalid setting becomes a warning.
    pub(crate) fn of(state: &State) -> Option<Self> {
        let found = match state.settings().and_then(|settings| settings.get(KEY)) {
            Ok(found) => found?,
            Err(error) => {
                state.warn(error.to_string(), error.hint(state.app()));
                return None;
            }
        };
        let url = text(&found.value)?;
        let has_token = match state.credential_availability().has(&url, state.context().ok().flatten()) {
            // The variable counts only where the vault has no token.
            Some(false) if token_variable(state).is_some() => Some(true),
            has_token => has_token,
        };
        Some(ServerStatus { url, origin: found.origin, has_token })
    }

    /// Status in one line.
    pub(crate) fn line(&self) -> String {
        let token = match self.has_token {
            Some(true) => "with a token",
            Some(false) => "no token",
            None => "the vault is locked",
        };
        format!("{} ({token})  from {}", shown(&self.url), self.origin)
    }
}
