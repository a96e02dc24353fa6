//! Waits that a store carries out by itself.

use tokio::sync::oneshot;

use super::ServiceStoreError;
use crate::change::{ChangeOutcome, Refusal};

/// Outcome of a wait, once it is durable, or the failure.
pub type WaitResult = Result<Result<ChangeOutcome, Refusal>, ServiceStoreError>;

/// A wait that the store carries out with the change that makes its place next. Dropped, it is withdrawn.
pub struct PendingWait(Option<Left>);

struct Left {
    answer: oneshot::Receiver<WaitResult>,
    take_back: Box<dyn Fn() -> bool + Send + Sync>,
}

impl std::fmt::Debug for PendingWait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PendingWait").field(&self.0.is_some()).finish()
    }
}

impl PendingWait {
    /// A wait that the store leaves to the waiter.
    pub(crate) fn never() -> Self {
        PendingWait(None)
    }

    /// A wait with its answer. `take_back` withdraws it, and returns false if it is being carried out.
    pub(crate) fn new(
        answer: oneshot::Receiver<WaitResult>,
        take_back: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        PendingWait(Some(Left { answer, take_back: Box::new(take_back) }))
    }

    /// Waits until the store carries out the wait. Never returns if the store leaves the wait to the waiter.
    pub async fn outcome(&mut self) -> WaitResult {
        match &mut self.0 {
            Some(left) => match (&mut left.answer).await {
                Ok(outcome) => outcome,
                // Dropped with a transaction that failed.
                Err(_) => Err(ServiceStoreError::Unavailable("the transaction failed".to_owned())),
            },
            None => std::future::pending().await,
        }
    }

    /// Withdraws the wait. If it is being carried out already, waits for its outcome.
    pub async fn withdraw(&mut self) -> Option<WaitResult> {
        match &self.0 {
            Some(left) if !(left.take_back)() => Some(self.outcome().await),
            _ => None,
        }
    }
}

impl Drop for PendingWait {
    fn drop(&mut self) {
        if let Some(left) = &self.0 {
            // One that is being carried out is released by the waiter.
            (left.take_back)();
        }
    }
}
