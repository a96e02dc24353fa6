//! Whether a store holds anything that outlives sessions.

use crate::error::Result;
use crate::store::Store;

/// One row if something is left: a live session, anything that sessions leave behind, a lock ever taken (fencing tokens only grow), or a
/// recorded change other than the start and end of sessions.
const REMAINS: &str = "SELECT EXISTS (SELECT 1 FROM session WHERE ended_ms IS NULL)
    OR EXISTS (SELECT 1 FROM pointer) OR EXISTS (SELECT 1 FROM approval) OR EXISTS (SELECT 1 FROM trusted)
    OR EXISTS (SELECT 1 FROM pin) OR EXISTS (SELECT 1 FROM entry) OR EXISTS (SELECT 1 FROM message)
    OR EXISTS (SELECT 1 FROM conversation) OR EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'ticket' AND seq > 0)
    OR EXISTS (SELECT 1 FROM operation WHERE state <> 'done'
        OR command NOT IN ('run', 'shell', 'session start', 'session stop', 'session clear'))";

impl Store {
    /// Whether it holds nothing but sessions that have ended and their record.
    pub(crate) fn is_vacant(&self) -> Result<bool> {
        self.read(|connection| {
            connection.query_row(REMAINS, [], |row| row.get(0)).map(|remains: bool| !remains)
        })
    }
}
