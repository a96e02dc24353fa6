//! The client: one connection for each request, bounded in time and size.

use std::io::Read;
#[cfg(test)]
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sessile::vault::Secret;
use ureq::config::{Config, ConfigBuilder};
use ureq::http::{HeaderMap, HeaderValue, Uri};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::typestate::{AgentScope, WithBody, WithoutBody};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body, Proxy, RequestBuilder};
use zeroize::Zeroizing;

use super::exchange::ResponseObserver;
use super::{HttpAddress, HttpError, form};

/// Timeout of a connection, TLS included.
const CONNECT: Duration = Duration::from_secs(10);

/// Timeout of a request and its response.
const TOTAL: Duration = Duration::from_secs(30);

/// The largest answer that is read.
const LARGEST: usize = 1 << 20;

/// Trusted certificate authorities.
#[derive(Debug, Clone, Default)]
pub(crate) enum TrustRoots {
    /// The authorities that the system trusts, or those that SSL_CERT_FILE and SSL_CERT_DIR name.
    #[default]
    System,
    /// Certificates in a PEM file.
    #[cfg(test)]
    File(PathBuf),
}

/// HTTP client. Creating one costs nothing: TLS is set up at the first request that needs it.
pub(crate) struct HttpClient {
    roots: TrustRoots,
    connect: Duration,
    total: Duration,
    loaded: OnceLock<Arc<Vec<Certificate<'static>>>>,
    /// Client certificate, and the address whose origin gets it.
    client_cert: Option<Box<(HttpAddress, ClientCert)>>,
    /// Whether certificates of servers on this machine are not verified.
    is_insecure: bool,
    pub(super) observer: Option<Arc<dyn ResponseObserver>>,
}

/// Response of a server. Any status is a response; redirects are not followed.
#[derive(Debug)]
pub(crate) struct BufferedResponse {
    /// The status.
    pub(crate) status: u16,
    /// Wait before a retry, from `Retry-After`.
    pub(crate) retry_after: Option<Duration>,
    /// Body, which may hold tokens. Invalid UTF-8 is replaced.
    pub(crate) body: Secret,
}

impl HttpClient {
    /// A client that trusts these authorities.
    pub(crate) fn new(roots: TrustRoots) -> Self {
        HttpClient {
            roots,
            connect: CONNECT,
            total: TOTAL,
            loaded: OnceLock::new(),
            client_cert: None,
            is_insecure: false,
            observer: None,
        }
    }

    /// With a client certificate for the origin of an address: PEM of the chain and of the private key.
    pub(crate) fn with_client_cert(
        self,
        address: HttpAddress,
        chain: &[u8],
        key: &[u8],
    ) -> Result<Self, String> {
        let mut certificates = Vec::new();
        for item in parse_pem(chain) {
            if let Ok(PemItem::Certificate(certificate)) = item {
                certificates.push(certificate);
            }
        }
        if certificates.is_empty() {
            return Err("no PEM certificate found".to_owned());
        }
        let key = PrivateKey::from_pem(key).map_err(|_| "no PEM private key found".to_owned())?;
        check_pair(&certificates, &key)?;
        let certificate = ClientCert::new_with_certs(&certificates, key);
        Ok(HttpClient { client_cert: Some(Box::new((address, certificate))), ..self })
    }

    /// With another timeout for connecting.
    pub(crate) fn with_connect_timeout(self, connect: Duration) -> Self {
        HttpClient { connect, ..self }
    }

    /// Without verification of the certificates of servers on this machine, for tests. Others are verified all the same.
    pub(crate) fn without_verification(self) -> Self {
        HttpClient { is_insecure: true, ..self }
    }

    /// With an observer of the answers to [`HttpClient::exchange`].
    pub(crate) fn with_observer(self, observer: Arc<dyn ResponseObserver>) -> Self {
        HttpClient { observer: Some(observer), ..self }
    }

    /// With other limits, for connecting and for all of a request.
    #[cfg(test)]
    pub(crate) fn with_timeouts(self, connect: Duration, total: Duration) -> Self {
        HttpClient { connect, total, ..self }
    }

    /// Asks for a page and looks at the status alone.
    pub(crate) fn status(&self, url: &str, headers: &[(&str, &str)]) -> Result<u16, HttpError> {
        let address = HttpAddress::parse(url)?;
        let request: RequestBuilder<WithoutBody> = self.agent(&address)?.get(address.uri());
        let sent = with_headers(request, &address, headers)?.call();
        sent.map(|answer| answer.status().as_u16()).map_err(|error| HttpError::new(&address, error))
    }

    /// Asks for a page.
    pub(crate) fn get(&self, url: &str, headers: &[(&str, &str)]) -> Result<BufferedResponse, HttpError> {
        let address = HttpAddress::parse(url)?;
        let request: RequestBuilder<WithoutBody> = self.agent(&address)?.get(address.uri());
        let sent = with_headers(request, &address, headers)?.call();
        answer(&address, sent)
    }

    /// Sends what a form would.
    pub(crate) fn post_form(
        &self,
        url: &str,
        pairs: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Result<BufferedResponse, HttpError> {
        let address = HttpAddress::parse(url)?;
        let request: RequestBuilder<WithBody> = self.agent(&address)?.post(address.uri());
        let request = request.content_type("application/x-www-form-urlencoded");
        let sent = with_headers(request, &address, headers)?.send(form(pairs).as_bytes());
        answer(&address, sent)
    }

    /// One for a single request: nothing stays open in between, for the next may be minutes or a suspend away.
    fn agent(&self, address: &HttpAddress) -> Result<Agent, HttpError> {
        self.agent_with(address, |config| config.timeout_global(Some(self.total)))
    }

    /// Agent with its own timeouts.
    pub(super) fn agent_with(
        &self,
        address: &HttpAddress,
        timeouts: impl FnOnce(ConfigBuilder<AgentScope>) -> ConfigBuilder<AgentScope>,
    ) -> Result<Agent, HttpError> {
        let mut config = Agent::config_builder()
            .user_agent(concat!("sessile/", env!("CARGO_PKG_VERSION")))
            // Callers read the body of an error, which says what is wrong.
            .http_status_as_error(false)
            // A redirect could carry the credential to another origin; callers decide on each.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(0)
            .timeout_resolve(Some(self.connect))
            .timeout_connect(Some(self.connect))
            // A second lock besides `HttpAddress`, within the HTTP library.
            .https_only(address.is_https())
            // A proxy cannot reach this machine's loopback, and must not see what is sent there.
            .proxy(if address.is_loopback() { None } else { Proxy::try_from_env() });
        if address.is_https() {
            let tls = TlsConfig::builder()
                .provider(TlsProvider::Rustls)
                .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .disable_verification(self.is_insecure && address.is_loopback())
                .client_cert(self.client_cert_for(address));
            let tls = match self.is_insecure && address.is_loopback() {
                true => tls,
                false => tls.root_certs(RootCerts::Specific(self.authorities(address)?)),
            };
            config = config.tls_config(tls.build());
        }
        Ok(Agent::with_parts(timeouts(config).build(), DefaultConnector::new(), ThreadedResolver::default()))
    }

    fn client_cert_for(&self, address: &HttpAddress) -> Option<ClientCert> {
        let (home, certificate) = self.client_cert.as_deref()?;
        home.is_same_origin(address).then(|| certificate.clone())
    }

    /// The trusted authorities, read once.
    fn authorities(&self, address: &HttpAddress) -> Result<Arc<Vec<Certificate<'static>>>, HttpError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(Arc::clone(loaded));
        }
        let found = match &self.roots {
            TrustRoots::System => rustls_native_certs::load_native_certs(),
            #[cfg(test)]
            TrustRoots::File(path) => rustls_native_certs::load_certs_from_paths(Some(path), None),
        };
        // A few that cannot be read are usual; none at all is a reason.
        if found.certs.is_empty() {
            let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
            let reason = format!("no CA certificates found{why}").into();
            return Err(HttpError::Unreachable { url: address.to_string(), reason });
        }
        let certificates = found.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
        Ok(Arc::clone(self.loaded.get_or_init(|| Arc::new(certificates))))
    }
}

/// Resolver of the HTTP library, which looks names up in a thread and panics where it gets none.
#[derive(Debug, Default)]
struct ThreadedResolver(DefaultResolver);

impl Resolver for ThreadedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let thread = std::thread::Builder::new().spawn(|| {})?;
        // Ended before the lookup starts its own, so that one free thread is enough.
        let _ = thread.join();
        self.0.resolve(uri, config, timeout)
    }
}

fn with_headers<T>(
    mut request: RequestBuilder<T>,
    address: &HttpAddress,
    headers: &[(&str, &str)],
) -> Result<RequestBuilder<T>, HttpError> {
    for (name, value) in headers {
        request = request.header(*name, header_value(address, value)?);
    }
    Ok(request)
}

/// Fails unless TLS can use a certificate with a private key. The HTTP library panics with a pair that it cannot use.
fn check_pair(certificates: &[Certificate<'_>], key: &PrivateKey<'_>) -> Result<(), String> {
    let chain = certificates.iter().map(|one| CertificateDer::from(one.der().to_vec())).collect();
    let key = PrivateKeyDer::try_from(key.der().to_vec())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let config = config.with_root_certificates(rustls::RootCertStore::empty());
    config.with_client_auth_cert(chain, key).map(drop).map_err(|error| error.to_string())
}

/// A header's value, which may be a credential.
pub(super) fn header_value(address: &HttpAddress, value: &str) -> Result<HeaderValue, HttpError> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|error| HttpError::new(address, ureq::Error::Http(error.into())))?;
    // Keeps credentials out of debug output.
    value.set_sensitive(true);
    Ok(value)
}

fn answer(
    address: &HttpAddress,
    sent: Result<ureq::http::Response<Body>, ureq::Error>,
) -> Result<BufferedResponse, HttpError> {
    let (head, body) = sent.map_err(|error| HttpError::new(address, error))?.into_parts();
    Ok(BufferedResponse {
        status: head.status.as_u16(),
        retry_after: header(&head.headers, "retry-after")
            .and_then(|seconds| seconds.trim().parse().ok())
            .map(Duration::from_secs),
        body: read(address, body)?,
    })
}

pub(super) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Reads a body of bounded size, leaving no copy of it behind.
fn read(address: &HttpAddress, mut body: Body) -> Result<Secret, HttpError> {
    let too_large = || HttpError::TooLarge { url: address.to_string() };
    let expected = body.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(LARGEST);
    if expected > LARGEST {
        return Err(too_large());
    }
    // One more than there can be, so that the end is found without growing.
    let mut bytes = Zeroizing::new(Vec::with_capacity(expected + 2));
    let limit = u64::try_from(LARGEST + 1).unwrap_or(u64::MAX);
    let done = body.as_reader().take(limit).read_to_end(&mut bytes);
    done.map_err(|error| HttpError::new(address, error.into()))?;
    if bytes.len() > LARGEST {
        return Err(too_large());
    }
    Ok(match String::from_utf8(std::mem::take(&mut *bytes)) {
        Ok(text) => Secret::new(text),
        Err(error) => {
            // The rejected bytes may hold a token too.
            let bytes = Zeroizing::new(error.into_bytes());
            Secret::new(String::from_utf8_lossy(&bytes))
        }
    })
}
