//! Audit log of reads. The store records a change with the change itself; reads are buffered and written
//! together, so that reading does not wait for the disk.

use std::sync::Arc;
use std::time::Duration;

use sessile_wire::backoff::Backoff;
use tokio::sync::mpsc;

use super::metrics::Metrics;
use crate::request::AuditedRead;
use crate::store::ServiceStore;

/// Reads that may be buffered. A read beyond them waits.
const WAITING: usize = 8192;

/// Reads that are written at once.
const TOGETHER: usize = 512;

/// Time for which the first read waits for others.
const GATHER: Duration = Duration::from_millis(200);

/// Attempts to write, and the longest delay between two of them.
const TRIES: u32 = 5;
const MAX_DELAY: Duration = Duration::from_secs(4);

/// Sender of reads to the audit log.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    reads: mpsc::Sender<AuditedRead>,
}

/// Writer of the audit log.
pub(crate) struct Recorder {
    db: ServiceStore,
    reads: mpsc::Receiver<AuditedRead>,
    metrics: Arc<Metrics>,
}

pub(crate) fn audit(db: ServiceStore, metrics: Arc<Metrics>) -> (Audit, Recorder) {
    let (sender, reads) = mpsc::channel(WAITING);
    (Audit { reads: sender }, Recorder { db, reads, metrics })
}

impl Audit {
    pub(crate) async fn record(&self, read: AuditedRead) {
        // Nobody takes it only when the service has ended.
        let _ = self.reads.send(read).await;
    }
}

impl Recorder {
    /// Writes entries until shutdown, then flushes the buffer.
    pub(crate) async fn run(mut self, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        let mut ending = false;
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                _ = self.reads.recv_many(&mut batch, TOGETHER) => {}
                () = &mut end, if !ending => {
                    ending = true;
                    // Closed and not dropped: reads that are buffered already still come out of the channel.
                    self.reads.close();
                    continue;
                }
            }
            if batch.is_empty() {
                return;
            }
            // A shutdown waits for this task, and no further reads are coming.
            if !ending && batch.len() < TOGETHER {
                tokio::time::sleep(GATHER).await;
                // Not `recv_many`, which would wait for a further read when none has arrived.
                while batch.len() < TOGETHER
                    && let Ok(read) = self.reads.try_recv()
                {
                    batch.push(read);
                }
            }
            self.write(batch).await;
        }
    }

    async fn write(&self, batch: Vec<AuditedRead>) {
        let mut backoff = Backoff::new(GATHER, MAX_DELAY);
        for _ in 0..TRIES {
            // Entries have unique ids, so a batch whose answer was lost is not written twice.
            if self.db.record(batch.clone()).await.is_ok() {
                return;
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
        // Reads have been answered by now; dropping them keeps a dead store from filling the memory.
        self.metrics.unrecorded(batch.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Access;

    #[tokio::test]
    async fn buffered_reads_are_written_at_shutdown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("service.db");
        let db = ServiceStore::sqlite(&path).await.unwrap();
        let (audit, recorder) = audit(db, Arc::default());
        for number in 0..1500 {
            let access = Access { id: number.to_string(), token: None };
            let (action, outcome) = ("session".to_owned(), "done".to_owned());
            audit
                .record(AuditedRead {
                    user: "ann".parse().unwrap(),
                    access,
                    action,
                    session: None,
                    outcome,
                    at_ms: 0,
                })
                .await;
        }
        recorder.run(async {}).await;
        let connection = rusqlite::Connection::open(&path).unwrap();
        let count: i64 = connection.query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 1500);
    }
}
