//! The server over streamable HTTP, for clients that connect to it instead of starting it.
//!
//! A caller shows the bearer token or, where the server has none, connects from this machine as the same user. Pages of
//! other origins are refused.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use sessile::vault::Secret;
use sessile::{Code, Report, State};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::peer_user::is_same_user;
use super::server::{McpConnection, PARTING, ServerState, ToolAccess};
use super::stdio::{runtime, start_error};
use crate::error::{CommandError, Failure, Outcome};

/// Path of the endpoint.
pub(crate) const PATH: &str = "/mcp";

/// Connections at once; others wait to be accepted.
const CONNECTIONS: usize = 256;

/// Time for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Size of a request's head, at most.
const HEAD_BYTES: usize = 64 << 10;

/// Size of a request's body, at most: as of a line on standard input.
const BODY_BYTES: usize = 24 << 20;

/// Time after which the session of a silent client ends, by the protocol's own sessions.
const SILENCE: Duration = Duration::from_secs(3600);

/// Origins of pages that may connect: those of this machine, such as an inspector's.
const ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "https://localhost:*",
    "http://127.0.0.1:*",
    "https://127.0.0.1:*",
    "http://[::1]:*",
    "https://[::1]:*",
];

/// Address and callers of the server.
#[derive(Debug)]
pub(crate) struct HttpOptions {
    pub(crate) listen: SocketAddr,
    /// Bearer token; without one only the same user on this machine is served.
    pub(crate) token: Option<Secret>,
}

type Service = StreamableHttpService<McpConnection, LocalSessionManager>;

/// Handler of connections.
#[derive(Clone)]
struct HttpHandler {
    service: Service,
    token: Option<Arc<Secret>>,
    parting: watch::Receiver<bool>,
}

/// Serves until a signal arrives. Calls `started` with the address once clients can connect.
pub(crate) fn serve(
    state: &State,
    access: ToolAccess,
    options: HttpOptions,
    started: impl FnOnce(SocketAddr),
) -> Outcome {
    let runtime = runtime()?;
    let (part, parting) = watch::channel(false);
    let shared = Arc::new(ServerState::new(state, access, parting.clone()));
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(start_error)?;
    let watcher = std::thread::Builder::new().spawn(move || {
        if signals.forever().next().is_some() {
            part.send_replace(true);
        }
    });
    watcher.map_err(|source| {
        Failure::Command(CommandError::ThreadRefused { purpose: "of the server", source })
    })?;
    let outcome = runtime.block_on(async {
        let listener = TcpListener::bind(options.listen).await?;
        started(listener.local_addr()?);
        let connections = Arc::clone(&shared);
        let factory = move || Ok(McpConnection::new(Arc::clone(&connections)));
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SILENCE);
        let service = Service::new(factory, Arc::new(sessions), config(options.token.is_some()));
        let token = options.token.map(Arc::new);
        let handler = HttpHandler { service, token, parting };
        accept(&listener, &handler).await;
        handler.service.config.cancellation_token.cancel();
        shared.lanes.drain(PARTING * 2).await;
        Ok(())
    });
    runtime.shutdown_background();
    outcome.map_err(|error| start_error(error).into())
}

fn config(has_token: bool) -> StreamableHttpServerConfig {
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(BODY_BYTES)
        .with_allowed_origins(ORIGINS)
        .enforce_origin_validation();
    // A page that reaches the server by a name of its own (DNS rebinding) has no token. Behind a proxy the name is whatever
    // clients use.
    if has_token { config.disable_allowed_hosts() } else { config }
}

/// Accepts connections until the server is to end.
async fn accept(listener: &TcpListener, handler: &HttpHandler) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut parting = handler.parting.clone();
    loop {
        let accepted = tokio::select! {
            accepted = accept_one(listener, &room) => accepted,
            _ = parting.wait_for(|is_parting| *is_parting) => return,
        };
        if let Some((stream, peer, permit)) = accepted {
            let handler = handler.clone();
            tokio::spawn(async move {
                let _permit = permit;
                handler.serve(stream, peer).await;
            });
        }
    }
}

async fn accept_one(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, permit)),
        Err(_) => {
            // Most likely the process is out of descriptors; others will be closed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

impl HttpHandler {
    async fn serve(self, stream: TcpStream, peer: SocketAddr) {
        // Messages are short: waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        // Asked once: a connection does not change hands.
        let is_own = self.token.is_some() || stream.local_addr().is_ok_and(|own| is_same_user(peer, own));
        let mut parting = self.parting.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let handler = self.clone();
            async move { Ok::<_, Infallible>(handler.answer(request, is_own).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => {}
            _ = parting.wait_for(|is_parting| *is_parting) => {}
        }
    }

    async fn answer(&self, request: Request<Incoming>, is_own: bool) -> Response<BoxBody<Bytes, Infallible>> {
        let (status, message) = match &self.token {
            Some(token) if !has_token(request.headers(), token) => {
                (StatusCode::UNAUTHORIZED, "missing or invalid bearer token")
            }
            None if !is_own => {
                (StatusCode::FORBIDDEN, "connection of another user refused; use --token-file")
            }
            // The transport reads a page's origin as any URL, and takes what follows the host for nothing.
            _ if !request.headers().get_all(ORIGIN).iter().all(is_own_origin) => {
                (StatusCode::FORBIDDEN, "pages of other origins are refused")
            }
            _ if request.uri().path() != PATH => (StatusCode::NOT_FOUND, "not found; the endpoint is /mcp"),
            _ => return self.answer_message(request).await,
        };
        let code = if status == StatusCode::NOT_FOUND { Code::Usage } else { Code::CredentialRejected };
        let body = json!({ "error": Report::new(code, message).to_body() }).to_string();
        let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    async fn answer_message(&self, request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
        let is_end = request.method() == Method::DELETE;
        let mut response = self.service.handle(request).await;
        // The official client reports an end that is only accepted as a failure.
        if is_end && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        response
    }
}

/// Whether an origin is one of [`ORIGINS`], and nothing else.
fn is_own_origin(value: &HeaderValue) -> bool {
    let Ok(origin) = value.to_str() else { return false };
    ORIGINS.iter().filter_map(|own| own.strip_suffix(":*")).any(|own| {
        let Some((start, rest)) = origin.split_at_checked(own.len()) else { return false };
        let is_port = |rest: &str| {
            rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok() && !port.starts_with('+'))
        };
        start.eq_ignore_ascii_case(own) && (rest.is_empty() || is_port(rest))
    })
}

/// Whether a request shows the token, exactly once.
fn has_token(headers: &HeaderMap, token: &Secret) -> bool {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let shown = value.as_bytes().split_at_checked(7);
    let Some((scheme, shown)) = shown else { return false };
    scheme.eq_ignore_ascii_case(b"bearer ") && is_equal(shown, token.expose().as_bytes())
}

/// Compares in constant time.
fn is_equal(one: &[u8], two: &[u8]) -> bool {
    one.len() == two.len() && one.iter().zip(two).fold(0, |sum, (one, two)| sum | (one ^ two)) == 0
}
