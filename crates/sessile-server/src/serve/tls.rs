//! The certificate.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{ServeError, TlsFiles};

pub(super) fn acceptor(tls: &TlsFiles) -> Result<TlsAcceptor, ServeError> {
    let failed = |path: &Path, why: &dyn std::fmt::Display| ServeError::Tls(path.to_owned(), why.to_string());
    let certs = CertificateDer::pem_file_iter(&tls.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(&tls.cert, &error))?;
    // A PEM file without a certificate, such as a key in its place, parses as an empty list.
    if certs.is_empty() {
        return Err(failed(&tls.cert, &"no certificate found"));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| failed(&tls.key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certs, key))
        .map_err(|error| failed(&tls.cert, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
