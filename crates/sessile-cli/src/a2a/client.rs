//! Client of one agent.

use serde_json::Value;
use sessile::vault::Secret;
use sessile_wire::a2a::{AgentCard, AgentInterface, AgentRequest, Dialect, HttpMethod, ProtocolVersion};
use ureq::http::Method;

use super::credential_provider::CredentialProvider;
use super::discovery;
use super::error::A2aError;
use super::limits::ReplyLimits;
use super::transport::{Transport, TransportRequest};
use crate::http::{HttpAddress, HttpClient, HttpError, HttpResponse};

/// Options of the user for the requests to an agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientOptions {
    /// URIs of the extensions that every request activates.
    pub(crate) extensions: Vec<String>,
    /// Headers of every request to the origin that the user named. They may be secret.
    pub(crate) headers: Vec<(String, Secret)>,
    /// Limits of a reply.
    pub(crate) limits: ReplyLimits,
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
        let card = AgentClient::find_card(http, url, auth, &options)?;
        AgentClient::from_card(http, url, auth, options, card)
    }

    /// Finds the card of the agent at this URL.
    pub(crate) fn find_card(
        http: &HttpClient,
        url: &str,
        auth: &dyn CredentialProvider,
        options: &ClientOptions,
    ) -> Result<AgentCard, A2aError> {
        let named = HttpAddress::parse(url)?;
        let wire = Transport { http, auth, extra: &options.headers, named: &named, limits: options.limits };
        discovery::find_card(&wire, &options.extensions)
    }

    /// Client of an agent whose card is known.
    pub(crate) fn from_card(
        http: &'a HttpClient,
        url: &str,
        auth: &'a dyn CredentialProvider,
        options: ClientOptions,
        card: AgentCard,
    ) -> Result<Self, A2aError> {
        let named = HttpAddress::parse(url)?;
        let (interface, dialect, address) = choose(&card)?;
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
        let wire = Transport {
            http: self.http,
            auth: self.auth,
            extra: &self.options.headers,
            named: &self.named,
            limits,
        };
        let coming = wire.ask(TransportRequest {
            method: http_method(call.method),
            address: HttpAddress::parse(&call.url)?,
            headers,
            body: call.body.as_ref(),
            patience: limits.patience(is_stream),
            // A message may be confidential, and a credential was chosen for this origin.
            may_leave_origin: false,
        })?;
        match coming.status {
            200..=299 => Ok(coming),
            _ => Err(A2aError::of_response(coming)),
        }
    }

    /// Sends a request and parses the response.
    pub(super) fn answer(&self, request: &AgentRequest<'_>) -> Result<Value, A2aError> {
        let mut coming = self.ask(request)?;
        let said = coming.read_all(self.options.limits.bytes)?;
        self.unwrapped(&said)
    }
}

/// First interface of the card that is supported and that requests may be sent to.
fn choose(card: &AgentCard) -> Result<(AgentInterface, Dialect, HttpAddress), A2aError> {
    let mut refused: Option<HttpError> = None;
    for interface in &card.interfaces {
        let Some(dialect) = interface.dialect() else { continue };
        match HttpAddress::parse(&interface.url) {
            Ok(address) => return Ok((interface.clone(), dialect, address)),
            // A card may list an insecure interface before a usable one.
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or_else(
        || A2aError::NoUsableInterface { offered: card.interfaces.iter().map(ToString::to_string).collect() },
        A2aError::Http,
    ))
}

fn http_method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Delete => Method::DELETE,
    }
}
