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
    /// None.
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
    /// Access token of an OpenID server on this machine, which returns the user at `/whoami`.
    OAuth2 {
        /// Issuer.
        issuer: String,
        /// By a device code, which cards know only in 1.0; otherwise a client's own credentials.
        device: bool,
    },
}

/// Skill of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoSkill {
    /// Id, which is its name too.
    pub id: &'static str,
    /// Description.
    pub description: &'static str,
    /// Message that uses it.
    pub example: &'static str,
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
    /// Whether authenticated callers get an extended card with the skill `secret`.
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
    /// The agent's description.
    pub description: String,
    /// Version of the agent.
    pub version: String,
    /// Skills of the public card.
    pub skills: Vec<DemoSkill>,
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
            description: "Does what the messages say.".to_owned(),
            version: "1.2.3".to_owned(),
            skills: vec![DemoSkill { id: "echo", description: "Knows echo", example: "echo hello" }],
            card_origin: None,
        }
    }

    /// Both versions, and a card that says what to try.
    pub fn demo() -> Self {
        let skill = |id, description, example| DemoSkill { id, description, example };
        let mut options = AgentOptions::of(Protocol::V1);
        options.interfaces.extend(AgentOptions::of(Protocol::V03).interfaces);
        options.name = "Demo agent".to_owned();
        options.description =
            "Scripted agent for trials: the first word of a message selects the skill.".to_owned();
        options.version = env!("CARGO_PKG_VERSION").to_owned();
        options.skills = vec![
            skill("echo", "Reply with the text", "echo hello"),
            skill("slow", "Work for so many seconds and report the progress", "slow 5s done"),
            skill("ask", "Ask for a name before the task completes", "ask"),
            skill("stream", "Send an artifact in chunks", "stream 5 300"),
            skill("files", "Return a file, data and a link", "files"),
        ];
        options
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
    pub fn speaks(&self, protocol: Protocol) -> bool {
        self.interfaces.iter().any(|(_, spoken)| *spoken == protocol)
    }

    /// Agent card in the format of a version; `extended` for authenticated callers.
    pub fn card(&self, shape: Protocol, own: &str, extended: bool) -> Value {
        let base = self.card_origin.as_deref().unwrap_or(own);
        let mut skills: Vec<Value> = self.skills.iter().map(DemoSkill::card).collect();
        if extended {
            skills.push(DemoSkill { id: "secret", description: "Knows secret", example: "whoami" }.card());
        }
        let mut card = json!({
            "name": self.name,
            "description": self.description,
            "version": self.version,
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
        let Some((first, _)) = interfaces.next() else { return };
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

impl DemoSkill {
    fn card(&self) -> Value {
        let DemoSkill { id, description, example } = self;
        json!({"id": id, "name": id, "description": description, "tags": ["demo"], "examples": [example]})
    }
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
