//! Interfaces of an agent: URL, binding and version.

use std::fmt;

use serde_json::Value;

use super::dialect::Dialect;
use super::field::{list, non_empty, string};

/// Mapping of requests to HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtocolBinding {
    /// JSON-RPC 2.0: every request is a POST to one URL.
    JsonRpc,
    /// HTTP+JSON: a URL for each resource.
    Rest,
    /// gRPC; not supported.
    Grpc,
    /// Any other binding; not supported.
    Other(String),
}

/// Version of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtocolVersion {
    /// 1.x.
    V1,
    /// 0.3 and earlier.
    V03,
    /// Any other version; not supported.
    Other(String),
}

/// Endpoint of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInterface {
    /// Mapping of requests to HTTP.
    pub binding: ProtocolBinding,
    /// URL of the endpoint.
    pub url: String,
    /// Version of the protocol.
    pub version: ProtocolVersion,
    /// Tenant that every request names.
    pub tenant: Option<String>,
}

impl AgentInterface {
    /// JSON dialect; `None` if the interface is not supported.
    pub fn dialect(&self) -> Option<Dialect> {
        match (&self.version, &self.binding) {
            (ProtocolVersion::V1, ProtocolBinding::JsonRpc | ProtocolBinding::Rest) => Some(Dialect::V1),
            (ProtocolVersion::V03, ProtocolBinding::JsonRpc) => Some(Dialect::V03JsonRpc),
            (ProtocolVersion::V03, ProtocolBinding::Rest) => Some(Dialect::V03Rest),
            _ => None,
        }
    }

    /// Interfaces of a card in its order: the fields of version 1.0, then those of version 0.3. Duplicates are dropped.
    pub fn all(card: &Value) -> Vec<Self> {
        let mut all: Vec<AgentInterface> = Vec::new();
        let mut add = |interface: AgentInterface| {
            if !all.contains(&interface) {
                all.push(interface);
            }
        };
        for entry in list(card, "supportedInterfaces") {
            // An entry without both cannot be called, and the others still can.
            let (Some(url), Some(binding)) = (string(entry, &["url"]), string(entry, &["protocolBinding"]))
            else {
                continue;
            };
            let version = non_empty(entry, "protocolVersion");
            add(AgentInterface {
                binding: ProtocolBinding::parse(&binding),
                url,
                // The list of interfaces is a field of version 1.0.
                version: ProtocolVersion::parse(version.as_deref().unwrap_or("1.0")),
                tenant: non_empty(entry, "tenant"),
            });
        }
        let version = string(card, &["protocolVersion"]);
        // Older cards name no version.
        let version = ProtocolVersion::parse(version.as_deref().unwrap_or("0.3"));
        let mut old = |url: String, binding: Option<String>| {
            // The default transport of version 0.3.
            let binding = ProtocolBinding::parse(binding.as_deref().unwrap_or("JSONRPC"));
            add(AgentInterface { binding, url, version: version.clone(), tenant: None });
        };
        if let Some(url) = string(card, &["url"]) {
            old(url, string(card, &["preferredTransport"]));
        }
        for entry in list(card, "additionalInterfaces") {
            if let (Some(url), Some(transport)) = (string(entry, &["url"]), string(entry, &["transport"])) {
                old(url, Some(transport));
            }
        }
        all
    }
}

impl ProtocolBinding {
    /// Supported binding by its name in cards, or by the name that people type.
    pub fn named(word: &str) -> Option<Self> {
        match word.to_ascii_uppercase().as_str() {
            "JSONRPC" | "JSON-RPC" => Some(ProtocolBinding::JsonRpc),
            "HTTP+JSON" | "HTTP-JSON" | "REST" => Some(ProtocolBinding::Rest),
            "GRPC" => Some(ProtocolBinding::Grpc),
            _ => None,
        }
    }

    fn parse(word: &str) -> Self {
        match word.to_ascii_uppercase().as_str() {
            "JSONRPC" => ProtocolBinding::JsonRpc,
            "HTTP+JSON" => ProtocolBinding::Rest,
            "GRPC" => ProtocolBinding::Grpc,
            _ => ProtocolBinding::Other(word.to_owned()),
        }
    }
}

impl ProtocolVersion {
    /// Supported version by its number: 1.x, or 0.3.
    pub fn named(word: &str) -> Option<Self> {
        let is_number = word.split('.').all(|piece| piece.parse::<u16>().is_ok());
        match ProtocolVersion::parse(word) {
            ProtocolVersion::Other(_) => None,
            version => is_number.then_some(version),
        }
    }

    fn parse(word: &str) -> Self {
        // Only the major version decides on the dialect.
        match word.trim().trim_start_matches('v').split('.').next() {
            Some("1") => ProtocolVersion::V1,
            Some("0") => ProtocolVersion::V03,
            _ => ProtocolVersion::Other(word.to_owned()),
        }
    }

    /// Value of the header `A2A-Version`.
    pub fn as_str(&self) -> &str {
        match self {
            ProtocolVersion::V1 => "1.0",
            ProtocolVersion::V03 => "0.3",
            ProtocolVersion::Other(word) => word,
        }
    }
}

impl fmt::Display for AgentInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binding = match &self.binding {
            ProtocolBinding::JsonRpc => "JSONRPC",
            ProtocolBinding::Rest => "HTTP+JSON",
            ProtocolBinding::Grpc => "GRPC",
            ProtocolBinding::Other(word) => word,
        };
        write!(f, "{binding} {}", self.version.as_str())
    }
}
