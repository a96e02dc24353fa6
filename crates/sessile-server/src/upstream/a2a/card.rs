//! Which of an agent's interfaces is asked.

use serde_json::Value;

use super::super::Fault;
use super::super::connect::Site;

/// The ways in which agents write the same things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream) enum Dialect {
    /// Version 1.0, over any binding.
    One,
    /// Version 0.3 over JSON-RPC: objects say their kind.
    Kinds,
    /// Version 0.3 over HTTP+JSON: made from protocol buffers, with names of its own.
    Buffers,
}

/// How an agent is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::upstream) struct Interface {
    pub(super) dialect: Dialect,
    /// Whether each thing has an address of its own: HTTP+JSON. Else it is JSON-RPC.
    pub(super) is_rest: bool,
    pub(super) path: String,
    /// Whose part of the agent it is: repeated in every request.
    pub(super) tenant: Option<String>,
    pub(super) streams: bool,
}

impl Interface {
    /// The first interface of a card that is understood and of the agent's own origin: nothing goes anywhere else.
    pub(super) fn choose(card: &Value, site: &Site) -> Result<Self, Fault> {
        let streams = card.pointer("/capabilities/streaming").and_then(Value::as_bool).unwrap_or(false);
        let mut offered = Vec::new();
        for (url, binding, version, tenant) in named(card) {
            offered.push(format!("{binding} {version} at {url}"));
            let is_rest = match binding.to_ascii_uppercase().as_str() {
                "JSONRPC" => false,
                "HTTP+JSON" => true,
                _ => continue,
            };
            let dialect = match (version.trim_start_matches('v').split('.').next(), is_rest) {
                (Some("1"), _) => Dialect::One,
                (Some("0"), false) => Dialect::Kinds,
                (Some("0"), true) => Dialect::Buffers,
                _ => continue,
            };
            if let Some(path) = site.path_of(url) {
                let tenant = tenant.filter(|tenant| !tenant.is_empty()).map(str::to_owned);
                return Ok(Interface { dialect, is_rest, path, tenant, streams });
            }
        }
        let why = "the agent's card names no interface that is understood and of the same origin";
        Err(Fault::Unusable(format!("{why}: {}", offered.join(", "))))
    }

    /// What the header says.
    pub(super) fn version(&self) -> &'static str {
        if self.dialect == Dialect::One { "1.0" } else { "0.3" }
    }
}

/// Address, binding, version and tenant: what version 1.0 says, then what version 0.3 says.
fn named(card: &Value) -> Vec<(&str, &str, &str, Option<&str>)> {
    let list = |key: &str| card.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut all = Vec::new();
    for said in list("supportedInterfaces") {
        if let (Some(url), Some(binding)) = (said["url"].as_str(), said["protocolBinding"].as_str()) {
            let version = said["protocolVersion"].as_str().filter(|version| !version.is_empty());
            all.push((url, binding, version.unwrap_or("1.0"), said["tenant"].as_str()));
        }
    }
    let version = card["protocolVersion"].as_str().unwrap_or("0.3");
    if let Some(url) = card["url"].as_str() {
        all.push((url, card["preferredTransport"].as_str().unwrap_or("JSONRPC"), version, None));
    }
    for said in list("additionalInterfaces") {
        if let (Some(url), Some(binding)) = (said["url"].as_str(), said["transport"].as_str()) {
            all.push((url, binding, version, None));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_that_is_understood_and_at_home_is_asked() {
        let site = Site::new("https://a.example/x", None).unwrap();
        let one = |url: &str, binding: &str, version: &str| json!({ "url": url, "protocolBinding": binding, "protocolVersion": version, "tenant": "t" });
        let card = json!({
            "supportedInterfaces": [
                one("https://a.example/g", "GRPC", "1.0"),
                one("https://a.example/n", "JSONRPC", "2.0"),
                one("https://b.example/j", "JSONRPC", "1.0"),
                one("http://a.example/j", "JSONRPC", "1.0"),
                one("https://a.example/r", "HTTP+JSON", "1.0.1"),
            ],
            "url": "https://a.example/old", "protocolVersion": "0.3.0",
            "capabilities": { "streaming": true },
        });
        let chosen = Interface::choose(&card, &site).unwrap();
        let expected = Interface {
            dialect: Dialect::One,
            is_rest: true,
            path: "/r".to_owned(),
            tenant: Some("t".to_owned()),
            streams: true,
        };
        assert_eq!(chosen, expected);
        let old = json!({ "url": "https://a.example:443/old", "preferredTransport": "HTTP+JSON" });
        let chosen = Interface::choose(&old, &site).unwrap();
        assert_eq!((chosen.dialect, chosen.path.as_str()), (Dialect::Buffers, "/old"));
        for none in [json!({}), json!([]), json!({ "url": "https://b.example/" }), json!({ "url": 7 })] {
            assert!(Interface::choose(&none, &site).is_err(), "{none}");
        }
    }
}
