//! A request to the upstream: one connection each, of TLS unless it stays on this machine. Redirects are not followed.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderValue, Method, Request, Uri, header};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use sessile::vault::Secret;
use sessile_wire::address::{AddressError, Origin, unbracketed};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

use super::Fault;

/// How long a connection may take, TLS included.
const CONNECT: Duration = Duration::from_secs(10);

/// Who is asked: one origin, to which alone the key goes.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// What stands before every path.
    base: Uri,
    origin: Origin,
    tls: Option<Arc<ClientConfig>>,
    key: Option<Secret>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    /// Headers beside those of every request.
    pub(super) headers: &'a [(&'static str, &'a str)],
    pub(super) body: Option<&'a [u8]>,
}

impl Site {
    /// A site by its URL, if a key may be sent there: by https, or on this machine.
    pub(super) fn new(url: &str, key: Option<Secret>) -> Result<Self, String> {
        let (base, origin) = parse_base(url)?;
        let tls = if origin.is_https() { Some(Arc::new(tls()?)) } else { None };
        let is_header = |key: &Secret| key.expose().bytes().all(|byte| byte.is_ascii_graphic());
        if key.as_ref().is_some_and(|key| key.is_empty() || !is_header(key)) {
            return Err("the key is not one line of visible characters".to_owned());
        }
        Ok(Site { base, origin, tls, key })
    }

    /// The path of the URL, without a slash at its end.
    pub(super) fn path(&self) -> &str {
        self.base.path().trim_end_matches('/')
    }

    /// The whole of it, in one spelling.
    pub(super) fn address(&self) -> String {
        let scheme = self.origin.scheme().as_str();
        format!("{scheme}://{}{}", self.authority().to_ascii_lowercase(), self.path())
    }

    pub(super) fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// The path of a URL that is of this very origin.
    pub(super) fn path_of(&self, url: &str) -> Option<String> {
        let (uri, origin) = parse_base(url).ok()?;
        (origin == self.origin).then(|| uri.path().to_owned())
    }

    fn authority(&self) -> &str {
        self.base.authority().map_or("", |authority| authority.as_str())
    }
}

/// Parses a URL that a path can be appended to.
fn parse_base(url: &str) -> Result<(Uri, Origin), String> {
    let malformed = || "it is not a URL of the form https://HOST/PATH".to_owned();
    let origin = Origin::of_secure_url(url).map_err(|error| match error {
        AddressError::UserInfo => "a user name or password has no place in a URL".to_owned(),
        AddressError::Insecure => "without https, whoever is in between would see everything".to_owned(),
        AddressError::Malformed | AddressError::Scheme | AddressError::Host | AddressError::Port => {
            malformed()
        }
    })?;
    let uri: Uri = url.parse().map_err(|_| malformed())?;
    if uri.query().is_some() || url.contains('#') {
        return Err(malformed());
    }
    Ok((uri, origin))
}

/// TLS with the authorities that the system trusts.
fn tls() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err("no certificates of authorities were found, so nobody can be trusted".to_owned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// An answer whose body is still to come. The connection ends with it.
#[derive(Debug)]
pub(super) struct Coming {
    pub(super) status: u16,
    /// Whether it is of server-sent events.
    pub(super) is_stream: bool,
    body: Incoming,
    _connection: Connection,
}

#[derive(Debug)]
struct Connection(AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection on which nothing was asked yet.
pub(super) struct Line {
    sender: SendRequest<Body>,
    connection: Connection,
}

impl Site {
    /// Connects. Whoever is there has heard nothing yet.
    pub(super) async fn connect(&self) -> Result<Line, Fault> {
        let unreachable = |error: &dyn std::fmt::Display| Fault::Unreachable(error.to_string());
        let host = unbracketed(self.origin.host()).unwrap_or(self.origin.host());
        let port = self.origin.port();
        let connected = tokio::time::timeout(CONNECT, async {
            let stream = TcpStream::connect((host, port)).await?;
            // A request is written whole.
            stream.set_nodelay(true)?;
            Ok::<Box<dyn Stream>, std::io::Error>(match &self.tls {
                None => Box::new(stream),
                Some(config) => {
                    let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
                    Box::new(TlsConnector::from(Arc::clone(config)).connect(name, stream).await?)
                }
            })
        });
        let stream = connected
            .await
            .map_err(|_| Fault::Unreachable("it does not take the connection".to_owned()))?
            .map_err(|error| unreachable(&error))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
        // What becomes of it is told by the answer.
        let connection = Connection(tokio::spawn(async move { drop(connection.await) }).abort_handle());
        Ok(Line { sender, connection })
    }

    /// Asks on a connection, and waits for the head of the answer.
    pub(super) async fn ask(&self, line: Line, asking: Asking<'_>) -> Result<Coming, Fault> {
        let Line { mut sender, connection } = line;
        let response = sender.send_request(self.request(asking)?).await;
        let response = response.map_err(|error| Fault::Unreachable(error.to_string()))?;
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"));
        let status = response.status().as_u16();
        Ok(Coming { status, is_stream, body: response.into_body(), _connection: connection })
    }

    fn request(&self, asking: Asking<'_>) -> Result<Request<Body>, Fault> {
        let mut request = Request::builder()
            .method(asking.method)
            .uri(if asking.path.is_empty() { "/" } else { asking.path })
            .header(header::HOST, self.authority())
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::USER_AGENT, concat!("sessile/", env!("CARGO_PKG_VERSION")));
        for (name, value) in asking.headers {
            request = request.header(*name, *value);
        }
        if asking.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(key) = &self.key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
            let mut value = value.map_err(|_| Fault::Unusable("the key is no header".to_owned()))?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        let body = asking.body.map_or_else(Body::empty, |body| Body::from(body.to_vec()));
        request.body(body).map_err(|error| Fault::Unusable(error.to_string()))
    }
}

impl Coming {
    /// The next bytes; nothing at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let body = &mut self.body;
            let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(Fault::Unreachable(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// All of it, if it is no more than this.
    pub(super) async fn all(&mut self, most: usize) -> Result<Vec<u8>, Fault> {
        let all = self.some(most + 1).await?;
        if all.len() > most {
            return Err(Fault::Unusable("the answer is too long".to_owned()));
        }
        Ok(all)
    }

    /// The beginning of it.
    pub(super) async fn some(&mut self, most: usize) -> Result<Vec<u8>, Fault> {
        let mut some = Vec::new();
        while some.len() < most
            && let Some(bytes) = self.next().await?
        {
            some.extend_from_slice(&bytes[..bytes.len().min(most - some.len())]);
        }
        Ok(some)
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_to_https_or_stays_on_this_machine() {
        for url in
            ["https://ai.example/v1", "https://ai.example/v1/", "http://127.0.0.1:1", "http://[::1]:1/v1"]
        {
            assert!(parse_base(url).is_ok(), "{url}");
        }
        for url in [
            "http://ai.example/v1",
            "http://localhost.example",
            "https://ada:hunter2@ai.example",
            "https://ai.example/v1?key=hunter2",
            "https://ai.example/#x",
            "ftp://localhost",
            "https://",
            "ai.example",
            "",
        ] {
            let told = parse_base(url).unwrap_err();
            assert!(!told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn only_the_same_origin_is_the_same_site() {
        let site = Site::new("http://127.0.0.1:80/agent/", None).unwrap();
        assert_eq!((site.path(), site.address().as_str()), ("/agent", "http://127.0.0.1:80/agent"));
        assert_eq!(site.path_of("http://127.0.0.1/rpc").as_deref(), Some("/rpc"));
        for other in ["http://127.0.0.1:81/rpc", "http://localhost/rpc", "https://127.0.0.1/rpc", "/rpc", ""]
        {
            assert_eq!(site.path_of(other), None, "{other}");
        }
    }
}
