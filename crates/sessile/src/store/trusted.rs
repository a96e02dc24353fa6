//! Trusted content of project files.

use rusqlite::Connection;

use crate::error::Result;
use crate::store::Store;

impl Store {
    /// Whether this content of a file was trusted.
    pub(crate) fn is_trusted(&self, path: &str, fingerprint: &str) -> Result<bool> {
        self.answer(&("trusted", path, fingerprint), |connection| {
            connection
                .prepare_cached("SELECT 1 FROM trusted WHERE path = ?1 AND fingerprint = ?2")?
                .exists((path, fingerprint))
        })
    }

    /// Trusts files by path and fingerprint, atomically; their previous content is no longer trusted.
    pub(crate) fn trust(&mut self, files: &[(String, String)], now_ms: i64) -> Result<()> {
        self.write(|connection| {
            let mut delete = connection.prepare_cached("DELETE FROM trusted WHERE path = ?1")?;
            files.iter().try_for_each(|(path, fingerprint)| {
                // One content of a path is trusted at a time; only a change under way has two (`trust_also`).
                delete.execute([path])?;
                insert(connection, path, fingerprint, now_ms)
            })
        })
    }

    /// Trusts what a file is about to say beside what it says.
    pub(crate) fn trust_also(&mut self, path: &str, fingerprint: &str, now_ms: i64) -> Result<()> {
        self.write(|connection| insert(connection, path, fingerprint, now_ms))
    }

    /// The contents of a file that are trusted, in order.
    pub(crate) fn trusted_contents(&self, path: &str) -> Result<Vec<String>> {
        self.read(|connection| contents(connection, path))
    }

    /// Trusts other contents of a file, if the trusted ones are what the caller has seen.
    pub(crate) fn swap_trust(
        &mut self,
        path: &str,
        from: &[String],
        to: &[String],
        now_ms: i64,
    ) -> Result<bool> {
        self.write(|connection| {
            if contents(connection, path)? != from {
                return Ok(false);
            }
            connection.execute("DELETE FROM trusted WHERE path = ?1", [path])?;
            to.iter().try_for_each(|fingerprint| insert(connection, path, fingerprint, now_ms))?;
            Ok(true)
        })
    }

    /// Every trusted file.
    pub(crate) fn trusted(&self) -> Result<Vec<String>> {
        self.read(|connection| {
            connection
                .prepare("SELECT DISTINCT path FROM trusted ORDER BY path")?
                .query_map([], |row| row.get(0))?
                .collect()
        })
    }
}

fn insert(connection: &Connection, path: &str, fingerprint: &str, now_ms: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO trusted (path, fingerprint, trusted_ms) VALUES (?1, ?2, ?3)")?
        .execute((path, fingerprint, now_ms))
        .map(drop)
}

fn contents(connection: &Connection, path: &str) -> rusqlite::Result<Vec<String>> {
    connection
        // Sorted, because `swap_trust` compares the list with the one that the caller has seen.
        .prepare_cached("SELECT fingerprint FROM trusted WHERE path = ?1 ORDER BY fingerprint")?
        .query_map([path], |row| row.get(0))?
        .collect()
}
