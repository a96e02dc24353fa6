//! Integrity checks beyond SQLite's own: files that are cut off, schemas that differ, text that is not UTF-8 or not JSON, and
//! exhausted numbers.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::files::with_ending;

/// Largest number of a row, revision or message: far beyond use, and far enough from the end that it can grow.
pub(super) const LARGEST: i64 = 1 << 53;

/// Columns whose numbers grow by one with each use.
const COUNTERS: &[&str] =
    &["id", "next", "next_event", "next_item", "next_message", "number", "revision", "seq", "token", "used"];

/// Columns with JSON: those of the library, and those that a service adds.
const JSON_COLUMNS: &[(&str, &str)] = &[
    ("answered", "change"),
    ("answered", "done"),
    ("conversation_item", "body"),
    ("entry", "value"),
    ("event", "body"),
    ("login", "scopes"),
    ("message", "body"),
    ("operation", "effects"),
    ("session", "labels"),
    ("session", "owner"),
    ("token", "scopes"),
];

/// Prefix of a service's stored change (`answered.change`) whose JSON is as it was sent.
pub const SENT_CHANGE: &str = "as-sent ";

/// Damage of a database file that is shorter than its pages. SQLite reads the missing end of the last page as zeros.
pub(super) fn truncation(connection: &Connection, path: &Path) -> rusqlite::Result<Option<String>> {
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let expected = number("PRAGMA page_count")?.saturating_mul(number("PRAGMA page_size")?);
    let size =
        |path: &Path| path.metadata().map_or(0, |found| i64::try_from(found.len()).unwrap_or(i64::MAX));
    // Pages in the log are not in the file yet. Looked at after the pages were counted: a writer may have begun since.
    let found = size(path);
    if size(&with_ending(path, "-wal")) > 0 || found >= expected {
        return Ok(None);
    }
    Ok(Some(format!("the file is cut off: it has {found} of {expected} bytes")))
}

/// A column of a table: table, name, type, whether it may be null, and its place in the primary key.
type SchemaColumn = (String, String, String, bool, i64);

fn schema_columns(connection: &Connection) -> rusqlite::Result<BTreeSet<SchemaColumn>> {
    connection
        .prepare(
            "SELECT tables.name, columns.name, columns.type, columns.\"notnull\", columns.pk
             FROM main.sqlite_schema AS tables JOIN pragma_table_xinfo(tables.name, 'main') AS columns
             WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite%'",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?
        .collect()
}

/// The first column of an expected schema that a database does not have, or has with another type.
pub fn missing_column(found: &Connection, expected: &Connection) -> rusqlite::Result<Option<String>> {
    let (found, expected) = (schema_columns(found)?, schema_columns(expected)?);
    let missing = expected.difference(&found).next();
    Ok(missing.map(|(table, column, ..)| format!("column {table}.{column} is missing or has another type")))
}

/// The first part of the schema that is not UTF-8. The names in it cannot be read then.
pub(super) fn invalid_schema(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut select = connection.prepare("SELECT type, name, tbl_name, sql FROM main.sqlite_schema")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..4 {
            if is_invalid_text(row.get_ref(column)?) {
                return Ok(Some("the schema has text that is not valid UTF-8".to_owned()));
            }
        }
    }
    Ok(None)
}

/// The columns with text that is not UTF-8 or not JSON, which SQLite stores and no reader accepts, and those with numbers that
/// cannot grow: one line for each. The schema must be valid.
pub(super) fn invalid_rows(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let tables = connection
        .prepare(
            "SELECT name FROM main.sqlite_schema
             WHERE type = 'table' AND (name NOT LIKE 'sqlite%' OR name = 'sqlite_sequence')",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    // A set: one line for a column, however many of its rows are damaged.
    let mut found = BTreeSet::new();
    for table in tables {
        let mut select =
            connection.prepare(&format!("SELECT * FROM main.\"{}\"", table.replace('"', "\"\"")))?;
        let columns: Vec<String> = select.column_names().map(str::to_owned).collect();
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            for (index, column) in columns.iter().enumerate() {
                let value = row.get_ref(index)?;
                if is_invalid_text(value) {
                    found.insert(format!("{table}.{column} has text that is not valid UTF-8"));
                } else if is_exhausted(column, value) {
                    found.insert(format!("{table}.{column} has a number that is out of range"));
                } else if is_invalid_id(&table, column, value) {
                    found.insert(format!("{table}.{column} has a value that is not an id of a session"));
                } else if is_invalid_json(&table, column, value) {
                    found.insert(format!("{table}.{column} has a value that is not valid JSON"));
                } else if table == "sqlite_sequence" && !is_sequence(column, value) {
                    found.insert(format!("{table}.{column} has a value of another type"));
                }
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Whether a value is a number of a column that counts, and cannot be one that was counted to.
pub(super) fn is_exhausted(column: &str, value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Integer(number) => COUNTERS.contains(&column) && !(0..=LARGEST).contains(&number),
        ValueRef::Null => false,
        // Only this column has no type.
        _ => column == "seq",
    }
}

/// Whether a value should be the id of a session and is not one: no session could be found by it.
pub(super) fn is_invalid_id(table: &str, column: &str, value: ValueRef<'_>) -> bool {
    let is_uuid = |text| std::str::from_utf8(text).is_ok_and(sessile_wire::id::is_uuid);
    table == "session" && column == "id" && !matches!(value, ValueRef::Text(text) if is_uuid(text))
}

/// Whether a value should be JSON and is not. A column that may be null is checked if it is not.
pub(super) fn is_invalid_json(table: &str, column: &str, value: ValueRef<'_>) -> bool {
    let is_json = |text: &[u8]| {
        let sent = (table, column) == ("answered", "change");
        let text = text.strip_prefix(SENT_CHANGE.as_bytes()).filter(|_| sent).unwrap_or(text);
        crate::json::from_slice::<serde_json::Value>(text).is_ok()
    };
    JSON_COLUMNS.contains(&(table, column)) && matches!(value, ValueRef::Text(text) if !is_json(text))
}

/// Whether a value has the type of a column of `sqlite_sequence`, the one table without types.
fn is_sequence(column: &str, value: ValueRef<'_>) -> bool {
    match column {
        "name" => matches!(value, ValueRef::Text(_)),
        _ => matches!(value, ValueRef::Integer(_)),
    }
}

/// Table whose numbers are exhausted, if any.
pub(super) fn exhausted_number(connection: &Connection) -> Option<String> {
    let table: String = connection
        // SQLite stops an AUTOINCREMENT at this number with SQLITE_FULL.
        .query_row("SELECT name FROM main.sqlite_sequence WHERE seq = ?1", [i64::MAX], |row| row.get(0))
        .ok()?;
    Some(format!("sqlite_sequence.seq of table {table} has a number that is out of range"))
}

/// Whether an error of SQLite says that the schema lacks something.
pub(super) fn is_missing_in_schema(detail: &str) -> bool {
    const MISSING: [&str; 3] = ["no such column: ", "no such table: ", "has no column named "];
    MISSING.iter().any(|missing| detail.contains(missing))
}

/// The error of a database whose rows cannot be used.
pub(super) fn corrupt(detail: &str) -> rusqlite::Error {
    let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    rusqlite::Error::SqliteFailure(error, Some(detail.to_owned()))
}

fn is_invalid_text(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Text(text) if std::str::from_utf8(text).is_err())
}
