//! Columns with ids. They are parsed when they are read: a store that something else has written to fails, and no invalid id
//! goes on from there.

use std::error::Error;
use std::str::FromStr;

use rusqlite::types::{FromSqlError, FromSqlResult, ValueRef};
use tokio_postgres::types::Type;

/// A column of text, parsed.
pub(super) struct Column<T>(pub(super) T);

impl<T: FromStr<Err: Error + Send + Sync + 'static>> rusqlite::types::FromSql for Column<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Column).map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

impl<'a, T: FromStr<Err: Error + Send + Sync + 'static>> tokio_postgres::types::FromSql<'a> for Column<T> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let text: &str = tokio_postgres::types::FromSql::from_sql(kind, raw)?;
        Ok(Column(text.parse()?))
    }

    fn accepts(kind: &Type) -> bool {
        <&str as tokio_postgres::types::FromSql>::accepts(kind)
    }
}
