//! HTTP connections to the upstream, with TLS unless it stays on this machine. Redirects are not followed.
//!
//! A connection is used again only for the same user (`idle.rs`): an upstream that answers out of turn cannot show one
//! user's reply to another.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderValue, Method, Request, Uri, header};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sessile::vault::Secret;
use sessile_wire::address::{AddressError, HttpOrigin, unbracketed};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

use super::UpstreamError;
use crate::client_tls;

/// Timeout of a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes after the end of a reply that are read to use the connection again.
const REST_BYTES: usize = 4096;

/// Server of the upstream. The key goes to its origin alone.
#[derive(Clone, Debug)]
pub(super) struct UpstreamSite {
    /// URL that paths are appended to.
    base: Uri,
    origin: HttpOrigin,
    tls: Option<Arc<ClientConfig>>,
    key: Option<Secret>,
}

/// HTTP request.
#[derive(Clone, Copy, Debug)]
pub(super) struct SiteRequest<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    /// Headers in addition to those of every request.
    pub(super) headers: &'a [(&'static str, &'a str)],
    pub(super) body: Option<&'a [u8]>,
}

impl UpstreamSite {
    /// Server at a URL that a key may be sent to: over `https`, or on this machine.
    pub(super) fn new(url: &str, key: Option<Secret>) -> Result<Self, String> {
        let (base, origin) = parse_base(url)?;
        let tls = if origin.is_https() {
            Some(Arc::new(client_tls::verified_builder(None)?.with_no_client_auth()))
        } else {
            None
        };
        // Checked at start-up, so that an unusable key does not fail every reply later.
        let is_header = |key: &Secret| key.expose().bytes().all(|byte| byte.is_ascii_graphic());
        if key.as_ref().is_some_and(|key| key.is_empty() || !is_header(key)) {
            return Err("the key must be one line of visible characters".to_owned());
        }
        Ok(UpstreamSite { base, origin, tls, key })
    }

    /// Path of the URL, without a slash at its end.
    pub(super) fn path(&self) -> &str {
        self.base.path().trim_end_matches('/')
    }

    /// Normalized URL.
    pub(super) fn address(&self) -> String {
        let scheme = self.origin.scheme().as_str();
        // Stored conversations are compared with it, and hosts are case-insensitive.
        format!("{scheme}://{}{}", self.authority().to_ascii_lowercase(), self.path())
    }

    pub(super) fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// Path of a URL that has the same origin.
    pub(super) fn path_of(&self, url: &str) -> Option<String> {
        let (uri, origin) = parse_base(url).ok()?;
        (origin == self.origin).then(|| uri.path().to_owned())
    }

    fn authority(&self) -> &str {
        self.base.authority().map_or("", |authority| authority.as_str())
    }
}

/// Parses a URL that a path can be appended to.
fn parse_base(url: &str) -> Result<(Uri, HttpOrigin), String> {
    let malformed = || "not a URL of the form https://HOST/PATH".to_owned();
    let origin = HttpOrigin::of_secure_url(url).map_err(|error| match error {
        AddressError::UserInfo => "user names and passwords are not allowed in URLs".to_owned(),
        AddressError::Insecure => "https is required for remote upstreams".to_owned(),
        AddressError::Malformed | AddressError::Scheme | AddressError::Host | AddressError::Port => {
            malformed()
        }
    })?;
    let uri: Uri = url.parse().map_err(|_| malformed())?;
    // Paths are appended to the URL, so it cannot end in a query or a fragment.
    if uri.query().is_some() || url.contains('#') {
        return Err(malformed());
    }
    Ok((uri, origin))
}

/// Response whose body has not been read. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct SiteResponse {
    pub(super) status: u16,
    /// Whether the body is a stream of server-sent events.
    pub(super) is_stream: bool,
    body: Incoming,
    line: OpenConnection,
}

#[derive(Debug)]
struct Connection(AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connection without a request.
#[derive(Debug)]
pub(super) struct OpenConnection {
    sender: SendRequest<Body>,
    _connection: Connection,
}

impl OpenConnection {
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl UpstreamSite {
    /// Connects, and sends nothing.
    pub(super) async fn connect(&self) -> Result<OpenConnection, UpstreamError> {
        let unreachable = |error: &dyn std::fmt::Display| UpstreamError::Unreachable(error.to_string());
        let host = unbracketed(self.origin.host()).unwrap_or(self.origin.host());
        let port = self.origin.port();
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, async {
            let stream = TcpStream::connect((host, port)).await?;
            // Requests are written at once, so Nagle's algorithm only delays them.
            stream.set_nodelay(true)?;
            Ok::<Box<dyn IoStream>, std::io::Error>(match &self.tls {
                None => Box::new(stream),
                Some(config) => {
                    let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
                    Box::new(TlsConnector::from(Arc::clone(config)).connect(name, stream).await?)
                }
            })
        });
        let stream = connected
            .await
            .map_err(|_| UpstreamError::Unreachable("connection refused".to_owned()))?
            .map_err(|error| unreachable(&error))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
        // Errors of the connection reach the caller through the response.
        let connection = Connection(tokio::spawn(async move { drop(connection.await) }).abort_handle());
        Ok(OpenConnection { sender, _connection: connection })
    }

    /// Sends a request on a connection, and waits for the head of the response.
    pub(super) async fn send(
        &self,
        mut line: OpenConnection,
        request: SiteRequest<'_>,
    ) -> Result<SiteResponse, UpstreamError> {
        let response = line.sender.send_request(self.build(request)?).await;
        let response = response.map_err(|error| UpstreamError::Unreachable(error.to_string()))?;
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"));
        let status = response.status().as_u16();
        Ok(SiteResponse { status, is_stream, body: response.into_body(), line })
    }

    fn build(&self, parts: SiteRequest<'_>) -> Result<Request<Body>, UpstreamError> {
        let mut request = Request::builder()
            .method(parts.method)
            // A request line cannot have an empty target.
            .uri(if parts.path.is_empty() { "/" } else { parts.path })
            .header(header::HOST, self.authority())
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::USER_AGENT, concat!("sessile/", env!("CARGO_PKG_VERSION")));
        for (name, value) in parts.headers {
            request = request.header(*name, *value);
        }
        if parts.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(key) = &self.key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
            let mut value =
                value.map_err(|_| UpstreamError::Unusable("the key is not a valid header".to_owned()))?;
            // Keeps the key out of debug output, and out of header compression tables.
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        let body = parts.body.map_or_else(Body::empty, |body| Body::from(body.to_vec()));
        request.body(body).map_err(|error| UpstreamError::Unusable(error.to_string()))
    }
}

impl SiteResponse {
    /// Next bytes; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        loop {
            let body = &mut self.body;
            let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(UpstreamError::Unreachable(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Whole body, up to a limit.
    pub(super) async fn all(&mut self, most: usize) -> Result<Vec<u8>, UpstreamError> {
        // One byte more, to tell a body that just fits from one that is too long.
        let all = self.some(most + 1).await?;
        if all.len() > most {
            return Err(UpstreamError::Unusable("the response is too long".to_owned()));
        }
        Ok(all)
    }

    /// Connection after the body has ended, if the upstream keeps it open. Reads what is left of a short rest.
    pub(super) async fn into_line(mut self) -> Option<OpenConnection> {
        let mut rest = REST_BYTES;
        while let Some(bytes) = self.next().await.ok()? {
            rest = rest.checked_sub(bytes.len())?;
        }
        self.line.sender.ready().await.ok()?;
        Some(self.line)
    }

    /// Beginning of the body.
    pub(super) async fn some(&mut self, most: usize) -> Result<Vec<u8>, UpstreamError> {
        let mut some = Vec::new();
        while some.len() < most
            && let Some(bytes) = self.next().await?
        {
            some.extend_from_slice(&bytes[..bytes.len().min(most - some.len())]);
        }
        Ok(some)
    }
}

trait IoStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> IoStream for S {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_sent_only_to_https_or_loopback() {
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
    fn path_of_another_origin_is_none() {
        let site = UpstreamSite::new("http://127.0.0.1:80/agent/", None).unwrap();
        assert_eq!((site.path(), site.address().as_str()), ("/agent", "http://127.0.0.1:80/agent"));
        assert_eq!(site.path_of("http://127.0.0.1/rpc").as_deref(), Some("/rpc"));
        for other in ["http://127.0.0.1:81/rpc", "http://localhost/rpc", "https://127.0.0.1/rpc", "/rpc", ""]
        {
            assert_eq!(site.path_of(other), None, "{other}");
        }
    }
}
