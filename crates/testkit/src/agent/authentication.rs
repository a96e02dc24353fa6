//! Authentication of an agent's clients.

use sessile_wire::percent::decode_lossy;

use super::base64::from_base64;
use super::http::ReceivedRequest;
use super::options::{AgentAuth, AgentOptions};
use crate::node::get;

/// Account of a request's credential.
pub(super) fn account(options: &AgentOptions, seen: &ReceivedRequest) -> Option<String> {
    let of_scheme = |scheme: &str| {
        let (given, secret) = seen.header("authorization")?.split_once(' ')?;
        given.eq_ignore_ascii_case(scheme).then(|| secret.trim().to_owned())
    };
    let pairs = |text: &str, between: char, name: &str| {
        let mut pairs = text.split(between).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(given, _)| *given == name).map(|(_, value)| decode_lossy(value))
    };
    let secret = match &options.auth {
        AgentAuth::None | AgentAuth::Bearer => of_scheme("bearer"),
        AgentAuth::Basic => of_scheme("basic").and_then(|secret| from_base64(&secret)),
        AgentAuth::ApiKeyHeader(name) => seen.header(name).map(str::to_owned),
        AgentAuth::ApiKeyQuery(name) => pairs(&seen.query, '&', name),
        AgentAuth::ApiKeyCookie(name) => pairs(seen.header("cookie").unwrap_or_default(), ';', name),
        AgentAuth::OAuth2 { issuer, .. } => {
            let token = of_scheme("bearer")?;
            let (status, body) =
                // Asked each time, so that a token counts only for as long as its issuer says.
                get(&format!("{issuer}/whoami"), &format!("Authorization: Bearer {token}\r\n"));
            let body: serde_json::Value = serde_json::from_str(&body).ok()?;
            return body["account"].as_str().filter(|_| status == 200).map(str::to_owned);
        }
    }?;
    options.accounts.iter().find(|(known, _)| *known == secret).map(|(_, account)| account.clone())
}

/// Challenge to unauthenticated clients.
pub(super) fn challenge(auth: &AgentAuth) -> &'static str {
    match auth {
        AgentAuth::Basic => "Basic realm=\"agent\"",
        AgentAuth::None | AgentAuth::Bearer | AgentAuth::OAuth2 { .. } => "Bearer realm=\"agent\"",
        _ => "ApiKey realm=\"agent\"",
    }
}
