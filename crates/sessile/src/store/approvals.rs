//! Approvals of guarded contexts: person, time and duration.

use rusqlite::{Connection, Row};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::store::Store;

/// An approval to be recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewApproval {
    /// The context it opens.
    pub context: String,
    /// Time of the grant, in milliseconds.
    pub granted_ms: i64,
    /// Expiry, in milliseconds.
    pub expires_ms: i64,
    /// Boot id at the grant.
    pub boot: String,
    /// Expiry on the boot clock, in milliseconds.
    pub expires_boot_ms: i64,
    /// The OS user who gave it.
    pub granted_by: String,
    /// Terminal of the approval.
    pub terminal: String,
    /// Whether the person entered a PIN.
    pub with_pin: bool,
    /// The file of the context; `None` in approvals of older versions.
    pub path: Option<String>,
    /// Digest of the context's scope, file and bindings; `None` in approvals of older versions.
    pub digest: Option<String>,
}

/// Row of an approval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalRow {
    /// Number.
    pub id: i64,
    /// Recorded approval.
    pub approval: NewApproval,
    /// Time of the revocation.
    pub revoked_ms: Option<i64>,
}

const COLUMNS: &str =
    "id, context, granted_ms, expires_ms, boot, expires_boot_ms, granted_by, terminal, with_pin,
    revoked_ms, path, digest";

fn row(row: &Row<'_>) -> rusqlite::Result<ApprovalRow> {
    Ok(ApprovalRow {
        id: row.get(0)?,
        approval: NewApproval {
            context: row.get(1)?,
            granted_ms: row.get(2)?,
            expires_ms: row.get(3)?,
            boot: row.get(4)?,
            expires_boot_ms: row.get(5)?,
            granted_by: row.get(6)?,
            terminal: row.get(7)?,
            with_pin: row.get(8)?,
            path: row.get(10)?,
            digest: row.get(11)?,
        },
        revoked_ms: row.get(9)?,
    })
}

impl Store {
    /// Records an approval and returns its number.
    pub(crate) fn add_approval(&mut self, new: &NewApproval) -> Result<i64> {
        self.write(|connection| {
            connection.execute(
                "INSERT INTO approval (context, granted_ms, expires_ms, boot, expires_boot_ms, granted_by, terminal, with_pin,
                                       path, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                (
                    &new.context,
                    new.granted_ms,
                    new.expires_ms,
                    &new.boot,
                    new.expires_boot_ms,
                    &new.granted_by,
                    &new.terminal,
                    new.with_pin,
                    &new.path,
                    &new.digest,
                ),
            )?;
            Ok(connection.last_insert_rowid())
        })
    }

    /// The approvals that have not ended by the wall clock, of one context or of all.
    pub(crate) fn approvals(&self, context: Option<&str>, now_ms: i64) -> Result<Vec<ApprovalRow>> {
        let find = |connection: &Connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM approval
                     WHERE expires_ms > ?1 AND revoked_ms IS NULL AND (?2 IS NULL OR context = ?2) ORDER BY id"
                ))?
                .query_map((now_ms, context), row)?
                .collect()
        };
        let answer = self.answer(&("approvals", context), |connection| Ok((now_ms, find(connection)?)));
        let (asked_ms, mut rows): (i64, Vec<ApprovalRow>) = answer?;
        // A clock that was set back brings approvals back that the answer does not have.
        if now_ms < asked_ms {
            return self.read(find);
        }
        rows.retain(|row| row.approval.expires_ms > now_ms);
        Ok(rows)
    }

    /// Every approval that was ever given, the newest first.
    pub(crate) fn all_approvals(&self) -> Result<Vec<ApprovalRow>> {
        self.read(|connection| {
            connection
                .prepare(&format!("SELECT {COLUMNS} FROM approval ORDER BY id DESC"))?
                .query_map([], row)?
                .collect()
        })
    }

    /// Revokes every unrevoked approval of a context, and returns how many may have been valid. The wall clock does
    /// not decide which: a clock that is wrong now would leave an approval that is valid again later. An approval
    /// that has expired by the clock since boot or by a reboot gets its expiry as its end.
    pub(crate) fn revoke_approvals(
        &mut self,
        context: &str,
        now_ms: i64,
        boot: &str,
        since_boot_ms: i64,
    ) -> Result<usize> {
        self.write(|connection| {
            connection.execute(
                "UPDATE approval SET revoked_ms = expires_ms
                 WHERE context = ?1 AND revoked_ms IS NULL AND (boot <> ?2 OR expires_boot_ms <= ?3)",
                (context, boot, since_boot_ms),
            )?;
            connection.execute(
                "UPDATE approval SET revoked_ms = ?2 WHERE context = ?1 AND revoked_ms IS NULL",
                (context, now_ms),
            )
        })
    }
}
