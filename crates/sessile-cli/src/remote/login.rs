//! Logging in at a service by a code that an administrator confirms.

use std::time::Duration;

use serde_json::json;
use sessile::error::RequestError;
use sessile::text::quoted;
use sessile::vault::Secret;
use sessile::{Error, State};

use super::server::{Request, Server};
use super::trouble::{Problem, Subject, Trouble};
use crate::error::Failure;

/// A code that waits to be confirmed.
pub(crate) struct Coded {
    device: Secret,
    /// What the administrator is told.
    pub(crate) user_code: String,
    /// How long it can be confirmed.
    pub(crate) expires_in: Duration,
    /// How often it is asked for what became of it.
    pub(crate) interval: Duration,
}

impl Coded {
    /// Asks for a code.
    pub(crate) fn ask(server: &Server, state: &State) -> Result<Self, Failure> {
        let client = format!("{}@{}", state.world().user_name(), state.world().host_name());
        let answer = server
            .ask(&Request::plain_post(&["v1", "login"], json!({ "client": client })), &Subject::default())?;
        let seconds = |key: &str, usual: u64| Duration::from_secs(answer[key].as_u64().unwrap_or(usual));
        match (answer["device_code"].as_str(), answer["user_code"].as_str()) {
            (Some(device), Some(user_code)) => Ok(Coded {
                device: Secret::new(device),
                user_code: user_code.to_owned(),
                expires_in: seconds("expires_in_s", 600),
                interval: seconds("interval_s", 5).clamp(Duration::from_millis(200), Duration::from_secs(60)),
            }),
            _ => {
                let reason = "its answer holds no code".to_owned();
                Err(RequestError::Unreachable { what: server.url().to_owned(), reason }.into())
            }
        }
    }

    /// The token, if the code was confirmed.
    pub(crate) fn token(&self, server: &Server) -> Result<Option<Secret>, Failure> {
        let body = json!({ "device_code": self.device.expose() });
        match server.try_ask(&Request::plain_post(&["v1", "login", "token"], body), Duration::from_secs(5)) {
            Ok(answer) => {
                let odd = || {
                    Error::Request(RequestError::Unreachable {
                        what: server.url().to_owned(),
                        reason: "its answer holds no token".to_owned(),
                    })
                };
                Ok(Some(Secret::new(answer["token"].as_str().ok_or_else(odd)?)))
            }
            Err(Trouble::Refused(Problem { status: 409 | 429, retryable: true, .. })) => Ok(None),
            Err(Trouble::Refused(Problem { detail, status: 400..500, .. })) => {
                let reason = format!("code {} was not confirmed: {detail}", quoted(&self.user_code));
                Err(RequestError::LoginRefused { site: server.url().to_owned(), reason }.into())
            }
            Err(trouble) => Err(trouble.told(server.url(), &Subject::default())),
        }
    }
}
