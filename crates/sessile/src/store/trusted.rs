//! Which content of which project file has been trusted.

use rusqlite::OptionalExtension;

use crate::error::Result;
use crate::store::Store;

impl Store {
    /// The content of a file that was trusted.
    pub fn trusted_fingerprint(&self, path: &str) -> Result<Option<String>> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT fingerprint FROM trusted WHERE path = ?1")?
                .query_row([path], |row| row.get(0))
                .optional()
        })
    }

    /// Trusts files by path and fingerprint, all of them or none.
    pub fn trust(&mut self, files: &[(String, String)], now_ms: i64) -> Result<()> {
        self.write(|connection| {
            let mut insert = connection.prepare_cached(
                "INSERT INTO trusted (path, fingerprint, trusted_ms) VALUES (?1, ?2, ?3)
                 ON CONFLICT (path) DO UPDATE SET fingerprint = excluded.fingerprint, trusted_ms = excluded.trusted_ms",
            )?;
            files.iter().try_for_each(|(path, fingerprint)| {
                insert.execute((path, fingerprint, now_ms)).map(drop)
            })
        })
    }

    /// Trusts another content of a file, or none, if the trusted one is what the caller has seen.
    pub fn swap_trust(
        &mut self,
        path: &str,
        from: Option<&str>,
        to: Option<&str>,
        now_ms: i64,
    ) -> Result<bool> {
        self.write(|connection| {
            let now: Option<String> = connection
                .prepare_cached("SELECT fingerprint FROM trusted WHERE path = ?1")?
                .query_row([path], |row| row.get(0))
                .optional()?;
            if now.as_deref() != from {
                return Ok(false);
            }
            connection.execute("DELETE FROM trusted WHERE path = ?1", [path])?;
            if let Some(to) = to {
                connection.execute(
                    "INSERT INTO trusted (path, fingerprint, trusted_ms) VALUES (?1, ?2, ?3)",
                    (path, to, now_ms),
                )?;
            }
            Ok(true)
        })
    }

    /// Every trusted file, with the time.
    pub fn trusted(&self) -> Result<Vec<(String, String, i64)>> {
        self.read(|connection| {
            connection
                .prepare("SELECT path, fingerprint, trusted_ms FROM trusted ORDER BY path")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect()
        })
    }
}
