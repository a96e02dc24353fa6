//! Discovery of agent cards.

use sessile_wire::a2a::AgentCard;
use ureq::http::Method;

use super::card_cache::{CachedCard, CardCache};
use super::error::A2aError;
use super::json;
use super::transport::{Transport, TransportRequest};
use crate::http::HttpAddress;

/// Paths of cards below the URL of an agent: since version 0.3, and before.
const WELL_KNOWN_PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// Finds the card of an agent: at a well-known path below the URL, or at the URL itself.
pub(super) fn find_card(
    transport: &Transport<'_>,
    extensions: &[String],
    cache: Option<&dyn CardCache>,
) -> Result<AgentCard, A2aError> {
    let not_found = || A2aError::NotAnAgent { url: transport.named.to_string() };
    for url in candidates(transport.named) {
        let address = transport.named.parse_beside(&url)?;
        if let Some(card) = fetch(transport, address, extensions, cache)? {
            return Ok(card);
        }
    }
    Err(not_found())
}

fn candidates(named: &HttpAddress) -> Vec<String> {
    let uri = named.uri();
    let whole = uri.to_string();
    // The URL of a card itself: nothing lies below it.
    if uri.path().ends_with(".json") {
        return vec![whole];
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let base = format!("{}://{authority}{}", uri.scheme_str().unwrap_or_default(), uri.path());
    let base = base.trim_end_matches('/');
    let mut all: Vec<_> = WELL_KNOWN_PATHS.iter().map(|path| format!("{base}{path}")).collect();
    // Last, because an agent at this URL may answer a GET with something else than its card.
    all.push(whole);
    all
}

/// Card at this URL, if it has one.
fn fetch(
    transport: &Transport<'_>,
    address: HttpAddress,
    extensions: &[String],
    cache: Option<&dyn CardCache>,
) -> Result<Option<AgentCard>, A2aError> {
    let limits = transport.limits.for_card();
    let url = address.uri().to_string();
    let cached = cache.and_then(|cache| cache.load(&url));
    let mut headers = vec![("accept", "application/json".to_owned()), ("a2a-version", "1.0".to_owned())];
    if !extensions.is_empty() {
        headers.push(("a2a-extensions", extensions.join(", ")));
    }
    if let Some(cached) = &cached {
        headers.push(("if-none-match", cached.etag.clone()));
    }
    let mut coming = transport.ask(TransportRequest {
        method: Method::GET,
        address,
        headers,
        body: None,
        patience: limits.patience(false),
        may_leave_origin: true,
    })?;
    match coming.status {
        200..=299 => {}
        304 => {
            let Some(cached) = cached else { return Ok(None) };
            return Ok(AgentCard::read(json::parse(cached.body.as_bytes(), limits.values)?));
        }
        // These say nothing about whether a card is there, so the search must not go on to another path.
        401 | 403 | 429 | 500.. => {
            return Err(A2aError::of_response(coming, transport.has_sent_credential()));
        }
        _ => return Ok(None),
    }
    // Many servers respond to any path with a page.
    let is_page = coming.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
    if is_page {
        return Ok(None);
    }
    let etag = coming.header("etag");
    let said = coming.read_all(limits.bytes)?;
    let card = AgentCard::read(json::parse(&said, limits.values)?);
    if let (Some(cache), Some(etag), Some(_)) = (cache, etag, &card)
        // A card for a credential is not for everybody who can read the cache.
        && !transport.has_sent_credential()
        && let Ok(body) = String::from_utf8(said)
    {
        cache.store(&url, &CachedCard { etag, body });
    }
    Ok(card)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_is_searched_below_the_url() {
        let at = |url: &str| candidates(&HttpAddress::parse(url).unwrap());
        for url in ["https://a.example/x", "https://a.example/x/"] {
            assert_eq!(at(url)[0], "https://a.example/x/.well-known/agent-card.json");
            assert_eq!(at(url)[1], "https://a.example/x/.well-known/agent.json");
            assert_eq!(at(url)[2], url);
        }
        assert_eq!(at("https://a.example?q=1")[0], "https://a.example/.well-known/agent-card.json");
        assert_eq!(at("https://a.example/my-card.json?q=1"), ["https://a.example/my-card.json?q=1"]);
    }
}
