//! Resources that a client follows, and the notifications of their changes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam};
use rmcp::service::SubscriptionContext;
use rmcp::{Peer, RoleServer};
use tokio::sync::Mutex;

use super::file_changes::wait;
use super::resources::parsed;
use super::server::ServerState;

/// Limit of resources that a client follows.
const FOLLOWED: usize = 256;

/// Followed resources of a client, each with a hash of its content; `None` if it cannot be read.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    followed: BTreeMap<String, Option<u64>>,
    /// Whether a task notifies the client.
    is_followed: bool,
}

impl Subscriptions {
    /// Adds a resource, in its state of now.
    async fn add(&mut self, shared: &ServerState, uri: &str) -> Result<(), ErrorData> {
        parsed(uri)?;
        if self.followed.len() >= FOLLOWED && !self.followed.contains_key(uri) {
            let message = format!("too many subscriptions; the limit is {FOLLOWED}");
            return Err(ErrorData::invalid_params(message, None));
        }
        let now = content_hash(shared, uri).await;
        self.followed.insert(uri.to_owned(), now);
        Ok(())
    }

    /// Resources whose content differs from the last look.
    async fn changed(&mut self, shared: &ServerState) -> Vec<String> {
        let mut changed = Vec::new();
        for (uri, seen) in &mut self.followed {
            let now = content_hash(shared, uri).await;
            if *seen != now {
                *seen = now;
                changed.push(uri.clone());
            }
        }
        changed
    }
}

/// Hash of a resource's content, which is small beside the content of many conversations.
async fn content_hash(shared: &ServerState, uri: &str) -> Option<u64> {
    let mut content = shared.resource(&parsed(uri).ok()?).await.ok()?;
    if let Some(members) = content.as_object_mut() {
        // It grows while nothing happens.
        members.remove("idle_ms");
    }
    let mut hasher = DefaultHasher::new();
    content.to_string().hash(&mut hasher);
    Some(hasher.finish())
}

/// Follows a resource for a client that subscribes by request, up to revision 2025-11-25.
pub(super) async fn subscribe(
    shared: &Arc<ServerState>,
    subscriptions: &Arc<Mutex<Subscriptions>>,
    uri: &str,
    peer: Peer<RoleServer>,
) -> Result<(), ErrorData> {
    // Before the first look, so that no change falls between the two.
    let mut changes = shared.file_changes().await;
    let mut own = subscriptions.lock().await;
    own.add(shared, uri).await?;
    if own.is_followed {
        return Ok(());
    }
    own.is_followed = true;
    let (shared, subscriptions) = (Arc::clone(shared), Arc::clone(subscriptions));
    tokio::spawn(async move {
        loop {
            wait(&mut changes).await;
            let mut own = subscriptions.lock().await;
            if own.followed.is_empty() || peer.is_transport_closed() {
                own.is_followed = false;
                return;
            }
            for uri in own.changed(&shared).await {
                // A client that has gone is noticed at the next look.
                let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
            }
        }
    });
    Ok(())
}

/// Ends following a resource.
pub(super) async fn unsubscribe(subscriptions: &Mutex<Subscriptions>, uri: &str) {
    subscriptions.lock().await.followed.remove(uri);
}

/// Follows the resources of a `subscriptions/listen` request until it is cancelled.
pub(super) async fn listen(
    shared: &ServerState,
    subscription: &SubscriptionContext,
) -> Result<(), ErrorData> {
    let mut changes = shared.file_changes().await;
    let mut own = Subscriptions::default();
    for uri in subscription.accepted().resource_subscriptions.iter().flatten() {
        own.add(shared, uri).await?;
    }
    loop {
        tokio::select! {
            () = wait(&mut changes) => {}
            () = subscription.cancelled() => return Ok(()),
        }
        for uri in own.changed(shared).await {
            if subscription.sink().notify_resource_updated(uri).await.is_err() {
                return Ok(());
            }
        }
    }
}
