//! The server on standard input and output, from its start to its end.

use std::sync::Arc;

use rmcp::serve_server;
use sessile::error::FileError;
use sessile::{Error, State};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::lanes::READERS;
use super::lines::InputEvent;
use super::server::{McpConnection, PARTING, ServerState, ToolAccess};
use super::transport::Stdio;
use crate::error::{CommandError, Failure, Outcome};

/// Error of a server that cannot start.
pub(super) fn start_error(source: std::io::Error) -> Error {
    Error::File(FileError::Io { action: "start", path: "the server".into(), source })
}

/// Runtime of a server.
pub(super) fn runtime() -> Result<Runtime, Error> {
    sessile_server::resources::require_descriptors().map_err(start_error)?;
    // The work is done by the processes of the calls and by blocking threads, so one thread is enough.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Calls that read here, and access to the state for questions and sessions.
        .max_blocking_threads(READERS + 4)
        .build()
        .map_err(start_error)
}

/// Serves until the client disconnects.
pub(crate) fn serve(state: &State, access: ToolAccess) -> Outcome {
    let runtime = runtime()?;
    let (part, parting) = watch::channel(false);
    let shared = Arc::new(ServerState::new(state, access, parting.clone()));
    // Before any call is started: a signal must end the calls, and not the server alone.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(start_error)?;
    let mut over = parting.clone();
    let refused = |source| Failure::Command(CommandError::ThreadRefused { purpose: "of the server", source });
    let started = Stdio::start(part.clone()).and_then(|(stdio, stop)| {
        let watcher = std::thread::Builder::new().spawn(move || {
            if signals.forever().next().is_some() {
                part.send_replace(true);
                let _ = stop.blocking_send(InputEvent::Stop);
            }
        });
        watcher.map(|_| stdio)
    });
    let stdio = started.map_err(refused)?;
    runtime.block_on(async {
        // A client that disconnects early, or does not read the answer, is not an error.
        let running = tokio::select! {
            running = serve_server(McpConnection::new(Arc::clone(&shared)), stdio) => running.ok(),
            _ = over.wait_for(|is_over| *is_over) => None,
        };
        if let Some(running) = running {
            let _ = running.waiting().await;
        }
        // Calls that were called off end what they started.
        shared.lanes.drain(PARTING * 2).await;
    });
    // Its threads may wait for a client that says and hears nothing.
    runtime.shutdown_background();
    Ok(())
}
