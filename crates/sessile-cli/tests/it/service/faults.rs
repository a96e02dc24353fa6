//! Two processes on one store, of which now and then one is killed, and a database that is restarted or fails over.

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
    /// Once, with the second kill.
    pub(super) outage: Option<Outage<'a>>,
}

/// What happens to a database.
#[derive(Clone, Copy)]
pub(super) enum Outage<'a> {
    Restart(&'a Postgres),
    /// It is gone for good, and another goes on for it.
    FailOver {
        from: &'a Postgres,
        to: &'a Postgres,
    },
}

impl Outage<'_> {
    fn happen(self) {
        match self {
            Outage::Restart(database) => {
                database.stop();
                database.run();
            }
            Outage::FailOver { from, to } => {
                from.crash();
                to.promote();
            }
        }
    }
}

/// What went wrong.
#[derive(Debug, Default)]
pub(super) struct FaultRecord {
    pub(super) kills: usize,
    pub(super) outages: usize,
}

/// Kills one and then the other, until it is told that it is enough.
pub(super) fn make(
    faults: Faults<'_>,
    store: &Store<'_>,
    services: &mut [Service; 2],
    pair: &Pair,
    enough: &AtomicBool,
) -> FaultRecord {
    let mut happened = FaultRecord::default();
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
        if let Some(outage) = faults.outage.filter(|_| happened.kills == 2) {
            outage.happen();
            happened.outages += 1;
        }
        services[which] = Service::start(store);
        pair.moved(which, services[which].address);
    }
}
