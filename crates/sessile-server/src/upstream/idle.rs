//! Idle connections to a chat endpoint, by user.
//!
//! Agents get a connection for each request: a message that was sent on a connection which the agent was about to close may
//! have been accepted, and must not be sent twice. A chat endpoint keeps no state, so its request is sent again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::UpstreamError;
use super::connect::{OpenConnection, SiteRequest, SiteResponse, UpstreamSite};
use crate::ids::UserName;

/// Time that a connection stays open without a request.
const IDLE: Duration = Duration::from_secs(30);

/// Time for the rest of a response, after its reply is complete.
const REST: Duration = Duration::from_secs(1);

/// Time in which a closed connection shows itself. Later failures are the upstream's, and a retry might be paid twice.
const STALE: Duration = Duration::from_secs(1);

/// Maximum number of idle connections, of one user and of all.
const MAX_OF_USER: usize = 4;
const MAX_OF_ALL: usize = 256;

/// Idle connections to one upstream.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleConnections(Arc<Mutex<HashMap<UserName, Vec<IdleConnection>>>>);

#[derive(Debug)]
struct IdleConnection {
    line: OpenConnection,
    until: Instant,
}

impl IdleConnections {
    /// Sends a request on an idle connection of this user, or on a new one.
    pub(super) async fn send(
        &self,
        site: &UpstreamSite,
        user: &UserName,
        request: SiteRequest<'_>,
    ) -> Result<SiteResponse, UpstreamError> {
        while let Some(line) = self.take(user) {
            let sent = Instant::now();
            let response = site.send(line, request).await;
            // The upstream may close the connection at the moment the request is sent.
            if response.is_ok() || sent.elapsed() > STALE {
                return response;
            }
        }
        site.send(site.connect().await?, request).await
    }

    /// Keeps the connection of a response whose reply is complete.
    pub(super) fn keep(&self, user: &UserName, response: SiteResponse) {
        let (idle, user) = (self.clone(), user.clone());
        // The reply does not wait for the rest of the response.
        tokio::spawn(async move {
            if let Ok(Some(line)) = tokio::time::timeout(REST, response.into_line()).await {
                idle.put(user, line);
                tokio::time::sleep(IDLE).await;
                idle.with(|_| {});
            }
        });
    }

    fn take(&self, user: &UserName) -> Option<OpenConnection> {
        self.with(|all| all.get_mut(user)?.pop()).map(|idle| idle.line)
    }

    fn put(&self, user: UserName, line: OpenConnection) {
        self.with(|all| {
            let is_full = all.values().map(Vec::len).sum::<usize>() >= MAX_OF_ALL;
            let own = all.entry(user).or_default();
            if !is_full && own.len() < MAX_OF_USER {
                own.push(IdleConnection { line, until: Instant::now() + IDLE });
            }
        });
    }

    /// Access to the connections that can still be used; closes the others.
    fn with<T>(&self, use_of: impl FnOnce(&mut HashMap<UserName, Vec<IdleConnection>>) -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        all.retain(|_, own| {
            own.retain(|idle| now < idle.until && !idle.line.is_closed());
            !own.is_empty()
        });
        use_of(&mut all)
    }
}
