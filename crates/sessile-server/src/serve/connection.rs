//! One connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::write_timeout::WriteTimeout;
use crate::http::{Gauge, Metrics, PeerAddress};

/// Size of a request's head, at most.
const HEAD_BYTES: usize = 64 << 10;

/// Handler of connections.
#[derive(Clone)]
pub(super) struct ConnectionHandler {
    pub(super) router: Router,
    pub(super) acceptor: Option<TlsAcceptor>,
    pub(super) head: Duration,
    pub(super) answer: Duration,
    pub(super) closing: watch::Receiver<bool>,
    pub(super) metrics: Arc<Metrics>,
}

/// Accepts the next connection within the limit; `None` after an error.
pub(super) async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    // Before accepting: connections beyond the limit wait in the backlog and cost this process nothing.
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

impl ConnectionHandler {
    pub(super) async fn serve(self, stream: TcpStream, peer: SocketAddr) {
        let _counted = self.metrics.up(Gauge::Connections);
        // Answers are short: waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let stream = WriteTimeout::new(stream, self.answer);
        match self.acceptor.clone() {
            None => self.speak(stream, peer).await,
            Some(acceptor) => {
                // A client that never finishes its handshake would hold a connection forever.
                if let Ok(Ok(stream)) = tokio::time::timeout(self.head, acceptor.accept(stream)).await {
                    self.speak(stream, peer).await;
                }
            }
        }
    }

    async fn speak(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: SocketAddr) {
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(PeerAddress(peer));
            router.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.head)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        // What goes wrong with a connection is its client's to know.
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = self.closing.wait_for(|closing| *closing) => {}
        }
        // The request in flight is answered, and its response says that the connection closes.
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}
