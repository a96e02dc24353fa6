//! Address of the database, and the pool of connections to it.

use std::path::PathBuf;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts};
use sessile::vault::Secret;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

use super::sql::UserIsolation;
use super::tls::{CertificateCheck, PostgresTls};
use super::transaction::TxError;
use crate::store::ServiceStoreError;
use crate::store::fair_queue::{FairQueue, Slot, cores};

/// Options of a store in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Number of connections, at most.
    pub connections: usize,
    /// Timeout of a connection, or of a place in the pool.
    pub connect: Duration,
    /// Timeout of a statement, with the wait for its locks.
    pub statement: Duration,
    /// Time for which an unreachable database is retried.
    pub patience: Duration,
    /// The password, which has no place in an address that others see.
    pub password: Option<Secret>,
    /// For tests.
    pub isolation: UserIsolation,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        PostgresOptions {
            connections: 16,
            connect: Duration::from_secs(5),
            statement: Duration::from_secs(10),
            patience: Duration::from_secs(10),
            password: None,
            isolation: UserIsolation::Both,
        }
    }
}

/// Configuration of connections.
#[derive(Clone)]
pub(super) struct PostgresAddress {
    pub(super) config: Config,
    pub(super) tls: PostgresTls,
}

impl PostgresAddress {
    /// Parses an address, with libpq's rules for TLS.
    pub(super) fn parse(url: &str, options: &PostgresOptions) -> Result<Self, ServiceStoreError> {
        // An address may hold a password: what is wrong with it is said without it.
        let wrong = |what: String| ServiceStoreError::Unfit(format!("invalid database URL: {what}"));
        let (url, asked) = split_tls_parameters(url);
        let mut config: Config =
            url.parse().map_err(|error: tokio_postgres::Error| wrong(error.to_string()))?;
        if let Some(password) = &options.password {
            config.password(password.expose());
        }
        let authorities = asked.authorities.map(PathBuf::from);
        let (mode, verify) = match asked.mode.as_deref().unwrap_or("prefer") {
            "disable" => (SslMode::Disable, CertificateCheck::Nothing),
            "prefer" => (SslMode::Prefer, CertificateCheck::Nothing),
            // Whoever says where the authorities are wants them asked.
            "require" if authorities.is_some() => (SslMode::Require, CertificateCheck::Authority),
            "require" => (SslMode::Require, CertificateCheck::Nothing),
            "verify-ca" => (SslMode::Require, CertificateCheck::Authority),
            "verify-full" => (SslMode::Require, CertificateCheck::Full),
            other => return Err(wrong(format!("sslmode cannot be {other:?}"))),
        };
        let tls = PostgresTls::new(verify, authorities.as_deref()).map_err(wrong)?;
        // Of several, the one that can be written to: the others follow it.
        if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        // The kernel would retransmit to a vanished host for many minutes; twice the statement timeout is enough to
        // tell.
        config.ssl_mode(mode).connect_timeout(options.connect).tcp_user_timeout(options.statement * 2);
        // Load balancers and NAT drop idle connections silently.
        config.keepalives_idle(Duration::from_secs(30));
        if config.get_application_name().is_none() {
            config.application_name("sessile");
        }
        // Who hangs in the middle of a transaction must not keep others waiting.
        let millis = options.statement.as_millis();
        let given = config.get_options().map(|given| format!("{given} ")).unwrap_or_default();
        config.options(format!(
            "{given}-c statement_timeout={millis} -c idle_in_transaction_session_timeout={millis}"
        ));
        Ok(PostgresAddress { config, tls })
    }

    /// The connections for what belongs to users, and those for users and tokens themselves.
    pub(super) fn pools(&self, options: &PostgresOptions) -> Result<(FairPool, FairPool), ServiceStoreError> {
        let accounts = (options.connections / 4).max(1);
        let others = options.connections.saturating_sub(accounts).max(1);
        let pool = |size: usize, each: usize| {
            let pool = self.pool(size, options)?;
            Ok(FairPool { pool, queue: FairQueue::new(size, each.max(1)), patience: options.connect })
        };
        Ok((pool(others, cores().min(others / 3))?, pool(accounts, accounts / 2)?))
    }

    fn pool(&self, size: usize, options: &PostgresOptions) -> Result<Pool, ServiceStoreError> {
        // No test query on reuse: it would cost a round trip per request, and a lost connection is retried anyway.
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), self.tls.clone(), recycling);
        Pool::builder(manager)
            .max_size(size)
            .timeouts(Timeouts {
                wait: Some(options.connect),
                create: Some(options.connect),
                recycle: Some(options.connect),
            })
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| ServiceStoreError::Failed(error.to_string()))
    }
}

/// A pool of connections in which users take turns.
pub(super) struct FairPool {
    pool: Pool,
    queue: FairQueue,
    patience: Duration,
}

impl FairPool {
    pub(super) async fn get(&self, lane: &str) -> Result<(Object, Slot), TxError> {
        let busy = |_| {
            let why = format!("no free connection for {} s", self.patience.as_secs());
            TxError::Fatal(ServiceStoreError::Unavailable(why))
        };
        // The turn first and then the connection: the pool itself serves in the order of arrival.
        let slot = tokio::time::timeout(self.patience, self.queue.enter(lane)).await.map_err(busy)?;
        // There are as many slots as connections: only one that has to be made is waited for.
        Ok((self.pool.get().await?, slot))
    }
}

/// TLS parameters of an address.
#[derive(Default)]
struct TlsParameters {
    mode: Option<String>,
    authorities: Option<String>,
}

/// Removes the TLS parameters from an address, because the driver supports only some of them.
fn split_tls_parameters(url: &str) -> (String, TlsParameters) {
    let mut asked = TlsParameters::default();
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), asked) };
    let mut rest = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => asked.mode = Some(mode.to_owned()),
            // As libpq: the system's authorities are trusted only with a check of the host name.
            Some(("sslrootcert", "system")) => asked.mode = Some("verify-full".to_owned()),
            Some(("sslrootcert", path)) => {
                asked.authorities = Some(sessile_wire::percent::decode_lossy(path));
            }
            _ => rest.push(pair),
        }
    }
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    (format!("{base}{query}"), asked)
}

#[cfg(test)]
mod tests {
    use super::{PostgresAddress, PostgresOptions, split_tls_parameters};

    #[test]
    fn tls_parameters_are_removed_from_the_address() {
        let (url, asked) = split_tls_parameters(
            "postgres://u@h/d?sslmode=verify-ca&application_name=x&sslrootcert=/a%20b.pem",
        );
        assert_eq!(url, "postgres://u@h/d?application_name=x");
        assert_eq!(
            (asked.mode.as_deref(), asked.authorities.as_deref()),
            (Some("verify-ca"), Some("/a b.pem"))
        );
    }

    #[test]
    fn address_error_contains_no_password() {
        for url in
            ["postgres://u:geheim@h/d?sslmode=perhaps", "postgres://u:geheim@h:port/d", "mysql://u:geheim@h"]
        {
            let error =
                PostgresAddress::parse(url, &PostgresOptions::default()).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| !error.contains("geheim")), "{url}");
        }
    }
}
