//! Two processes on one store, of which now and then one is killed, and a database that is restarted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::Postgres;

use super::wire::Pair;
use super::{Service, Store};

/// What goes wrong, and when.
#[derive(Clone, Copy)]
pub(super) struct Faults<'a> {
    pub(super) every: Duration,
    pub(super) at_least: usize,
    /// Restarted once, with the second kill.
    pub(super) database: Option<&'a Postgres>,
}

/// What went wrong.
#[derive(Debug, Default)]
pub(super) struct Happened {
    pub(super) kills: usize,
    pub(super) restarts: usize,
}

/// Kills one and then the other, until it is told that it is enough.
pub(super) fn make(
    faults: Faults<'_>,
    store: &Store<'_>,
    services: &mut [Service; 2],
    pair: &Pair,
    enough: &AtomicBool,
) -> Happened {
    let mut happened = Happened::default();
    loop {
        let since = Instant::now();
        while since.elapsed() < faults.every {
            if enough.load(Ordering::Relaxed) && happened.kills >= faults.at_least {
                return happened;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let which = happened.kills % 2;
        services[which].kill();
        happened.kills += 1;
        if let Some(database) = faults.database.filter(|_| happened.kills == 2) {
            database.stop();
            database.run();
            happened.restarts += 1;
        }
        services[which] = Service::start(store);
        pair.moved(which, services[which].address);
    }
}
