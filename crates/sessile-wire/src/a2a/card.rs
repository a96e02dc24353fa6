//! Agent cards: how an agent describes itself.

use serde_json::Value;

use super::field::{flag, list, string};
use super::interface::AgentInterface;
use super::scheme::SecurityScheme;

/// Card of an agent, of either version.
#[derive(Debug, Clone)]
pub struct AgentCard {
    /// Card as the agent sent it.
    pub raw: Value,
    /// Name of the agent.
    pub name: String,
    /// Purpose of the agent.
    pub description: String,
    /// Version of the agent itself.
    pub version: String,
    /// Interfaces in the order of the agent's preference.
    pub interfaces: Vec<AgentInterface>,
    /// Whether the agent streams replies.
    pub streaming: bool,
    /// Whether the agent sends push notifications.
    pub push: bool,
    /// Whether authenticated callers get an extended card.
    pub extended: bool,
    /// Authentication schemes that the agent accepts.
    pub schemes: Vec<SecurityScheme>,
    /// Skills of the agent.
    pub skills: Vec<AgentSkill>,
    /// URIs of the extensions that the agent supports.
    pub extensions: Vec<String>,
    /// URIs of the extensions without which the agent refuses requests.
    pub required_extensions: Vec<String>,
}

/// Skill of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSkill {
    /// Id of the skill.
    pub id: String,
    /// Name of the skill; its id if it has none.
    pub name: String,
    /// Description of the skill.
    pub description: String,
    /// Keywords.
    pub tags: Vec<String>,
}

impl AgentCard {
    /// Parses a card. Returns `None` for other JSON: a card has a name, and at least one field that only cards have.
    pub fn read(raw: Value) -> Option<Self> {
        let name = string(&raw, &["name"])?;
        let is_card = ["supportedInterfaces", "url", "capabilities", "skills"];
        if !is_card.iter().any(|key| raw.get(key).is_some()) {
            return None;
        }
        let capabilities = raw.get("capabilities").cloned().unwrap_or_default();
        Some(AgentCard {
            name,
            description: string(&raw, &["description"]).unwrap_or_default(),
            version: string(&raw, &["version"]).unwrap_or_default(),
            interfaces: AgentInterface::all(&raw),
            streaming: flag(&capabilities, "streaming"),
            push: flag(&capabilities, "pushNotifications"),
            // Version 0.3 has the flag at the top of the card, version 1.0 among the capabilities.
            extended: flag(&capabilities, "extendedAgentCard")
                || flag(&raw, "supportsAuthenticatedExtendedCard"),
            schemes: SecurityScheme::all(&raw),
            skills: list(&raw, "skills").iter().filter_map(AgentSkill::read).collect(),
            extensions: list(&capabilities, "extensions")
                .iter()
                .filter_map(|entry| string(entry, &["uri"]))
                .collect(),
            required_extensions: list(&capabilities, "extensions")
                .iter()
                .filter(|entry| flag(entry, "required"))
                .filter_map(|entry| string(entry, &["uri"]))
                .collect(),
            raw,
        })
    }
}

impl AgentSkill {
    fn read(raw: &Value) -> Option<Self> {
        let id = string(raw, &["id"])?;
        Some(AgentSkill {
            name: string(raw, &["name"]).unwrap_or_else(|| id.clone()),
            description: string(raw, &["description"]).unwrap_or_default(),
            tags: list(raw, "tags").iter().filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
            id,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::a2a::{ProtocolBinding, ProtocolVersion};

    fn interface(
        binding: ProtocolBinding,
        url: &str,
        version: ProtocolVersion,
        tenant: Option<&str>,
    ) -> AgentInterface {
        AgentInterface { binding, url: url.to_owned(), version, tenant: tenant.map(str::to_owned) }
    }

    #[test]
    fn version_1_card_lists_its_interfaces() {
        let card = AgentCard::read(json!({
            "name": "a", "version": "7", "x-unknown": [1],
            "supportedInterfaces": [
                {"url": "https://a.example/g", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                {"url": "https://a.example/r", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0.1", "tenant": "t"},
                {"url": "https://a.example/j", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
                {"url": "https://a.example/n", "protocolBinding": "JSONRPC", "protocolVersion": "2.0"},
                {"url": "https://a.example/x", "protocolBinding": "urn:x", "protocolVersion": ""}, {}, 7,
            ],
            "url": "https://a.example/j", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0",
            "capabilities": {"streaming": true, "extensions": [{"uri": "urn:e"}, {"uri": "urn:r", "required": true}],
                             "extendedAgentCard": true},
            "skills": [{"id": "s", "tags": ["t"]}, {}],
        }))
        .unwrap();
        let expected = [
            interface(ProtocolBinding::Grpc, "https://a.example/g", ProtocolVersion::V1, None),
            interface(ProtocolBinding::Rest, "https://a.example/r", ProtocolVersion::V1, Some("t")),
            interface(ProtocolBinding::JsonRpc, "https://a.example/j", ProtocolVersion::V03, None),
            interface(
                ProtocolBinding::JsonRpc,
                "https://a.example/n",
                ProtocolVersion::Other("2.0".into()),
                None,
            ),
            interface(
                ProtocolBinding::Other("urn:x".into()),
                "https://a.example/x",
                ProtocolVersion::V1,
                None,
            ),
        ];
        assert_eq!(card.interfaces, expected);
        assert!(card.streaming && card.extended && !card.push);
        assert_eq!((card.extensions.join(" "), card.skills.len()), ("urn:e urn:r".to_owned(), 1));
        assert_eq!(card.required_extensions, ["urn:r"]);
        assert_eq!(card.raw["x-unknown"], json!([1]));
    }

    #[test]
    fn version_03_card_lists_the_preferred_interface_first() {
        let card = AgentCard::read(json!({
            "name": "a", "url": "https://a.example/r", "preferredTransport": "HTTP+JSON", "protocolVersion": "0.3.0",
            "additionalInterfaces": [
                {"url": "https://a.example/r", "transport": "HTTP+JSON"},
                {"url": "https://a.example/j", "transport": "JSONRPC"},
            ],
            "capabilities": {"pushNotifications": true}, "supportsAuthenticatedExtendedCard": true,
        }))
        .unwrap();
        let expected = [
            interface(ProtocolBinding::Rest, "https://a.example/r", ProtocolVersion::V03, None),
            interface(ProtocolBinding::JsonRpc, "https://a.example/j", ProtocolVersion::V03, None),
        ];
        assert_eq!(card.interfaces, expected);
        assert!(card.push && card.extended && !card.streaming);
    }

    #[test]
    fn other_json_is_not_a_card() {
        for raw in [json!({"name": "package", "version": "1"}), json!([]), json!({"url": "x"}), json!(null)] {
            assert!(AgentCard::read(raw.clone()).is_none(), "{raw}");
        }
    }
}
