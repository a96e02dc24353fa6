//! Agent whose card is cached.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use serde_json::Value;
use sessile_wire::a2a::RpcErrorKind;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::super::connect::{SiteRequest, UpstreamSite};
use super::super::{UpstreamError, refused};
use super::event;
use super::interface::UpstreamInterface;

/// Paths of cards below the URL of an agent: since version 0.3, and before.
const WELL_KNOWN_PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// Maximum bytes of a card.
const CARD_BYTES: usize = 1 << 20;

/// Time for which a card is cached.
const CARD_TTL: Duration = Duration::from_secs(300);

/// Time for which a failure is cached: replies that waited for the card do not request it one after the other.
const FAILURE_TTL: Duration = Duration::from_secs(2);

/// Timeout of the card: all replies wait for it.
const CARD_TIMEOUT: Duration = Duration::from_secs(10);

/// Agent that writes the replies, with its cached interface.
#[derive(Debug, Default)]
pub(in crate::upstream) struct UpstreamAgent {
    cache: Mutex<Option<CachedInterface>>,
}

/// Time of the request for the card, and its result.
type CachedInterface = (Instant, Result<Arc<UpstreamInterface>, UpstreamError>);

impl UpstreamAgent {
    /// Interface of the agent. The first caller requests the card; the others wait for it.
    pub(in crate::upstream) async fn interface(
        &self,
        site: &UpstreamSite,
    ) -> Result<Arc<UpstreamInterface>, UpstreamError> {
        let mut cache = self.cache.lock().await;
        if let Some((fetched, interface)) = &*cache
            && fetched.elapsed() < if interface.is_ok() { CARD_TTL } else { FAILURE_TTL }
        {
            return interface.clone();
        }
        let card = tokio::time::timeout(CARD_TIMEOUT, fetch_card(site))
            .await
            .unwrap_or(Err(UpstreamError::TimedOut));
        let interface = card.and_then(|card| UpstreamInterface::choose(&card, site)).map(Arc::new);
        *cache = Some((Instant::now(), interface.clone()));
        interface
    }

    /// Drops the cached card if the failure may be due to a change of it.
    pub(in crate::upstream) async fn invalidate_after(&self, error: &UpstreamError) {
        if matches!(
            error,
            UpstreamError::Refused { status: 404 | 405, .. }
                | UpstreamError::Declined {
                    kind: Some(RpcErrorKind::MethodNotFound | RpcErrorKind::VersionNotSupported),
                    ..
                }
        ) {
            *self.cache.lock().await = None;
        }
    }
}

async fn fetch_card(site: &UpstreamSite) -> Result<Value, UpstreamError> {
    let mut missing = UpstreamError::Unusable("agent card not found".to_owned());
    for place in WELL_KNOWN_PATHS {
        let path = format!("{}{place}", site.path());
        let headers = [("a2a-version", "1.0")];
        let request = SiteRequest { method: &Method::GET, path: &path, headers: &headers, body: None };
        let mut response = site.send(site.connect().await?, request).await?;
        match response.status {
            200 => return event::parse(&response.all(CARD_BYTES).await?),
            // Only a missing card leads to the older path; any other status is the agent's answer.
            404 => missing = refused(&mut response).await,
            _ => return Err(refused(&mut response).await),
        }
    }
    Err(missing)
}
