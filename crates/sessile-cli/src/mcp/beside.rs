//! Looking into the state beside everything else.

use std::path::PathBuf;

use sessile::{Error, State, StateArgs, World};

use crate::settings::app;

/// From where the state is looked at: with the server's flags, in the directory of a call.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) flags: StateArgs,
    pub(super) directory: Option<PathBuf>,
}

/// Does something with the state as it is now, on another thread.
pub(super) async fn with_state<T: Send + 'static>(
    place: Place,
    what: impl FnOnce(&State) -> Result<T, Error> + Send + 'static,
) -> Result<T, String> {
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
