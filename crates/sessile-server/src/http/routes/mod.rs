//! Handlers, one file for each kind of resource.

mod events;
mod history;
mod locks;
mod login;
mod messages;
mod replies;
mod service;
mod sessions;
mod state;
mod turns;

use super::route::Route;

pub(crate) use messages::last_bodies;

/// All routes.
pub(crate) fn all() -> Vec<Route> {
    let mut all = sessions::routes();
    all.extend(messages::routes());
    all.extend(state::routes());
    all.extend(turns::routes());
    all.extend(events::routes());
    all.extend(locks::routes());
    all.extend(history::routes());
    all.extend(login::routes());
    all.extend(service::routes());
    all
}
