//! Pointers: which context a scope has selected, and which one before.

use rusqlite::{OptionalExtension, Row};

use crate::error::Result;
use crate::store::Store;

/// What a pointer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One terminal.
    Terminal,
    /// One directory; the value itself stands in its `local.toml`.
    Directory,
    /// The user; the value itself stands in `config.toml`.
    Global,
}

impl Scope {
    fn as_str(self) -> &'static str {
        match self {
            Scope::Terminal => "terminal",
            Scope::Directory => "directory",
            Scope::Global => "global",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "terminal" => Scope::Terminal,
            "directory" => Scope::Directory,
            _ => Scope::Global,
        }
    }
}

/// Which pointer: of which scope, where, and for which account.
#[derive(Clone, Debug)]
pub struct PointerKey {
    /// The scope.
    pub scope: Scope,
    /// The terminal's key or the directory; nothing for the user.
    pub place: String,
    /// The account it belongs to.
    pub account: String,
}

/// A pointer as it is stored.
#[derive(Clone, Debug)]
pub struct PointerRow {
    /// Which one it is.
    pub key: PointerKey,
    /// What it points to, for a terminal.
    pub value: Option<String>,
    /// What it pointed to before.
    pub previous: Option<String>,
}

const KIND: &str = "context";

fn row(row: &Row<'_>) -> rusqlite::Result<PointerRow> {
    Ok(PointerRow {
        key: PointerKey {
            scope: Scope::parse(&row.get::<_, String>(0)?),
            place: row.get(1)?,
            account: row.get(2)?,
        },
        value: row.get(3)?,
        previous: row.get(4)?,
    })
}

impl Store {
    /// One pointer.
    pub fn pointer(&self, key: &PointerKey) -> Result<Option<PointerRow>> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT scope, place, account, value, previous FROM pointer
                     WHERE kind = ?1 AND scope = ?2 AND place = ?3 AND account = ?4",
                )?
                .query_row((KIND, key.scope.as_str(), &key.place, &key.account), row)
                .optional()
        })
    }

    /// Every pointer.
    pub fn pointers(&self) -> Result<Vec<PointerRow>> {
        self.read(|connection| {
            connection
                .prepare("SELECT scope, place, account, value, previous FROM pointer WHERE kind = ?1")?
                .query_map([KIND], row)?
                .collect()
        })
    }

    /// Sets a pointer; what it had becomes the previous one, unless it is the same.
    pub fn set_pointer(
        &mut self,
        key: &PointerKey,
        value: Option<&str>,
        previous: Option<&str>,
        now_ms: i64,
    ) -> Result<()> {
        self.write(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO pointer (kind, scope, place, account, value, previous, changed_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                     ON CONFLICT (kind, scope, place, account) DO UPDATE
                     SET value = excluded.value, previous = excluded.previous, changed_ms = excluded.changed_ms",
                )?
                .execute((KIND, key.scope.as_str(), &key.place, &key.account, value, previous, now_ms))
                .map(drop)
        })
    }

    /// Forgets pointers.
    pub fn remove_pointers(&mut self, keys: &[PointerKey]) -> Result<()> {
        self.write(|connection| {
            let mut delete = connection.prepare_cached(
                "DELETE FROM pointer WHERE kind = ?1 AND scope = ?2 AND place = ?3 AND account = ?4",
            )?;
            keys.iter().try_for_each(|key| {
                delete.execute((KIND, key.scope.as_str(), &key.place, &key.account)).map(drop)
            })
        })
    }

    /// Lets everything that points to one context point to another, after a rename.
    pub fn repoint(&mut self, from: &str, to: &str) -> Result<()> {
        self.write(|connection| {
            connection
                .execute("UPDATE pointer SET value = ?2 WHERE kind = 'context' AND value = ?1", (from, to))?;
            connection
                .execute(
                    "UPDATE pointer SET previous = ?2 WHERE kind = 'context' AND previous = ?1",
                    (from, to),
                )
                .map(drop)
        })
    }
}
