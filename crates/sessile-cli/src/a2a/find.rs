//! Finds and reads an agent's card.

use ureq::http::Method;

use super::card::Card;
use super::error::A2aError;
use super::wire::{Asking, Wire};
use super::{fault, json};
use crate::http::Address;

/// Where cards are, below the address of an agent: since 0.3, and before.
const PLACES: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// The card of an agent: at one of the usual places below the address, or at the address itself.
pub(super) fn card(wire: &Wire<'_>, extensions: &[String]) -> Result<Card, A2aError> {
    let not_found = || A2aError::NotAnAgent { url: wire.named.to_string() };
    for url in candidates(wire.named) {
        let address = Address::parse(&url)?;
        if let Some(card) = at(wire, address, extensions)? {
            return Ok(card);
        }
    }
    Err(not_found())
}

fn candidates(named: &Address) -> Vec<String> {
    let uri = named.uri();
    let whole = uri.to_string();
    if uri.path().ends_with(".json") {
        return vec![whole];
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let base = format!("{}://{authority}{}", uri.scheme_str().unwrap_or_default(), uri.path());
    let base = base.trim_end_matches('/');
    let mut all: Vec<_> = PLACES.iter().map(|place| format!("{base}{place}")).collect();
    all.push(whole);
    all
}

/// The card at this very address, if there is one.
fn at(wire: &Wire<'_>, address: Address, extensions: &[String]) -> Result<Option<Card>, A2aError> {
    let limits = wire.limits.for_card();
    let mut headers = vec![("accept", "application/json".to_owned()), ("a2a-version", "1.0".to_owned())];
    if !extensions.is_empty() {
        headers.push(("a2a-extensions", extensions.join(", ")));
    }
    let mut coming = wire.ask(Asking {
        method: Method::GET,
        address,
        headers,
        body: None,
        patience: limits.patience(false),
        may_leave: true,
    })?;
    match coming.status {
        200..=299 => {}
        401 | 403 | 429 | 500.. => return Err(fault::of_status(coming)),
        _ => return Ok(None),
    }
    // Many servers answer anything with a page.
    let is_page = coming.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
    if is_page {
        return Ok(None);
    }
    let said = coming.read_all(limits.bytes)?;
    Ok(Card::read(json::read(&said, limits.values)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_looked_for_below_the_address() {
        let at = |url: &str| candidates(&Address::parse(url).unwrap());
        for url in ["https://a.example/x", "https://a.example/x/"] {
            assert_eq!(at(url)[0], "https://a.example/x/.well-known/agent-card.json");
            assert_eq!(at(url)[1], "https://a.example/x/.well-known/agent.json");
            assert_eq!(at(url)[2], url);
        }
        assert_eq!(at("https://a.example?q=1")[0], "https://a.example/.well-known/agent-card.json");
        assert_eq!(at("https://a.example/my-card.json?q=1"), ["https://a.example/my-card.json?q=1"]);
    }
}
