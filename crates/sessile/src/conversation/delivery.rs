//! Delivery of messages, one at a time in a conversation.
//!
//! A message is stored before it is sent. Two that are sent at once would be stored in another order than the agent gets
//! them, and the first two of a conversation would each start one of their own. So a delivery holds a kernel lock, which
//! a process that is killed gives up, until the first event of the reply is stored.
//!
//! The locked files are beside the store, because a conversation may be continued from another session. Each is removed by
//! its holder; a waiter that gets the lock of a removed file tries again.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sessile_wire::hex::hex;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::{NO_FOLLOW, create_dir};
use crate::state::State;

/// Directory of the locked files.
pub(crate) const DELIVERIES: &str = "deliveries";

/// Lock of a delivery. Dropping it lets the next message of the conversation be sent.
#[derive(Debug)]
pub struct DeliveryLock {
    _file: File,
    path: PathBuf,
}

impl Drop for DeliveryLock {
    #[expect(clippy::disallowed_methods, reason = "an empty file, whose loss or survival changes nothing")]
    fn drop(&mut self) {
        // The file is still locked, so no other process uses it as its lock.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl State {
    /// Waits for the deliveries of other processes in a conversation. The key is the conversation's id, or a
    /// placeholder for a new conversation. The timeout is per delivery.
    pub fn lock_delivery(&self, key: &str, timeout: Duration) -> Result<DeliveryLock> {
        let dir = self.dirs().state_for_writing()?.join(DELIVERIES);
        create_dir(&dir, 0o700)?;
        // A key may hold a name or an id of the agent, which need not be a file name.
        let path = dir.join(hex(&Sha256::digest(key.as_bytes())));
        let locker = self.locker()?;
        let timeout = locker.timeout().max(timeout);
        let locker = locker.with_timeout(timeout);
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(NO_FOLLOW)
                .open(&path)
                .map_err(|error| Error::io("open", &path, error))?;
            let file = locker.lock(file, &path)?;
            if is_at(&file, &path) {
                return Ok(DeliveryLock { _file: file, path });
            }
        }
    }
}

/// Whether a file is the one at a path, and was not removed or replaced.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}
