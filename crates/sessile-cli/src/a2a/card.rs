//! What an agent says about itself.

use serde_json::Value;

use super::interface::Interface;
use super::part::text;
use super::scheme::Scheme;

/// An agent's card, of either version.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    /// All that it says.
    pub(crate) raw: Value,
    /// The agent's name.
    pub(crate) name: String,
    /// What the agent is for.
    pub(crate) description: String,
    /// The agent's own version.
    pub(crate) version: String,
    /// How it can be talked to, what it likes best first.
    pub(crate) interfaces: Vec<Interface>,
    /// Whether it streams.
    pub(crate) streaming: bool,
    /// Whether it sends notifications.
    pub(crate) push: bool,
    /// Whether there is more in it for those whom it knows.
    pub(crate) extended: bool,
    /// How it wants its callers to authenticate.
    pub(crate) schemes: Vec<Scheme>,
    /// What it can do.
    pub(crate) skills: Vec<Skill>,
    /// The extensions that it supports, by their addresses.
    pub(crate) extensions: Vec<String>,
}

/// Something that an agent can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skill {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// What it is.
    pub(crate) description: String,
    /// Words for it.
    pub(crate) tags: Vec<String>,
}

impl Card {
    /// Reads a card; nothing if this is none: a card has a name, and says where the agent is.
    pub(crate) fn read(raw: Value) -> Option<Self> {
        let name = text(&raw, &["name"])?;
        let is_card = ["supportedInterfaces", "url", "capabilities", "skills"];
        if !is_card.iter().any(|key| raw.get(key).is_some()) {
            return None;
        }
        let able = raw.get("capabilities").cloned().unwrap_or_default();
        let is = |said: &Value, key: &str| said.get(key).and_then(Value::as_bool).unwrap_or(false);
        Some(Card {
            name,
            description: text(&raw, &["description"]).unwrap_or_default(),
            version: text(&raw, &["version"]).unwrap_or_default(),
            interfaces: Interface::all(&raw),
            streaming: is(&able, "streaming"),
            push: is(&able, "pushNotifications"),
            extended: is(&able, "extendedAgentCard") || is(&raw, "supportsAuthenticatedExtendedCard"),
            schemes: Scheme::all(&raw),
            skills: list(&raw, "skills").filter_map(Skill::read).collect(),
            extensions: list(&able, "extensions").filter_map(|said| text(said, &["uri"])).collect(),
            raw,
        })
    }
}

impl Skill {
    fn read(raw: &Value) -> Option<Self> {
        let id = text(raw, &["id"])?;
        Some(Skill {
            name: text(raw, &["name"]).unwrap_or_else(|| id.clone()),
            description: text(raw, &["description"]).unwrap_or_default(),
            tags: list(raw, "tags").filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
            id,
        })
    }
}

fn list<'a>(raw: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    raw.get(key).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::a2a::{Binding, ProtocolVersion};

    fn interface(binding: Binding, url: &str, version: ProtocolVersion, tenant: Option<&str>) -> Interface {
        Interface { binding, url: url.to_owned(), version, tenant: tenant.map(str::to_owned) }
    }

    #[test]
    fn version_one_names_its_interfaces_in_a_list() {
        let card = Card::read(json!({
            "name": "a", "version": "7", "x-unknown": [1],
            "supportedInterfaces": [
                {"url": "https://a.example/g", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                {"url": "https://a.example/r", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0.1", "tenant": "t"},
                {"url": "https://a.example/j", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
                {"url": "https://a.example/n", "protocolBinding": "JSONRPC", "protocolVersion": "2.0"},
                {"url": "https://a.example/x", "protocolBinding": "urn:x", "protocolVersion": ""}, {}, 7,
            ],
            "url": "https://a.example/j", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0",
            "capabilities": {"streaming": true, "extensions": [{"uri": "urn:e"}], "extendedAgentCard": true},
            "skills": [{"id": "s", "tags": ["t"]}, {}],
        }))
        .unwrap();
        let expected = [
            interface(Binding::Grpc, "https://a.example/g", ProtocolVersion::V1, None),
            interface(Binding::Rest, "https://a.example/r", ProtocolVersion::V1, Some("t")),
            interface(Binding::JsonRpc, "https://a.example/j", ProtocolVersion::V03, None),
            interface(Binding::JsonRpc, "https://a.example/n", ProtocolVersion::Other("2.0".into()), None),
            interface(Binding::Other("urn:x".into()), "https://a.example/x", ProtocolVersion::V1, None),
        ];
        assert_eq!(card.interfaces, expected);
        assert!(card.streaming && card.extended && !card.push);
        assert_eq!((card.extensions.as_slice(), card.skills.len()), (&["urn:e".to_owned()][..], 1));
        assert_eq!(card.raw["x-unknown"], json!([1]));
    }

    #[test]
    fn version_three_names_the_best_and_then_others() {
        let card = Card::read(json!({
            "name": "a", "url": "https://a.example/r", "preferredTransport": "HTTP+JSON", "protocolVersion": "0.3.0",
            "additionalInterfaces": [
                {"url": "https://a.example/r", "transport": "HTTP+JSON"},
                {"url": "https://a.example/j", "transport": "JSONRPC"},
            ],
            "capabilities": {"pushNotifications": true}, "supportsAuthenticatedExtendedCard": true,
        }))
        .unwrap();
        let expected = [
            interface(Binding::Rest, "https://a.example/r", ProtocolVersion::V03, None),
            interface(Binding::JsonRpc, "https://a.example/j", ProtocolVersion::V03, None),
        ];
        assert_eq!(card.interfaces, expected);
        assert!(card.push && card.extended && !card.streaming);
    }

    #[test]
    fn not_every_json_is_a_card() {
        for raw in [json!({"name": "package", "version": "1"}), json!([]), json!({"url": "x"}), json!(null)] {
            assert!(Card::read(raw.clone()).is_none(), "{raw}");
        }
    }
}
