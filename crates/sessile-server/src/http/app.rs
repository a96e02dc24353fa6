//! State that all requests share.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::{mpsc, watch};

use super::anonymous_limits::AnonymousLimits;
use super::caller::Gate;
use super::log::Logger;
use super::metrics::Metrics;
use crate::limits::Limits;
use crate::upstream::Upstream;

/// State that all requests share.
#[derive(Clone, Debug)]
pub(crate) struct AppState(Arc<AppParts>);

/// Fields of [`AppState`].
#[derive(Debug)]
pub(crate) struct AppParts {
    pub(crate) gate: Gate,
    pub(crate) anonymous_limits: AnonymousLimits,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) logger: Logger,
    pub(crate) upstream: Option<Upstream>,
    pub(crate) openapi: Bytes,
    /// Whether the service is shutting down.
    pub(crate) closing: watch::Receiver<bool>,
    /// Held by every task beside requests, so that a shutdown can wait for them.
    pub(crate) busy: mpsc::WeakSender<()>,
}

impl AppState {
    pub(crate) fn new(shared: AppParts) -> Self {
        AppState(Arc::new(shared))
    }

    /// Returns when the service shuts down.
    pub(crate) async fn closed(&self) {
        let mut closing = self.closing.clone();
        // That nobody is there to say so any more means the same.
        let _ = closing.wait_for(|closing| *closing).await;
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }
}

impl std::ops::Deref for AppState {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}
