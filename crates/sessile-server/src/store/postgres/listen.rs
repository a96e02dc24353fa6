//! Hears of queues that moved in other processes. Without it everything works, a little later.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use sessile_wire::backoff::Backoff;
use tokio_postgres::AsyncMessage;

use super::Inner;
use super::connect::PostgresAddress;
use super::transaction::{PooledConnection, Step, TxError, params};
use crate::store::wakeups::Wakeups;

/// Whether the database knows how to.
pub(super) async fn notifies(inner: &Arc<Inner>) -> Result<bool, TxError> {
    let mut link = PooledConnection::for_service(inner).await?;
    let known = Step::Other("SELECT 1 FROM pg_proc WHERE proname = 'pg_notify' LIMIT 1", params![]);
    let found = link.send(&[known]).await.map_err(|error| TxError::of(&error, false))?;
    Ok(found.iter().any(|rows| !rows.is_empty()))
}

/// Listens until aborted, and reconnects when the connection is lost.
pub(super) async fn listen(address: PostgresAddress, wakeups: Wakeups) {
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(10));
    loop {
        if hear(&address, &wakeups).await.is_ok() {
            backoff.reset();
        }
        let delay = backoff.next_delay();
        tracing::info!(?delay, "reconnecting listener");
        tokio::time::sleep(delay).await;
    }
}

/// Listens until the connection is lost; an error if there never was one.
async fn hear(address: &PostgresAddress, wakeups: &Wakeups) -> Result<(), tokio_postgres::Error> {
    // A connection of its own: those of the pool change hands, and LISTEN belongs to one session.
    let (client, mut connection) = address.config.connect(address.tls.clone()).await?;
    let hearing = async {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(heard) = message
                // Any role of the database can notify this channel; a false mark only makes somebody look.
                && let Ok(mark) = heard.payload().parse()
            {
                wakeups.wake(mark);
            }
        }
    };
    let asking = async {
        let asked = client.batch_execute("LISTEN sessile").await;
        // The client must live for as long as is listened.
        if asked.is_ok() {
            std::future::pending::<()>().await;
        }
        asked
    };
    tokio::select! {
        () = hearing => Ok(()),
        asked = asking => asked,
    }
}
