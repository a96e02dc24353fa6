//! Whether the role of the address is one to be used: asked before anything is made, for what it makes stays its own.

use std::sync::Arc;

use super::Inner;
use super::transaction::{PooledConnection, TxError};
use crate::store::ServiceStoreError;

/// The tables that belong to users, each row to one of them.
const OF_USERS: &[&str] = &[
    "session",
    "entry",
    "message",
    "event",
    "queue",
    "place",
    "answered",
    "audit",
    "agent_context",
    "label",
];

/// The others that are written to.
const OF_NOBODY: &[&str] = &["account", "token", "login", "process", "upkeep", "lease", "store_setting"];

/// SQL of the current role and schema.
const SELF: &str =
    "SELECT quote_ident(current_user::text), quote_ident(coalesce(current_schema()::text, 'public'))";

/// Whether row security does not hold for us, whatever a table says.
const IS_EXEMPT: &str = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user";

/// Existing tables that the role may not use, and their owner. Only the owner writes to the first one; others read
/// it.
const NOT_OURS: &str = "SELECT string_agg(relname::text, ', ' ORDER BY relname), min(quote_ident(pg_get_userbyid(relowner)::text))
    FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid) AND (
        relname = 'sessile_schema' AND NOT has_table_privilege(oid, 'SELECT')
        OR relname = ANY ($1::text[]) AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
            AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')))";

/// The tables that belong to users, for which row security does not hold as we are connected.
const OPEN: &str =
    "SELECT string_agg(name, ', ') FROM unnest($1::text[]) AS name WHERE NOT row_security_active(name)";

/// Role of the address and schema of its tables, quoted for SQL.
#[derive(Clone, Debug)]
pub(super) struct Role {
    name: String,
    schema: String,
}

impl Role {
    /// Checks the role: row-level security must apply to it, and it must have access to the existing tables.
    pub(super) async fn fit(inner: &Arc<Inner>) -> Result<Self, TxError> {
        let link = PooledConnection::for_service(inner).await?;
        let failed = |error: tokio_postgres::Error| TxError::of(&error, false);
        let client = link.raw()?;
        let row = client.query_one(SELF, &[]).await.map_err(failed)?;
        let name: String = row.try_get(0).map_err(failed)?;
        let schema: String = row.try_get(1).map_err(failed)?;
        if inner.options.isolation.in_rows() {
            let asked = known(client.query_opt(IS_EXEMPT, &[]).await).map_err(failed)?.flatten();
            let is_exempt: Option<bool> = asked.map(|row| row.try_get(0)).transpose().map_err(failed)?;
            // Superusers and roles with BYPASSRLS ignore even forced row security.
            if is_exempt == Some(true) {
                return unfit(format!(
                    "row security does not apply to role {name}: use a role without SUPERUSER and BYPASSRLS"
                ));
            }
        }
        let tables = [OF_USERS, OF_NOBODY].concat();
        let asked = known(client.query_one(NOT_OURS, &[&tables]).await).map_err(failed)?;
        let not_ours: Option<String> =
            asked.as_ref().map_or(Ok(None), |row| row.try_get(0)).map_err(failed)?;
        if let (Some(not_ours), Some(row)) = (not_ours, asked) {
            let owner: String = row.try_get(1).map_err(failed)?;
            return unfit(format!(
                "the role of the address, {name}, may not use the tables that are there ({not_ours}), which belong to {owner}: \
                 GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {name}, or make {name} their owner"
            ));
        }
        Ok(Role { name, schema })
    }

    /// Error of a role that may not create or migrate the tables.
    pub(super) fn may_not_make(&self) -> ServiceStoreError {
        let Role { name, schema } = self;
        ServiceStoreError::Unfit(format!(
            "the role of the address, {name}, may not make tables, or change those that are there: make it the owner of the \
             database and of its tables, or, where there are none yet, GRANT CREATE ON SCHEMA {schema} TO {name}"
        ))
    }
}

/// Refuses to go on where the database would not keep users apart: it would be noticed only when it is needed.
pub(super) async fn see_to_row_security(inner: &Arc<Inner>) -> Result<(), TxError> {
    if !inner.options.isolation.in_rows() {
        return Ok(());
    }
    let link = PooledConnection::for_service(inner).await?;
    let failed = |error: tokio_postgres::Error| TxError::of(&error, false);
    let asked = known(link.raw()?.query_one(OPEN, &[&OF_USERS]).await).map_err(failed)?;
    let open: Option<String> = asked.map_or(Ok(None), |row| row.try_get(0)).map_err(failed)?;
    let Some(open) = open else { return Ok(()) };
    unfit(format!(
        "row security does not hold for some of its tables ({open}): ALTER TABLE ... ENABLE ROW LEVEL SECURITY, and FORCE ROW LEVEL SECURITY"
    ))
}

/// Answer of a database; `None` from one without the functions of row security.
fn known<T>(asked: Result<T, tokio_postgres::Error>) -> Result<Option<T>, tokio_postgres::Error> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        // Undefined function, table or column.
        Err(error) if error.code().is_some_and(|code| matches!(code.code(), "42883" | "42P01" | "42703")) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn unfit<T>(why: String) -> Result<T, TxError> {
    Err(TxError::Fatal(ServiceStoreError::Unfit(why)))
}
