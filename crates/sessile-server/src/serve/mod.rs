//! The running service: listener, connections, heartbeat, TLS, and graceful shutdown.

mod connection;
mod heartbeat;
mod tls;
mod write_timeout;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use sessile::Code;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::http::{self, AnonymousLimits, AppParts, AppState, Gate, Logger, Metrics};
use crate::limits::Limits;
use crate::mcp;
use crate::resources::{require_descriptors, require_threads};
use crate::retention::{self, RetentionPolicy, SessionRetention};
use crate::store::{ServiceStore, ServiceStoreError};
use crate::upstream::Upstream;

use heartbeat::Heartbeat;

pub use crate::http::{Log, LogTo};

/// Options of the service.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address on which the service listens.
    pub listen: SocketAddr,
    /// Certificate and key, as PEM files.
    pub tls: Option<TlsFiles>,
    /// Whether a proxy terminates TLS.
    pub behind_proxy: bool,
    /// Format of the request log.
    pub log: Log,
    /// Upstream that writes replies.
    pub upstream: Option<Upstream>,
    /// Limits of requests.
    pub limits: Limits,
    /// Retention of rows. Ended sessions are kept as `session_retention` says.
    pub keep: RetentionPolicy,
    /// Retention of ended sessions.
    pub session_retention: SessionRetention,
    /// Whether reads are recorded in the audit log too; changes and refusals always are.
    pub audit_reads: bool,
    /// Grace period of a shutdown.
    pub grace: Duration,
}

/// Files of a TLS certificate.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate with its chain.
    pub cert: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 8737)),
            tls: None,
            behind_proxy: false,
            log: Log::default(),
            upstream: None,
            limits: Limits::default(),
            keep: RetentionPolicy::default(),
            session_retention: SessionRetention::default(),
            audit_reads: false,
            grace: Duration::from_secs(30),
        }
    }
}

/// Failure to start the service.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is public, and tokens would be sent without TLS.
    #[error("refusing to listen on {0} without TLS; pass --tls-cert and --tls-key, or --behind-proxy")]
    Insecure(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The certificate or the key is invalid.
    #[error("cannot use {0}: {1}")]
    Tls(PathBuf, String),
    /// A system call failed.
    #[error("{0}")]
    System(std::io::Error),
    /// The process may not start the threads of the service.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ServiceStoreError),
}

impl ServeError {
    /// The stable code.
    pub fn code(&self) -> Code {
        match self {
            ServeError::Insecure(_) => Code::Usage,
            ServeError::Listen(..) | ServeError::System(_) | ServeError::Threads(_) => Code::Io,
            ServeError::Tls(..) => Code::FileValue,
            ServeError::Store(ServiceStoreError::Unavailable(_)) => Code::Unreachable,
            ServeError::Store(ServiceStoreError::Failed(_)) => Code::Store,
            ServeError::Store(ServiceStoreError::Refused(_) | ServiceStoreError::NoPassword) => {
                Code::CredentialRejected
            }
            ServeError::Store(ServiceStoreError::TooNew { .. }) => Code::StoreTooNew,
            ServeError::Store(ServiceStoreError::Unfit(_)) => Code::InvalidValue,
        }
    }
}

/// Threads of the runtime for blocking calls.
const BLOCKING_THREADS: usize = 2;

/// Tasks that a worker thread runs before it looks for others.
const TASKS_IN_A_ROW: u32 = 8;

/// Runs the service on its own runtime until SIGTERM or SIGINT; a second signal skips the grace period. `ready` gets the
/// server when it listens.
pub fn run<O>(open: O, options: Options, ready: impl FnOnce(&Server)) -> Result<(), ServeError>
where
    O: Future<Output = Result<ServiceStore, ServiceStoreError>>,
{
    require_descriptors().map_err(ServeError::System)?;
    // The runtime has a worker for each core. Where it gets fewer it waits for them, and serves nobody meanwhile.
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    require_threads(workers + BLOCKING_THREADS).map_err(ServeError::Threads)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(workers);
    // New requests, and answers of the store, are looked for after a few tasks, and not only after many.
    runtime.enable_all().event_interval(TASKS_IN_A_ROW).global_queue_interval(TASKS_IN_A_ROW);
    let runtime = runtime.build().map_err(ServeError::System)?;
    allow_many_descriptors();
    runtime.block_on(async {
        let server = Server::bind(open.await?, options, Box::new(std::io::stderr())).await?;
        // Before `ready`, so that a supervisor that signals at once is not met by the default action.
        let told = stop_signals()?;
        ready(&server);
        tokio::select! {
            () = server.serve(times(told.clone(), 1)) => {}
            () = times(told, 2) => {}
        }
        Ok(())
    })
}

/// Raises the limit of open files as far as allowed, because every connection is a descriptor and the default limit is low.
fn allow_many_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Best effort: with fewer descriptors fewer connections are accepted.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Counter of termination signals.
fn stop_signals() -> Result<watch::Receiver<u32>, ServeError> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::System)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::System)?;
    let (count, told) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            count.send_modify(|times| *times += 1);
        }
    });
    Ok(told)
}

/// Waits for this many termination signals.
async fn times(mut told: watch::Receiver<u32>, often: u32) {
    // The counting task lives as long as the runtime.
    let _ = told.wait_for(|times| *times >= often).await;
}

/// Listening service.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    options: Options,
    router: Router,
    metrics: Arc<Metrics>,
    closing: watch::Sender<bool>,
    busy: (mpsc::Sender<()>, mpsc::Receiver<()>),
    heartbeat: Heartbeat,
    recorder: (oneshot::Sender<()>, tokio::task::JoinHandle<()>),
    log: Option<JoinHandle<()>>,
}

/// Listener with a long backlog: when another process dies, all its clients reconnect at once, and a dropped SYN is
/// retried only after a second.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    const WAITING_TO_BE_ACCEPTED: u32 = 4096;
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for connections of the old process in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING_TO_BE_ACCEPTED)
}

impl Server {
    /// Starts to listen. Log lines go to `log_to`.
    pub async fn bind(db: ServiceStore, mut options: Options, log_to: LogTo) -> Result<Self, ServeError> {
        if !options.listen.ip().is_loopback() && options.tls.is_none() && !options.behind_proxy {
            return Err(ServeError::Insecure(options.listen));
        }
        // Before listening: a wrong certificate must not take the port for a moment.
        let acceptor = options.tls.as_ref().map(tls::acceptor).transpose()?;
        let failed = |error| ServeError::Listen(options.listen, error);
        let listener = listen(options.listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let metrics = Arc::new(Metrics::default());
        let (audit, recorder) = http::audit(db.clone(), Arc::clone(&metrics));
        let (end_recording, ended) = oneshot::channel::<()>();
        let recorder = tokio::spawn(recorder.run(async move {
            // Nobody to say so means the same.
            let _ = ended.await;
        }));
        let (logger, log) = Logger::start(options.log, log_to, Arc::clone(&metrics));
        let (closing, is_closing) = watch::channel(false);
        options.keep.sessions = options.session_retention.resolve(&db).await?;
        tokio::spawn(retention::run(db.clone(), options.keep.clone(), is_closing.clone()));
        let (busy, idle) = mpsc::channel(1);
        let heartbeat = Heartbeat::new(db.clone(), Arc::clone(&metrics));
        let app = AppState::new(AppParts {
            gate: Gate::new(db, audit, options.audit_reads),
            anonymous_limits: AnonymousLimits::new(&options.limits, options.behind_proxy),
            limits: options.limits.clone(),
            upstream: options.upstream.clone(),
            metrics: Arc::clone(&metrics),
            logger,
            openapi: Bytes::from(http::openapi::document()),
            closing: is_closing,
            // Weak, so that the router itself does not keep the shutdown waiting.
            busy: busy.downgrade(),
        });
        // A certificate or a proxy vouches for a name; an address of this machine can have any.
        let router = mcp::router(app, options.tls.is_some() || options.behind_proxy);
        Ok(Server {
            listener,
            address,
            acceptor,
            options,
            router,
            metrics,
            closing,
            busy: (busy, idle),
            heartbeat,
            recorder: (end_recording, recorder),
            log,
        })
    }

    /// Address on which the service listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Retention of ended sessions; `None` if unlimited.
    pub fn session_retention(&self) -> Option<Duration> {
        self.options.keep.sessions
    }

    /// Serves until `told`. Then it accepts no connections, refuses waiters, gives active requests the grace period, and
    /// flushes the audit log.
    pub async fn serve(self, told: impl Future<Output = ()>) {
        let Server {
            listener,
            acceptor,
            options,
            router,
            metrics,
            closing,
            busy,
            heartbeat,
            recorder,
            log,
            ..
        } = self;
        let served = connection::ConnectionHandler {
            router,
            acceptor,
            head: options.limits.head,
            answer: options.limits.answer,
            closing: closing.subscribe(),
            metrics,
        };
        let mut connections = JoinSet::new();
        let room = Arc::new(Semaphore::new(options.limits.connections));
        let mut told = std::pin::pin!(told);
        loop {
            let accepted = tokio::select! {
                () = &mut told => break,
                accepted = connection::accept(&listener, &room) => accepted,
            };
            // Those that have ended are let go of.
            while connections.try_join_next().is_some() {}
            if let Some((stream, peer, permit)) = accepted {
                let served = served.clone();
                connections.spawn(async move {
                    served.serve(stream, peer).await;
                    drop(permit);
                });
            }
        }
        // The port is free from here on, so that a successor can listen while this process drains.
        drop(listener);
        closing.send_replace(true);
        let all = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(options.grace, all).await;
        // Those that outlast the grace period are aborted.
        connections.shutdown().await;
        drop(served);
        // Those who waited give their places back.
        let (holder, mut idle) = busy;
        drop(holder);
        // The channel is closed when the last task has dropped its sender.
        let _ = tokio::time::timeout(Duration::from_secs(5), idle.recv()).await;
        // Only now: without a heartbeat, other processes treat the places of this one as abandoned.
        drop(heartbeat);
        let (end_recording, recorded) = recorder;
        // After the connections, which produce the last entries of the audit log.
        drop(end_recording);
        let _ = tokio::time::timeout(Duration::from_secs(10), recorded).await;
        if let Some(log) = log {
            // Its sender went with the router.
            let _ = tokio::time::timeout(Duration::from_secs(1), tokio::task::spawn_blocking(|| log.join()))
                .await;
        }
    }
}
