//! Where and how an agent can be talked to.

use std::fmt;

use serde_json::Value;

use super::dialect::Dialect;
use super::part::text;

/// How requests are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Binding {
    /// JSON-RPC 2.0, by POST to one address.
    JsonRpc,
    /// HTTP+JSON: an address for each thing.
    Rest,
    /// gRPC, which is not supported.
    Grpc,
    /// What else a card may name, which is not supported.
    Other(String),
}

/// The version of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProtocolVersion {
    /// 1.x.
    V1,
    /// 0.3, and those before it.
    V03,
    /// One that is not supported.
    Other(String),
}

/// One way to talk to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    /// How requests are made.
    pub(crate) binding: Binding,
    /// Where to.
    pub(crate) url: String,
    /// In which version.
    pub(crate) version: ProtocolVersion,
    /// Whose part of the agent it is: repeated in every request.
    pub(crate) tenant: Option<String>,
}

impl Interface {
    /// How it writes JSON, or nothing if it is not supported.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        match (&self.version, &self.binding) {
            (ProtocolVersion::V1, Binding::JsonRpc | Binding::Rest) => Some(Dialect::One),
            (ProtocolVersion::V03, Binding::JsonRpc) => Some(Dialect::Kinds),
            (ProtocolVersion::V03, Binding::Rest) => Some(Dialect::Buffers),
            _ => None,
        }
    }

    /// Those that a card names, in its order: what version 1.0 says, then what version 0.3 says.
    pub(super) fn all(card: &Value) -> Vec<Self> {
        let list = |key: &str| card.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let mut all: Vec<Interface> = Vec::new();
        let mut add = |interface: Interface| {
            if !all.contains(&interface) {
                all.push(interface);
            }
        };
        for said in list("supportedInterfaces") {
            let (Some(url), Some(binding)) = (text(&said, &["url"]), text(&said, &["protocolBinding"]))
            else {
                continue;
            };
            let version = text(&said, &["protocolVersion"]).filter(|version| !version.is_empty());
            add(Interface {
                binding: Binding::parse(&binding),
                url,
                version: ProtocolVersion::parse(version.as_deref().unwrap_or("1.0")),
                tenant: text(&said, &["tenant"]).filter(|tenant| !tenant.is_empty()),
            });
        }
        let version = text(card, &["protocolVersion"]);
        let version = ProtocolVersion::parse(version.as_deref().unwrap_or("0.3"));
        let mut old = |url: String, binding: Option<String>| {
            let binding = Binding::parse(binding.as_deref().unwrap_or("JSONRPC"));
            add(Interface { binding, url, version: version.clone(), tenant: None });
        };
        if let Some(url) = text(card, &["url"]) {
            old(url, text(card, &["preferredTransport"]));
        }
        for said in list("additionalInterfaces") {
            if let (Some(url), Some(transport)) = (text(&said, &["url"]), text(&said, &["transport"])) {
                old(url, Some(transport));
            }
        }
        all
    }
}

impl Binding {
    fn parse(word: &str) -> Self {
        match word.to_ascii_uppercase().as_str() {
            "JSONRPC" => Binding::JsonRpc,
            "HTTP+JSON" => Binding::Rest,
            "GRPC" => Binding::Grpc,
            _ => Binding::Other(word.to_owned()),
        }
    }
}

impl ProtocolVersion {
    fn parse(word: &str) -> Self {
        match word.trim().trim_start_matches('v').split('.').next() {
            Some("1") => ProtocolVersion::V1,
            Some("0") => ProtocolVersion::V03,
            _ => ProtocolVersion::Other(word.to_owned()),
        }
    }

    /// What the header says.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            ProtocolVersion::V1 => "1.0",
            ProtocolVersion::V03 => "0.3",
            ProtocolVersion::Other(word) => word,
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binding = match &self.binding {
            Binding::JsonRpc => "JSONRPC",
            Binding::Rest => "HTTP+JSON",
            Binding::Grpc => "GRPC",
            Binding::Other(word) => word,
        };
        f.write_str(&sessile::text::shown(format_args!("{binding} {}", self.version.as_str())))
    }
}
