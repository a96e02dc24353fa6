//! An agent that can be talked to.

use serde_json::Value;
use sessile::vault::Secret;

use super::authorize::Authorize;
use super::card::Card;
use super::dialect::Dialect;
use super::error::A2aError;
use super::find;
use super::interface::{Interface, ProtocolVersion};
use super::limits::Limits;
use super::operation::Operation;
use super::wire::{Asking, Wire};
use crate::http::{Address, Coming, Http, HttpError};

/// How an agent is talked to, apart from what it says itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// The extensions that are asked for, by their addresses.
    pub(crate) extensions: Vec<String>,
    /// Headers of every request to the origin that the user named. They may be secret.
    pub(crate) headers: Vec<(String, Secret)>,
    /// What a reply may cost.
    pub(crate) limits: Limits,
}

/// An agent, by its card and the best of its interfaces.
pub(crate) struct Agent<'a> {
    /// What it says about itself.
    pub(crate) card: Card,
    /// How it is talked to.
    pub(crate) interface: Interface,
    pub(super) dialect: Dialect,
    pub(super) options: Options,
    http: &'a Http,
    auth: &'a dyn Authorize,
    named: Address,
    address: Address,
}

impl<'a> Agent<'a> {
    /// Finds the card of the agent at this address, and chooses an interface.
    #[cfg(test)]
    pub(crate) fn open(
        http: &'a Http,
        url: &str,
        auth: &'a dyn Authorize,
        options: Options,
    ) -> Result<Self, A2aError> {
        let card = Agent::find_card(http, url, auth, &options)?;
        Agent::from_card(http, url, auth, options, card)
    }

    /// Finds the card of the agent at this address.
    pub(crate) fn find_card(
        http: &Http,
        url: &str,
        auth: &dyn Authorize,
        options: &Options,
    ) -> Result<Card, A2aError> {
        let named = Address::parse(url)?;
        let wire = Wire { http, auth, extra: &options.headers, named: &named, limits: options.limits };
        find::card(&wire, &options.extensions)
    }

    /// An agent whose card is known already.
    pub(crate) fn from_card(
        http: &'a Http,
        url: &str,
        auth: &'a dyn Authorize,
        options: Options,
        card: Card,
    ) -> Result<Self, A2aError> {
        let named = Address::parse(url)?;
        let (interface, dialect, address) = choose(&card)?;
        Ok(Agent { card, interface, dialect, options, http, auth, named, address })
    }

    /// Whether its interface is where the user said that it is.
    pub(crate) fn is_at_home(&self) -> bool {
        self.named.is_same_origin(&self.address)
    }

    /// Asks, and gives back an answer with a status of success.
    pub(super) fn ask(&self, operation: &Operation<'_>) -> Result<Coming, A2aError> {
        let call = operation.call(&self.interface, self.dialect)?;
        let is_stream = operation.is_stream();
        let accept = if is_stream { "text/event-stream, application/json;q=0.9" } else { "application/json" };
        let version = self.interface.version.as_str().to_owned();
        let mut headers = vec![("accept", accept.to_owned()), ("a2a-version", version)];
        if is_stream {
            headers.push(("cache-control", "no-store".to_owned()));
        }
        if !self.options.extensions.is_empty() {
            let name = match self.interface.version {
                ProtocolVersion::V1 => "a2a-extensions",
                _ => "x-a2a-extensions",
            };
            headers.push((name, self.options.extensions.join(", ")));
        }
        let limits = self.options.limits;
        let wire = Wire {
            http: self.http,
            auth: self.auth,
            extra: &self.options.headers,
            named: &self.named,
            limits,
        };
        let coming = wire.ask(Asking {
            method: call.method,
            address: Address::parse(&call.url)?,
            headers,
            body: call.body.as_ref(),
            patience: limits.patience(is_stream),
            may_leave: false,
        })?;
        match coming.status {
            200..=299 => Ok(coming),
            _ => Err(super::fault::of_status(coming)),
        }
    }

    /// Asks, and reads the answer.
    pub(super) fn answer(&self, operation: &Operation<'_>) -> Result<Value, A2aError> {
        let mut coming = self.ask(operation)?;
        let said = coming.read_all(self.options.limits.bytes)?;
        self.unwrapped(&said)
    }
}

/// The first interface of the card that is supported, and may be asked.
fn choose(card: &Card) -> Result<(Interface, Dialect, Address), A2aError> {
    let mut refused: Option<HttpError> = None;
    for interface in &card.interfaces {
        let Some(dialect) = interface.dialect() else { continue };
        match Address::parse(&interface.url) {
            Ok(address) => return Ok((interface.clone(), dialect, address)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or_else(
        || A2aError::NoUsableInterface { offered: card.interfaces.iter().map(ToString::to_string).collect() },
        A2aError::Http,
    ))
}
