//! Stores: they load what a change depends on, and carry out what `rules` decides.

mod backend;
mod columns;
mod error;
mod fair_queue;
mod lists;
mod pending_wait;
mod postgres;
mod retention;
mod sqlite;
mod wakeups;

pub use backend::{ServiceStore, StoreBackend, StoreFuture};
pub use error::ServiceStoreError;
pub use pending_wait::{PendingWait, WaitResult};
pub use postgres::{PostgresOptions, PostgresStore, UserIsolation};
pub use retention::{ExpiringRows, Sweep, SweepKind, SweepLimit};
pub use sqlite::{SqliteStore, backup};

use std::sync::Arc;

use crate::clock;

/// A new id of this process in a store.
fn new_process() -> Result<Arc<str>, ServiceStoreError> {
    clock::new_id().map(Arc::from).map_err(|error| ServiceStoreError::Failed(error.to_string()))
}
