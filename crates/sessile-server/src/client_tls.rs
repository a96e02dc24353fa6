//! TLS of the service's own connections, to the database and to the upstream.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::crypto::ring;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};

/// Builder with the provider and the protocol versions of all connections.
pub(crate) fn config_builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

/// Builder that verifies servers by the certificate authorities in a file, or else the system's.
pub(crate) fn verified_builder(
    authorities: Option<&Path>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
    Ok(config_builder()?.with_root_certificates(root_certificates(authorities)?))
}

/// Certificate authorities in a file, or else the system's.
pub(crate) fn root_certificates(authorities: Option<&Path>) -> Result<RootCertStore, String> {
    let found = match authorities {
        Some(path) => rustls_native_certs::load_certs_from_paths(Some(path), None),
        None => rustls_native_certs::load_native_certs(),
    };
    let mut roots = RootCertStore::empty();
    // A system's bundle may hold a certificate that is not parsable; the others still count.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let place =
            authorities.map_or_else(|| "on this system".to_owned(), |path| format!("in {}", path.display()));
        return Err(format!("no CA certificates found {place}"));
    }
    Ok(roots)
}
