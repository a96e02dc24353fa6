//! Authentication of an agent's clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sessile_wire::percent::decode_lossy;

use crate::http::ReceivedRequest;
use crate::options::{AgentAuth, AgentOptions};

/// Account of a request's credential.
pub(crate) fn account(options: &AgentOptions, seen: &ReceivedRequest) -> Option<String> {
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
        AgentAuth::Basic => {
            of_scheme("basic").and_then(|secret| String::from_utf8(STANDARD.decode(secret).ok()?).ok())
        }
        AgentAuth::ApiKeyHeader(name) => seen.header(name).map(str::to_owned),
        AgentAuth::ApiKeyQuery(name) => pairs(&seen.query, '&', name),
        AgentAuth::ApiKeyCookie(name) => pairs(seen.header("cookie").unwrap_or_default(), ';', name),
        AgentAuth::OAuth2 { issuer, .. } => {
            let token = of_scheme("bearer")?;
            // Asked each time, so that a token counts only for as long as its issuer says.
            let body: serde_json::Value = serde_json::from_str(&whoami(issuer, &token)?).ok()?;
            return body["account"].as_str().map(str::to_owned);
        }
    }?;
    options.accounts.iter().find(|(known, _)| *known == secret).map(|(_, account)| account.clone())
}

/// Answer of an issuer on this machine to the question whose a token is.
fn whoami(issuer: &str, token: &str) -> Option<String> {
    let (authority, path) =
        issuer.strip_prefix("http://").map(|rest| rest.split_once('/').unwrap_or((rest, "")))?;
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    let mut stream = TcpStream::connect(authority).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    write!(
        stream,
        "GET {path}/whoami HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.take(1 << 20).read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    (head.split(' ').nth(1) == Some("200")).then(|| body.to_owned())
}

/// Challenge to unauthenticated clients.
pub(crate) fn challenge(auth: &AgentAuth) -> &'static str {
    match auth {
        AgentAuth::Basic => "Basic realm=\"agent\"",
        AgentAuth::None | AgentAuth::Bearer | AgentAuth::OAuth2 { .. } => "Bearer realm=\"agent\"",
        _ => "ApiKey realm=\"agent\"",
    }
}
