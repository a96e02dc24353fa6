//! Heartbeats of processes: the waiters of a process without a recent one are skipped.

use std::sync::Arc;

use super::Inner;
use super::transaction::{PooledConnection, Step, TxError, params};
use crate::change::KEPT_MS;

macro_rules! now {
    () => {
        "floor(extract(epoch FROM now()) * 1000)::bigint"
    };
}

/// Processes with a heartbeat in the last milliseconds. They belong to no user, and neither does the table.
pub(super) const PRESENT: &str = concat!("SELECT id FROM process WHERE seen_ms > ", now!(), " - $1");

/// Records that a process is alive.
pub(super) const SEND: &str = concat!(
    "INSERT INTO process (id, seen_ms) VALUES ($1, ",
    now!(),
    ") ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms"
);

/// The same for a process without a heartbeat in the last milliseconds: another one would only make all processes wait for its row.
pub(super) const SEND_IF_DUE: &str = concat!(
    "INSERT INTO process (id, seen_ms) SELECT $1, ",
    now!(),
    " WHERE NOT EXISTS (SELECT 1 FROM process WHERE id = $1 AND seen_ms > ",
    now!(),
    " - $2) ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms"
);

const DELETE_DEAD: &str = concat!("DELETE FROM process WHERE seen_ms < ", now!(), " - $1");

/// Records that this process is alive, and deletes those that died long ago.
pub(super) async fn send(inner: &Arc<Inner>) -> Result<(), TxError> {
    let mut link = PooledConnection::for_service(inner).await?;
    let steps = [
        Step::Other(SEND, params![inner.process.to_string()]),
        Step::Other(DELETE_DEAD, params![100 * KEPT_MS]),
    ];
    link.send(&steps).await.map(drop).map_err(|error| TxError::of(&error, false))
}
