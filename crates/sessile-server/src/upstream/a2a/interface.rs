//! Interface of an agent that the service sends requests to.

use serde_json::Value;
use sessile_wire::a2a::{AgentInterface, AgentRequest, Dialect, HttpCall, ProtocolBinding};

use super::super::UpstreamError;
use super::super::connect::UpstreamSite;

/// Interface of an agent on the origin that was configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::upstream) struct UpstreamInterface {
    /// Interface of the card, with a path in place of its URL.
    interface: AgentInterface,
    dialect: Dialect,
    pub(super) can_stream: bool,
}

impl UpstreamInterface {
    /// First interface of a card that is supported and on the agent's own origin: requests go nowhere else.
    pub(super) fn choose(card: &Value, site: &UpstreamSite) -> Result<Self, UpstreamError> {
        let can_stream = card.pointer("/capabilities/streaming").and_then(Value::as_bool).unwrap_or(false);
        let interfaces = AgentInterface::all(card);
        for interface in &interfaces {
            if let (Some(dialect), Some(path)) = (interface.dialect(), site.path_of(&interface.url)) {
                let interface = AgentInterface { url: path, ..interface.clone() };
                return Ok(UpstreamInterface { interface, dialect, can_stream });
            }
        }
        let offered: Vec<String> =
            interfaces.iter().map(|interface| format!("{interface} at {}", interface.url)).collect();
        let why = "the agent's card has no supported interface of the same origin";
        Err(UpstreamError::Unusable(format!("{why}: {}", offered.join(", "))))
    }

    /// HTTP request, with a path in place of its URL.
    pub(super) fn call(&self, request: &AgentRequest<'_>) -> Result<HttpCall, UpstreamError> {
        let call = request.call(&self.interface, self.dialect);
        call.map_err(|_| UpstreamError::Unusable("invalid id".to_owned()))
    }

    /// HTTP request that polls a task.
    pub(super) fn poll(&self, task: &str) -> Result<HttpCall, UpstreamError> {
        let history_length = if self.is_rest() { None } else { Some(0) };
        self.call(&AgentRequest::Task { id: task, history_length })
    }

    /// JSON dialect of the agent.
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether responses are bare objects; JSON-RPC wraps them.
    pub(super) fn is_rest(&self) -> bool {
        self.interface.binding == ProtocolBinding::Rest
    }

    /// Value of the header `A2A-Version`.
    pub(super) fn version(&self) -> &str {
        self.interface.version.as_str()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sessile_wire::a2a::{OutgoingMessage, Part};

    use super::*;

    #[test]
    fn first_supported_interface_of_the_same_origin_is_chosen() {
        let site = UpstreamSite::new("https://a.example/x", None).unwrap();
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
        let chosen = UpstreamInterface::choose(&card, &site).unwrap();
        assert!(chosen.dialect() == Dialect::V1 && chosen.is_rest() && chosen.can_stream);
        assert_eq!((chosen.interface.url.as_str(), chosen.interface.tenant.as_deref()), ("/r", Some("t")));
        let old = json!({ "url": "https://a.example:443/old", "preferredTransport": "HTTP+JSON" });
        let chosen = UpstreamInterface::choose(&old, &site).unwrap();
        assert_eq!((chosen.dialect(), chosen.interface.url.as_str()), (Dialect::V03Rest, "/old"));
        for none in [json!({}), json!([]), json!({ "url": "https://b.example/" }), json!({ "url": 7 })] {
            assert!(UpstreamInterface::choose(&none, &site).is_err(), "{none}");
        }
    }

    #[test]
    fn requests_stay_below_the_path_of_the_interface() {
        let site = UpstreamSite::new("https://a.example/", None).unwrap();
        let with = |binding: &str, version: &str, tenant: &str| {
            let one = json!({ "url": "https://a.example/x/", "protocolBinding": binding, "protocolVersion": version, "tenant": tenant });
            UpstreamInterface::choose(&json!({ "supportedInterfaces": [one] }), &site).unwrap()
        };
        let message =
            OutgoingMessage { parts: vec![Part::Text("hi".to_owned())], ..OutgoingMessage::default() };
        let (send, stream) = (AgentRequest::Send(&message), AgentRequest::Stream(&message));
        let call = with("JSONRPC", "0.3", "").call(&stream).unwrap();
        assert_eq!((call.url.as_str(), &call.body.unwrap()["method"]), ("/x/", &json!("message/stream")));
        assert_eq!(with("HTTP+JSON", "0.3", "").call(&send).unwrap().url, "/x/v1/message:send");
        let one = with("HTTP+JSON", "1.0", "a/b");
        assert_eq!(one.call(&stream).unwrap().url, "/x/a%2Fb/message:stream");
        assert_eq!(one.poll("../t?").unwrap().url, "/x/a%2Fb/tasks/..%2Ft%3F");
        let one = with("JSONRPC", "1.0", "a/b");
        assert_eq!(one.poll("t").unwrap().body.unwrap()["params"]["tenant"], "a/b");
        assert!(one.poll("..").is_ok() && with("HTTP+JSON", "1.0", "").poll("..").is_err());
    }
}
