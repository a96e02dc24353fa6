//! Client of one agent.

use std::sync::Arc;

use serde_json::Value;
use sessile::vault::Secret;
use sessile_wire::a2a::{
    AgentCard, AgentInterface, AgentRequest, Dialect, HttpMethod, ProtocolBinding, ProtocolVersion,
};
use ureq::http::Method;

use super::card_cache::CardCache;
use super::credential_provider::CredentialProvider;
use super::discovery;
use super::error::A2aError;
use super::limits::ReplyLimits;
use super::sent_secrets::SentSecrets;
use super::transport::{Transport, TransportRequest};
use crate::http::{HttpAddress, HttpClient, HttpResponse};

/// Options of the user for the requests to an agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientOptions {
    /// URIs of the extensions that every request activates.
    pub(crate) extensions: Vec<String>,
    /// Headers of every request to the origin that the user named. They may be secret.
    pub(crate) headers: Vec<(String, Secret)>,
    /// Limits of a reply.
    pub(crate) limits: ReplyLimits,
    /// Whether plain http to an agent on another machine is allowed.
    pub(crate) allow_http: bool,
    /// Bindings in the order of the user's preference; the card's order decides among others.
    pub(crate) bindings: Vec<ProtocolBinding>,
    /// Version of the protocol that the user requires.
    pub(crate) version: Option<ProtocolVersion>,
    /// Secrets of the requests, which no error text repeats.
    pub(crate) secrets: Arc<SentSecrets>,
}

impl ClientOptions {
    /// Address of the agent that the user named.
    fn named_address(&self, url: &str) -> Result<HttpAddress, A2aError> {
        Ok(if self.allow_http { HttpAddress::parse_plain(url)? } else { HttpAddress::parse(url)? })
    }
}

/// Client of one agent, over the first supported interface of its card.
pub(crate) struct AgentClient<'a> {
    /// Card of the agent.
    pub(crate) card: AgentCard,
    /// Interface that requests go to.
    pub(crate) interface: AgentInterface,
    pub(super) dialect: Dialect,
    pub(super) options: ClientOptions,
    http: &'a HttpClient,
    auth: &'a dyn CredentialProvider,
    named: HttpAddress,
    address: HttpAddress,
}

impl<'a> AgentClient<'a> {
    /// Client of the agent at this URL, with the card that is found there.
    #[cfg(test)]
    pub(crate) fn open(
        http: &'a HttpClient,
        url: &str,
        auth: &'a dyn CredentialProvider,
        options: ClientOptions,
    ) -> Result<Self, A2aError> {
        let card = AgentClient::find_card(http, url, auth, &options, None)?;
        AgentClient::from_card(http, url, auth, options, card)
    }

    /// Finds the card of the agent at this URL.
    pub(crate) fn find_card(
        http: &HttpClient,
        url: &str,
        auth: &dyn CredentialProvider,
        options: &ClientOptions,
        cache: Option<&dyn CardCache>,
    ) -> Result<AgentCard, A2aError> {
        let named = options.named_address(url)?;
        let wire = Transport::new(http, auth, options, &named);
        // Headers of the user may change the card.
        let cache = cache.filter(|_| options.headers.is_empty());
        discovery::find_card(&wire, &options.extensions, cache)
            .map_err(|error| error.redacted(&options.secrets))
    }

    /// Client of an agent whose card is known.
    pub(crate) fn from_card(
        http: &'a HttpClient,
        url: &str,
        auth: &'a dyn CredentialProvider,
        options: ClientOptions,
        card: AgentCard,
    ) -> Result<Self, A2aError> {
        let named = options.named_address(url)?;
        let (interface, dialect, address) = choose(&card, &named, &options)?;
        let is_declared = |uri: &&String| options.extensions.contains(uri);
        let missing: Vec<String> =
            card.required_extensions.iter().filter(|uri| !is_declared(uri)).cloned().collect();
        if !missing.is_empty() {
            return Err(A2aError::ExtensionsRequired { uris: missing });
        }
        Ok(AgentClient { card, interface, dialect, options, http, auth, named, address })
    }

    /// Whether the interface has the origin that the user named.
    pub(crate) fn is_at_home(&self) -> bool {
        self.named.is_same_origin(&self.address)
    }

    /// Sends a request and returns a response with a status of success.
    pub(super) fn ask(&self, request: &AgentRequest<'_>) -> Result<HttpResponse, A2aError> {
        let call = request.call(&self.interface, self.dialect).map_err(A2aError::from)?;
        let is_stream = request.is_stream();
        // An agent may answer a streaming request without a stream.
        let accept = if is_stream { "text/event-stream, application/json;q=0.9" } else { "application/json" };
        let version = self.interface.version.as_str().to_owned();
        let mut headers = vec![("accept", accept.to_owned()), ("a2a-version", version)];
        if is_stream {
            // As browsers do for event streams: one that a proxy has cached would repeat old events.
            headers.push(("cache-control", "no-store".to_owned()));
        }
        if !self.options.extensions.is_empty() {
            let name = match self.interface.version {
                // Version 1.0 dropped the prefix of the header.
                ProtocolVersion::V1 => "a2a-extensions",
                _ => "x-a2a-extensions",
            };
            headers.push((name, self.options.extensions.join(", ")));
        }
        let limits = self.options.limits;
        let wire = Transport::new(self.http, self.auth, &self.options, &self.named);
        let coming = wire.ask(TransportRequest {
            method: http_method(call.method),
            address: self.named.parse_beside(&call.url)?,
            headers,
            body: call.body.as_ref(),
            patience: limits.patience(is_stream),
            // A message may be confidential, and a credential was chosen for this origin.
            may_leave_origin: false,
        })?;
        match coming.status {
            200..=299 => Ok(coming),
            _ => Err(A2aError::of_response(coming, wire.has_sent_credential())
                .with_schemes(&self.card.schemes)
                .redacted(&self.options.secrets)),
        }
    }

    /// Sends a request and parses the response.
    pub(super) fn answer(&self, request: &AgentRequest<'_>) -> Result<Value, A2aError> {
        let mut coming = self.ask(request)?;
        let said = coming.read_all(self.options.limits.bytes)?;
        self.unwrapped(&said)
    }
}

/// First interface that is supported and that requests may be sent to: by the user's preference, then in the card's order.
fn choose(
    card: &AgentCard,
    named: &HttpAddress,
    options: &ClientOptions,
) -> Result<(AgentInterface, Dialect, HttpAddress), A2aError> {
    let is_version =
        |one: &&AgentInterface| options.version.as_ref().is_none_or(|wanted| *wanted == one.version);
    let rank = |one: &AgentInterface| options.bindings.iter().position(|binding| *binding == one.binding);
    let mut interfaces: Vec<&AgentInterface> = card.interfaces.iter().filter(is_version).collect();
    // The sort is stable: those without a preference stay in the card's order.
    interfaces.sort_by_key(|one| rank(one).unwrap_or(usize::MAX));
    let mut refused: Option<A2aError> = None;
    for interface in interfaces {
        let Some(dialect) = interface.dialect() else { continue };
        match named.parse_beside(&interface.url) {
            Ok(address) => return Ok((interface.clone(), dialect, address)),
            // A card may list an insecure interface before a usable one.
            Err(error) => {
                refused = refused.or(Some(A2aError::InvalidInterface {
                    url: interface.url.clone(),
                    reason: error.to_string(),
                }));
            }
        }
    }
    Err(refused.unwrap_or_else(|| A2aError::NoUsableInterface {
        offered: card.interfaces.iter().map(ToString::to_string).collect(),
    }))
}

fn http_method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Delete => Method::DELETE,
    }
}
