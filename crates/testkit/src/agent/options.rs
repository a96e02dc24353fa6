//! Options of an agent, and its card.

use serde_json::{Map, Value, json};

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// 1.0.
    V1,
    /// 0.3.
    V03,
}

/// Protocol binding of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentBinding {
    /// JSON-RPC, at `/rpc`.
    JsonRpc,
    /// HTTP+JSON, below `/rest`.
    Rest,
}

/// Authentication that an agent requires, and declares in its public card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AgentAuth {
    /// No isolation.
    #[default]
    None,
    /// A token.
    Bearer,
    /// A name and a password, together the secret `NAME:PASSWORD`.
    Basic,
    /// A key in the header of this name.
    ApiKeyHeader(String),
    /// A key in the query, as the parameter of this name.
    ApiKeyQuery(String),
    /// A key in the cookie of this name.
    ApiKeyCookie(String),
    /// A token of an [`OidcServer`](crate::OidcServer), which is asked whose it is.
    OAuth2 {
        /// Issuer.
        issuer: String,
        /// By a device code, which cards know only in 1.0; otherwise a client's own credentials.
        device: bool,
    },
}

/// Options of an agent.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// Interfaces of the card, in order.
    pub interfaces: Vec<(AgentBinding, Protocol)>,
    /// Required authentication.
    pub auth: AgentAuth,
    /// Accepted secrets and their accounts.
    pub accounts: Vec<(String, String)>,
    /// Whether configurations of push notifications are taken, and notifications sent.
    pub push: bool,
    /// Whether there is a card for those who are let in; it has the skill `secret` besides.
    pub extended_card: bool,
    /// The tenant that the card names (1.0 only).
    pub tenant: Option<String>,
    /// Whether the card offers streams.
    pub streaming: bool,
    /// Whether the card is at `/.well-known/agent.json` too, or, for a `ScriptedAgent`, only.
    pub older_card_path: bool,
    /// Whether streams have all that the format allows: comments, further fields, lines that end in another way, and
    /// pieces that end in the middle of a letter. Only for a `ScriptedAgent`.
    pub noisy_streams: bool,
    /// The agent's name.
    pub name: String,
    /// The origin that the card's addresses are at, where that is not the agent's own.
    pub card_origin: Option<String>,
}

impl Default for AgentOptions {
    fn default() -> Self {
        AgentOptions::of(Protocol::V1)
    }
}

impl AgentOptions {
    /// Both bindings of a version, JSON-RPC first, and nothing asked for.
    pub fn of(protocol: Protocol) -> Self {
        AgentOptions {
            interfaces: vec![(AgentBinding::JsonRpc, protocol), (AgentBinding::Rest, protocol)],
            auth: AgentAuth::None,
            accounts: Vec::new(),
            push: true,
            extended_card: false,
            tenant: None,
            streaming: true,
            older_card_path: false,
            noisy_streams: false,
            name: "Test agent".to_owned(),
            card_origin: None,
        }
    }

    /// One binding of a version only.
    #[must_use]
    pub fn only(mut self, binding: AgentBinding, protocol: Protocol) -> Self {
        self.interfaces = vec![(binding, protocol)];
        self
    }

    /// Asks for a credential, and lets this one in as this account.
    #[must_use]
    pub fn guarded(mut self, auth: AgentAuth, secret: &str, account: &str) -> Self {
        self.auth = auth;
        self.accounts.push((secret.to_owned(), account.to_owned()));
        self
    }

    /// Whether anything here is of this version.
    pub(crate) fn speaks(&self, protocol: Protocol) -> bool {
        self.interfaces.iter().any(|(_, spoken)| *spoken == protocol)
    }

    /// The card in the shape of a version; `extended` for those who are let in.
    pub(crate) fn card(&self, shape: Protocol, own: &str, extended: bool) -> Value {
        let base = self.card_origin.as_deref().unwrap_or(own);
        let mut skills = vec![skill("echo")];
        if extended {
            skills.push(skill("secret"));
        }
        let mut card = json!({
            "name": self.name,
            "description": "Does what the messages say.",
            "version": "1.2.3",
            "capabilities": {"streaming": self.streaming, "pushNotifications": self.push},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": skills,
        });
        match shape {
            Protocol::V1 => self.put_v1(&mut card, base),
            Protocol::V03 => self.put_v03(&mut card, base),
        }
        card
    }

    fn put_v1(&self, card: &mut Value, base: &str) {
        let interfaces = self.interfaces.iter().map(|(binding, protocol)| {
            let version = if *protocol == Protocol::V1 { "1.0" } else { "0.3" };
            let (url, binding) = (url(base, *binding), transport(*binding));
            let mut interface = json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
            if let (Some(tenant), Protocol::V1) = (&self.tenant, protocol) {
                interface["tenant"] = json!(tenant);
            }
            interface
        });
        card["supportedInterfaces"] = interfaces.collect();
        card["capabilities"]["extendedAgentCard"] = json!(self.extended_card);
        if let Some((name, scheme)) = self.scheme(Protocol::V1) {
            card["securitySchemes"] = object(name, scheme);
            card["securityRequirements"] = json!([{"schemes": object(name, json!({"list": []}))}]);
        }
    }

    fn put_v03(&self, card: &mut Value, base: &str) {
        // The first one is the card's own URL in 0.3; only the others are listed.
        let mut interfaces = self.interfaces.iter().filter(|(_, protocol)| *protocol == Protocol::V03);
        let (first, _) = interfaces.next().expect("an interface of 0.3");
        card["protocolVersion"] = json!("0.3.0");
        card["url"] = json!(url(base, *first));
        card["preferredTransport"] = json!(transport(*first));
        card["additionalInterfaces"] = interfaces
            .map(|(binding, _)| json!({"url": url(base, *binding), "transport": transport(*binding)}))
            .collect();
        card["supportsAuthenticatedExtendedCard"] = json!(self.extended_card);
        if let Some((name, scheme)) = self.scheme(Protocol::V03) {
            card["securitySchemes"] = object(name, scheme);
            card["security"] = json!([object(name, json!([]))]);
        }
    }

    fn scheme(&self, shape: Protocol) -> Option<(&'static str, Value)> {
        let key = |place: &str, name: &str| match shape {
            Protocol::V1 => json!({"apiKeySecurityScheme": {"location": place, "name": name}}),
            Protocol::V03 => json!({"type": "apiKey", "in": place, "name": name}),
        };
        let http = |scheme: &str| match shape {
            Protocol::V1 => json!({"httpAuthSecurityScheme": {"scheme": scheme}}),
            Protocol::V03 => json!({"type": "http", "scheme": scheme}),
        };
        Some(match &self.auth {
            AgentAuth::None => return None,
            AgentAuth::Bearer => ("bearer", http("bearer")),
            AgentAuth::Basic => ("basic", http("basic")),
            AgentAuth::ApiKeyHeader(name) => ("key", key("header", name)),
            AgentAuth::ApiKeyQuery(name) => ("key", key("query", name)),
            AgentAuth::ApiKeyCookie(name) => ("key", key("cookie", name)),
            AgentAuth::OAuth2 { issuer, device } => {
                let mut flow = json!({
                    "tokenUrl": format!("{issuer}/token"),
                    "scopes": {"api:read": "to read", "api:write": "to write"},
                });
                if *device {
                    flow["deviceAuthorizationUrl"] = json!(format!("{issuer}/device/auth"));
                }
                let flows = object(if *device { "deviceCode" } else { "clientCredentials" }, flow);
                let scheme = match shape {
                    Protocol::V1 => json!({"oauth2SecurityScheme": {"flows": flows}}),
                    Protocol::V03 => json!({"type": "oauth2", "flows": flows}),
                };
                ("oauth", scheme)
            }
        })
    }
}

fn skill(id: &str) -> Value {
    json!({"id": id, "name": id, "description": format!("Knows {id}"), "tags": ["test"]})
}

fn transport(binding: AgentBinding) -> &'static str {
    match binding {
        AgentBinding::JsonRpc => "JSONRPC",
        AgentBinding::Rest => "HTTP+JSON",
    }
}

fn url(base: &str, binding: AgentBinding) -> String {
    match binding {
        AgentBinding::JsonRpc => format!("{base}/rpc"),
        AgentBinding::Rest => format!("{base}/rest"),
    }
}

fn object(name: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value)]))
}
