//! Pointers: which context or session a scope has selected, and which one before.

use rusqlite::{OptionalExtension, Row};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::store::Store;

/// Kind of a pointer's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointerKind {
    /// A context.
    Context,
    /// A session.
    Session,
}

impl PointerKind {
    fn as_str(self) -> &'static str {
        match self {
            PointerKind::Context => "context",
            PointerKind::Session => "session",
        }
    }
}

/// Scope of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One terminal.
    Terminal,
    /// Directory; the value itself is in its `local.toml`.
    Directory,
    /// User; the value itself is in `config.toml`.
    Global,
}

impl Scope {
    /// Word.
    pub fn as_str(self) -> &'static str {
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

/// Key of a pointer: kind, scope, place and account.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PointerKey {
    /// Kind of the target.
    pub kind: PointerKind,
    /// The scope.
    pub scope: Scope,
    /// The terminal's key or the directory; nothing for the user.
    pub place: String,
    /// The account it belongs to.
    pub account: String,
}

/// State of a pointer: current and previous target.
pub(super) type PointerState = (Option<String>, Option<String>);

/// Row of a pointer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PointerRow {
    /// Key.
    pub key: PointerKey,
    /// Target, for a terminal.
    pub value: Option<String>,
    /// Previously selected name.
    pub previous: Option<String>,
}

fn row(kind: PointerKind, row: &Row<'_>) -> rusqlite::Result<PointerRow> {
    Ok(PointerRow {
        key: PointerKey {
            kind,
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
    pub(crate) fn pointer(&self, key: &PointerKey) -> Result<Option<PointerRow>> {
        self.answer(&("pointer", key), |connection| {
            connection
                .prepare_cached(
                    "SELECT scope, place, account, value, previous FROM pointer
                     WHERE kind = ?1 AND scope = ?2 AND place = ?3 AND account = ?4",
                )?
                .query_row((key.kind.as_str(), key.scope.as_str(), &key.place, &key.account), |found| {
                    row(key.kind, found)
                })
                .optional()
        })
    }

    /// Every pointer to things of a kind.
    pub(crate) fn pointers(&self, kind: PointerKind) -> Result<Vec<PointerRow>> {
        self.answer(&("pointers", kind), |connection| {
            connection
                .prepare("SELECT scope, place, account, value, previous FROM pointer WHERE kind = ?1")?
                .query_map([kind.as_str()], |found| row(kind, found))?
                .collect()
        })
    }

    /// Sets a pointer, with the value that it had before.
    pub(crate) fn set_pointer(
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
                .execute((key.kind.as_str(), key.scope.as_str(), &key.place, &key.account, value, previous, now_ms))
                .map(drop)
        })
    }

    /// Sets or deletes a pointer, if its current and previous values are those that the caller has read.
    pub(crate) fn swap_pointer(
        &mut self,
        key: &PointerKey,
        from: Option<&PointerState>,
        to: Option<&PointerState>,
        now_ms: i64,
    ) -> Result<bool> {
        self.write(|connection| {
            let place = (key.kind.as_str(), key.scope.as_str(), &key.place, &key.account);
            let now = connection
                .prepare_cached(
                    "SELECT value, previous FROM pointer WHERE kind = ?1 AND scope = ?2 AND place = ?3 AND account = ?4",
                )?
                .query_row(place, |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            if now.as_ref() != from {
                return Ok(false);
            }
            connection
                .prepare_cached("DELETE FROM pointer WHERE kind = ?1 AND scope = ?2 AND place = ?3 AND account = ?4")?
                .execute(place)?;
            if let Some((value, previous)) = to {
                connection
                    .prepare_cached(
                        "INSERT INTO pointer (kind, scope, place, account, value, previous, changed_ms)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    )?
                    .execute((place.0, place.1, place.2, place.3, value, previous, now_ms))?;
            }
            Ok(true)
        })
    }

    /// Forgets pointers.
    pub(crate) fn remove_pointers(&mut self, keys: &[PointerKey]) -> Result<()> {
        self.write(|connection| {
            let mut delete = connection.prepare_cached(
                "DELETE FROM pointer WHERE kind = ?1 AND scope = ?2 AND place = ?3 AND account = ?4",
            )?;
            keys.iter().try_for_each(|key| {
                delete.execute((key.kind.as_str(), key.scope.as_str(), &key.place, &key.account)).map(drop)
            })
        })
    }
}
