//! Agents by name: `agents.NAME.url` and the settings beside it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use sessile_wire::address::Authority;

use crate::error::{ConversationError, Result, UsageError};
use crate::names::{check, nearest};
use crate::settings::{Definition, Origin, SettingKey, SettingKind, Value};
use crate::site::agent_url;
use crate::state::State;

/// Setting of the default agent.
pub const DEFAULT: &str = "message.agent";

/// Settings of agents with a name.
pub const SETTINGS: &[Definition] = &[
    Definition::new("agents.*.url", SettingKind::Text, "The URL of a named agent.").needing_trust(),
    Definition::new("agents.*.credential", SettingKind::Text, "The credential that a named agent gets.")
        .needing_trust(),
    Definition::new(DEFAULT, SettingKind::Text, "The agent of messages that name none.").needing_trust(),
    Definition::new(
        "agents.*.allow-http",
        SettingKind::Bool,
        "Allow plain http to a named agent on another machine, without a credential.",
    )
    .needing_trust(),
    // A session could otherwise send a file of the user's to an agent of its choice.
    Definition::new(
        "agents.*.headers",
        SettingKind::List,
        "Headers of every request to a named agent: NAME: VALUE, or NAME: @FILE for a secret.",
    )
    .set_by_user_only(),
    Definition::new(
        "agents.*.client-cert-file",
        SettingKind::Text,
        "PEM file with the client certificate for a named agent (mTLS).",
    )
    .set_by_user_only(),
    Definition::new(
        "agents.*.client-key-file",
        SettingKind::Text,
        "PEM file with the private key of the client certificate.",
    )
    .set_by_user_only(),
];

/// Directory of cached cards in the cache directory.
pub const CARDS: &str = "agent-cards";

/// An agent that a call is about.
#[derive(Clone, Debug, Serialize)]
pub struct Agent {
    /// Name, if it has one.
    pub name: Option<String>,
    /// URL, in the one form in which agents are compared.
    pub url: String,
    /// The credential that the settings give it.
    pub credential: Option<String>,
    /// Whether plain http to another machine is allowed. No credential goes there.
    pub allow_http: bool,
    /// Headers of every request, as `NAME: VALUE` or `NAME: @FILE`.
    pub headers: Vec<String>,
    /// Files of the client certificate and its private key.
    pub client_cert: Option<ClientCertFiles>,
    /// File with the agent's card, instead of one that is fetched.
    #[serde(skip)]
    pub card_file: Option<PathBuf>,
    /// Origin of the name; `None` for an agent that the call passes by URL.
    pub origin: Option<Origin>,
}

/// Files of a client certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientCertFiles {
    /// Certificate chain in PEM.
    #[serde(serialize_with = "crate::text::path_in_json")]
    pub cert: PathBuf,
    /// Private key in PEM.
    #[serde(serialize_with = "crate::text::path_in_json")]
    pub key: PathBuf,
}

impl Agent {
    /// Agent at a URL, without settings of its own.
    pub fn at(url: String) -> Self {
        Agent {
            name: None,
            url,
            credential: None,
            allow_http: false,
            headers: Vec::new(),
            client_cert: None,
            card_file: None,
            origin: None,
        }
    }
}

impl State {
    /// Every agent that has a name, in the order of their names.
    pub fn agents(&self) -> Result<Vec<Agent>> {
        let settings = self.settings()?;
        let mut agents = Vec::new();
        for key in settings.keys(false) {
            let [table, name, member] = key.segments() else { continue };
            if table == "agents" && member == "url" {
                agents.extend(self.named_agent(name)?);
            }
        }
        Ok(agents)
    }

    /// The agent that a text means: a URL, or a name.
    pub fn agent(&self, text: &str) -> Result<Agent> {
        // Names have no such character, so a URL is never looked up as a name.
        if text.contains("://") {
            let url = agent_url(text)?;
            // One that has a name keeps its credential.
            let named = self.agents()?.into_iter().find(|agent| agent.url == url);
            return Ok(named.unwrap_or_else(|| Agent::at(url)));
        }
        // A host without a scheme would otherwise be reported as an unknown agent.
        if text.contains([':', '/']) || text == "localhost" {
            return match bare_host_url(text) {
                Some(url) => self.agent(&url),
                None => Err(UsageError::InvalidValue {
                    place: "agent".into(),
                    value: crate::text::shortened(text, 80),
                    expected: "a name, or a URL such as http://localhost:8000".into(),
                }
                .into()),
            };
        }
        check(text, "agent")?;
        match self.named_agent(text)? {
            Some(agent) => Ok(agent),
            None => {
                let all = self.agents()?;
                let near = nearest(text, all.iter().filter_map(|agent| agent.name.as_deref()));
                Err(ConversationError::AgentNotFound { name: text.to_owned(), near }.into())
            }
        }
    }

    /// The agent of messages that name none.
    pub fn default_agent(&self) -> Result<Option<Agent>> {
        let found = self.settings()?.resolve(&DEFAULT.parse()?)?;
        found
            .and_then(|found| found.value.as_str().map(str::to_owned))
            .map(|text| self.agent(&text))
            .transpose()
    }

    fn named_agent(&self, name: &str) -> Result<Option<Agent>> {
        let settings = self.settings()?;
        let said = |member: &str| settings.resolve(&SettingKey::new(["agents", name, member]));
        let Some(found) = said("url")? else { return Ok(None) };
        let url = agent_url(found.value.as_str().unwrap_or_default())?;
        let text = |member: &str| -> Result<Option<String>> {
            Ok(said(member)?.and_then(|found| found.value.as_str().map(str::to_owned)))
        };
        let headers = match said("headers")?.map(|found| found.value) {
            Some(Value::List(headers)) => headers,
            _ => Vec::new(),
        };
        let client_cert = match (text("client-cert-file")?, text("client-key-file")?) {
            (Some(cert), key) => {
                // One file may hold both.
                let key = key.unwrap_or_else(|| cert.clone());
                Some(ClientCertFiles {
                    cert: self.absolute(Path::new(&cert)),
                    key: self.absolute(Path::new(&key)),
                })
            }
            (None, _) => None,
        };
        Ok(Some(Agent {
            name: Some(name.to_owned()),
            url,
            credential: text("credential")?,
            allow_http: matches!(said("allow-http")?.map(|found| found.value), Some(Value::Bool(true))),
            headers,
            client_cert,
            card_file: None,
            origin: Some(found.origin),
        }))
    }
}

/// Whether a header `NAME: VALUE` holds a secret itself, instead of the name of a file with one.
pub fn is_secret_header(header: &str) -> bool {
    let (name, value) = header.split_once(':').unwrap_or((header, ""));
    crate::secrets::looks_secret(name.trim()) && !value.trim().starts_with('@')
}

/// URL of a host without a scheme: `http` on this machine, else `https`.
fn bare_host_url(text: &str) -> Option<String> {
    let authority = text.split('/').next().unwrap_or_default();
    let host = Authority::parse(authority).ok()?;
    let scheme = if host.is_loopback() { "http" } else { "https" };
    Some(format!("{scheme}://{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_host_gets_the_scheme_that_is_safe() {
        for (text, url) in [
            ("localhost:8000", Some("http://localhost:8000")),
            ("127.0.0.1:1/a", Some("http://127.0.0.1:1/a")),
            ("agent.example/x", Some("https://agent.example/x")),
            ("agent.example:8443", Some("https://agent.example:8443")),
            ("/etc/passwd", None),
            ("a b:1", None),
            ("me@host:1", None),
        ] {
            assert_eq!(bare_host_url(text).as_deref(), url, "{text}");
        }
    }
}
