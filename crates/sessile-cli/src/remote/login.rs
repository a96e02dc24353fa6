//! Device login at a service: an administrator approves a code.

use std::time::Duration;

use sessile::State;
use sessile::text::quoted;
use sessile::vault::Secret;
use sessile_wire::service::{
    BeginLoginRequest, BeginLoginResponse, CollectLoginRequest, CollectLoginResponse,
};

use super::client::{ServiceClient, ServiceRequest};
use super::error::{RemoteError, ServiceProblem, Subject};
use crate::error::{Failure, RequestError};

/// A login whose code waits for approval.
pub(crate) struct PendingLogin {
    device: Secret,
    /// Code that the administrator approves.
    pub(crate) user_code: String,
    /// Time until the login expires.
    pub(crate) expires_in: Duration,
    /// Pause between two attempts to collect the token.
    pub(crate) interval: Duration,
}

impl PendingLogin {
    /// Begins a login.
    pub(crate) fn begin(server: &ServiceClient, state: &State) -> Result<Self, Failure> {
        let client = format!("{}@{}", state.world().user_name(), state.world().host_name());
        let request = ServiceRequest::plain_post(&["v1", "login"], &BeginLoginRequest { client })?;
        let begun: BeginLoginResponse = server.ask(&request, &Subject::default())?;
        let seconds = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        Ok(PendingLogin {
            device: Secret::new(begun.device_code),
            user_code: begun.user_code,
            expires_in: seconds(begun.expires_in_s),
            // The number is the server's: 0 would be a busy loop, and a large one would miss the expiry.
            interval: seconds(begun.interval_s).clamp(Duration::from_millis(200), Duration::from_secs(60)),
        })
    }

    /// Collects the token, if the code was approved.
    pub(crate) fn collect(&self, server: &ServiceClient) -> Result<Option<Secret>, Failure> {
        let body = CollectLoginRequest { device_code: self.device.expose().to_owned() };
        let request = ServiceRequest::plain_post(&["v1", "login", "token"], &body)?;
        match server.try_ask::<CollectLoginResponse>(&request, Duration::from_secs(5)) {
            Ok(collected) => Ok(Some(Secret::new(collected.token))),
            // Not confirmed yet, or too many poll at once; the code stays valid.
            Err(RemoteError::Refused(ServiceProblem { status: 409 | 429, is_retryable: true, .. })) => {
                Ok(None)
            }
            Err(RemoteError::Refused(ServiceProblem { detail, status: 400..500, .. })) => {
                let reason = format!("code {} was not confirmed: {detail}", quoted(&self.user_code));
                Err(RequestError::LoginRefused { site: server.url().to_owned(), reason }.into())
            }
            Err(error) => Err(error.into_failure(server.url(), &Subject::default())),
        }
    }
}
