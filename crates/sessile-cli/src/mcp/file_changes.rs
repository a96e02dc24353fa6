//! Changes of the state's files, for tasks that wait for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::file_watch::{FileWatch, WatchedDirs};

/// Longest time between two looks. A session expires without a change of any file, and other systems report none.
const RECHECK: Duration = Duration::from_secs(30);

/// Pause after a change, in which the changes that belong to it arrive.
const SETTLE: Duration = Duration::from_millis(100);

/// Counter of changes, fed by a thread that the first subscription starts.
#[derive(Debug)]
pub(super) struct FileChanges {
    count: watch::Sender<u64>,
    is_watching: AtomicBool,
}

impl FileChanges {
    pub(super) fn new() -> Self {
        FileChanges { count: watch::channel(0).0, is_watching: AtomicBool::new(false) }
    }

    /// Receiver of changes from now on.
    pub(super) fn subscribe(&self, dirs: &WatchedDirs) -> watch::Receiver<u64> {
        if !self.is_watching.load(Ordering::Relaxed) && self.start(dirs) {
            self.is_watching.store(true, Ordering::Relaxed);
        }
        self.count.subscribe()
    }

    /// Whether changes are reported from now on. Without a store the next subscription tries again.
    fn start(&self, dirs: &WatchedDirs) -> bool {
        let count = self.count.clone();
        FileWatch::start(dirs, move |_| count.send_modify(|count| *count += 1)).is_some()
    }
}

/// Waits until files have changed, or until it is time to look anyway.
pub(super) async fn wait(changes: &mut watch::Receiver<u64>) {
    let is_told = matches!(timeout(RECHECK, changes.changed()).await, Ok(Ok(())));
    if is_told {
        sleep(SETTLE).await;
        changes.mark_unchanged();
    }
}
