//! Verification of notifications.

use std::path::Path;

use serde_json::Value;
use sessile::error::UsageError;
use sessile::text::shown;
use sessile::vault::Secret;
use sessile_agent::ReceivedRequest;
use sessile_wire::a2a::AgentEvent;

use super::jwt::JwtVerifier;
use super::{Args, event_of};
use crate::cli::Cx;
use crate::commands::message::secret_of;
use crate::error::Failure;
use crate::http::{HttpClient, TrustRoots};

/// Header of the token.
const TOKEN_HEADER: &str = "x-a2a-notification-token";

/// Rule by which notifications count.
pub(super) struct NotificationVerifier {
    token: Option<Secret>,
    jwt: Option<JwtVerifier>,
}

/// RefusedNotification of a notification.
pub(super) struct RefusedNotification {
    pub(super) status: u16,
    pub(super) reason: &'static str,
}

impl RefusedNotification {
    /// The refusal in one line for the person who listens.
    pub(super) fn line(&self, request: &ReceivedRequest) -> String {
        format!("refused {} {}: {}", request.method, request.path, self.reason)
    }
}

impl NotificationVerifier {
    pub(super) fn new(args: &Args, cx: &Cx) -> Result<Self, Failure> {
        let token = args.token.as_deref().map(|source| read_token(cx, source)).transpose()?;
        let jwt = args.jwks.as_deref().map(|source| jwt_verifier(args, cx, source)).transpose()?;
        if token.is_none() && jwt.is_none() && !args.no_verify {
            let text =
                "choose what to verify: --token SOURCE or --jwks SOURCE; --no-verify accepts everything";
            return Err(UsageError::Arguments(text.into()).into());
        }
        Ok(NotificationVerifier { token, jwt })
    }

    /// Event of a request that passes.
    pub(super) fn accept(
        &self,
        request: &ReceivedRequest,
    ) -> Result<(AgentEvent, Value), RefusedNotification> {
        let refuse = |status, reason| RefusedNotification { status, reason };
        if request.method != "POST" {
            return Err(refuse(405, "not a POST request"));
        }
        // Before the body is parsed: whoever does not know the token gets nothing parsed.
        if let Some(token) = &self.token {
            match request.header(TOKEN_HEADER) {
                None => return Err(refuse(401, "the token is missing")),
                Some(given) if !is_equal(given.as_bytes(), token.expose().as_bytes()) => {
                    return Err(refuse(401, "the token is wrong"));
                }
                Some(_) => {}
            }
        }
        if let Some(jwt) = &self.jwt {
            let authorization = request.header("authorization").and_then(|value| value.split_once(' '));
            let bearer = authorization.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            let (_, token) = bearer.ok_or_else(|| refuse(401, "the JWT is missing"))?;
            jwt.verify(token.trim(), &request.body).map_err(|reason| refuse(401, reason))?;
        }
        let body: Value =
            sessile::json::from_str(&request.body).map_err(|_| refuse(400, "the body is not JSON"))?;
        let event = event_of(&body).ok_or_else(|| refuse(400, "the body is not an A2A event"))?;
        Ok((event, body))
    }
}

/// Verifier with the JWK set of a file or a URL.
fn jwt_verifier(args: &Args, cx: &Cx, source: &str) -> Result<JwtVerifier, Failure> {
    let (source, is_url) = (source.to_owned(), source.contains("://"));
    let path = cx.state.absolute(Path::new(&source));
    let place = source.clone();
    let fetch = move || {
        let text = match is_url {
            true => {
                let found =
                    HttpClient::new(TrustRoots::System).get(&source, &[("accept", "application/json")]);
                let found = found.map_err(|error| error.to_string())?;
                if !(200..300).contains(&found.status) {
                    return Err(format!("status {} instead of a JWK set", found.status));
                }
                found.body.expose().to_owned()
            }
            false => {
                let text = sessile::files::read(&path).map_err(|error| error.to_string())?;
                text.ok_or_else(|| "the file does not exist".to_owned())?
            }
        };
        sessile::json::from_str(&text).map_err(|error| error.to_string())
    };
    let invalid = |reason| UsageError::Arguments(format!("--jwks {}: {reason}", shown(place)));
    Ok(JwtVerifier::new(fetch, args.audience.clone()).map_err(invalid)?)
}

/// Whether two texts are equal, in a time that does not depend on where they differ.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

fn read_token(cx: &Cx, source: &str) -> Result<Secret, Failure> {
    let token = secret_of(cx, "--token", source)?;
    match token.expose() {
        "" => Err(UsageError::Arguments("--token: the token is empty".into()).into()),
        _ => Ok(token),
    }
}
