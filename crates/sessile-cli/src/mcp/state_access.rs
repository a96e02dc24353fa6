//! Access to the state from the asynchronous server.

use std::path::PathBuf;

use sessile::{Error, State, StateArgs, World};

use crate::settings::app;

/// Flags and directory that the state is opened with: the server's flags, the directory of a call.
#[derive(Clone, Debug)]
pub(super) struct StateLocation {
    pub(super) flags: StateArgs,
    pub(super) directory: Option<PathBuf>,
}

/// Opens the state on a blocking thread and calls a function with it.
pub(super) async fn with_state<T: Send + 'static>(
    place: StateLocation,
    what: impl FnOnce(&State) -> Result<T, Error> + Send + 'static,
) -> Result<T, String> {
    // The library is synchronous and may wait for locks.
    let done = tokio::task::spawn_blocking(move || {
        let world = World::from_process();
        let world = match place.directory {
            Some(directory) => world.with_cwd(directory),
            None => world,
        };
        what(&State::open(&app(), world, place.flags)?)
    });
    match done.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
