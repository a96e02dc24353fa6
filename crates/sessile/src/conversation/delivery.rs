//! Delivery of messages, one at a time in a conversation.
//!
//! A message is stored before it is sent. Two that are sent at once would be stored in another order than the agent gets
//! them, and the first two of a conversation would each start one of their own. So a delivery holds a kernel lock, which
//! a process that is killed gives up, until the first event of the reply is stored.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use sessile_wire::hex::hex;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::{NO_FOLLOW, create_dir};
use crate::session::Session;
use crate::state::State;

/// Lock of a delivery. Dropping it lets the next message of the conversation be sent.
#[derive(Debug)]
pub struct DeliveryLock {
    _file: File,
}

impl State {
    /// Waits for the deliveries of other processes in a conversation. The key is the conversation's id, or stands for one
    /// that is about to be started. The timeout is per delivery.
    pub fn lock_delivery(&self, session: &Session, key: &str, timeout: Duration) -> Result<DeliveryLock> {
        let dir = session.room().dir().join("deliveries");
        create_dir(&dir, 0o700)?;
        // A key may hold a name or an id of the agent, which need not be a file name.
        let path = dir.join(hex(&Sha256::digest(key.as_bytes())));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(NO_FOLLOW)
            .open(&path)
            .map_err(|error| Error::io("open", &path, error))?;
        let locker = self.locker()?;
        let timeout = locker.timeout().max(timeout);
        Ok(DeliveryLock { _file: locker.with_timeout(timeout).lock(file, &path)? })
    }
}
