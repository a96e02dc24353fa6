//! Counts, in the text format of Prometheus. No user and no id is in them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The upper ends of the histogram's parts, in seconds.
const ENDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Counters of the service.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    routes: Mutex<BTreeMap<(String, &'static str), Times>>,
    answers: Mutex<BTreeMap<(String, &'static str, u16), u64>>,
    in_flight: AtomicI64,
    connections: AtomicI64,
    streams: AtomicI64,
    waiting: AtomicI64,
    limited: AtomicU64,
    unrecorded: AtomicU64,
    unlogged: AtomicU64,
}

#[derive(Debug, Default)]
struct Times {
    parts: [u64; ENDS.len()],
    count: u64,
    sum: f64,
}

/// Gauges of the service.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gauge {
    InFlight,
    Connections,
    Streams,
    Waiting,
}

/// One more, until it is dropped.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Arc<Metrics>, Gauge);

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.gauge(self.1).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn up(self: &Arc<Self>, gauge: Gauge) -> GaugeGuard {
        self.gauge(gauge).fetch_add(1, Ordering::Relaxed);
        GaugeGuard(Arc::clone(self), gauge)
    }

    pub(crate) fn now(&self, gauge: Gauge) -> i64 {
        self.gauge(gauge).load(Ordering::Relaxed)
    }

    fn gauge(&self, gauge: Gauge) -> &AtomicI64 {
        match gauge {
            Gauge::InFlight => &self.in_flight,
            Gauge::Connections => &self.connections,
            Gauge::Streams => &self.streams,
            Gauge::Waiting => &self.waiting,
        }
    }

    /// Counts a request. The route is its pattern, so that names chosen by users do not become labels.
    pub(crate) fn answered(&self, route: &str, method: &'static str, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let times = routes.entry((route.to_owned(), method)).or_default();
        times.count += 1;
        times.sum += seconds;
        for (part, end) in times.parts.iter_mut().zip(ENDS) {
            *part += u64::from(seconds <= end);
        }
        drop(routes);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry((route.to_owned(), method, status)).or_default() += 1;
        drop(answers);
        if status == 429 {
            self.limited.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn unrecorded(&self, reads: usize) {
        self.unrecorded.fetch_add(reads as u64, Ordering::Relaxed);
    }

    pub(crate) fn unlogged(&self) {
        self.unlogged.fetch_add(1, Ordering::Relaxed);
    }

    /// All of it, as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
        };
        head(text, "sessile_requests_total", "counter", "Requests answered.")?;
        for ((route, method, status), count) in &*self.answers.lock().unwrap_or_else(PoisonError::into_inner)
        {
            writeln!(
                text,
                "sessile_requests_total{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}} {count}"
            )?;
        }
        let name = "sessile_request_seconds";
        head(text, name, "histogram", "Duration of responses.")?;
        for ((route, method), times) in &*self.routes.lock().unwrap_or_else(PoisonError::into_inner) {
            let labels = format!("route=\"{route}\",method=\"{method}\"");
            for (part, end) in times.parts.iter().zip(ENDS) {
                writeln!(text, "{name}_bucket{{{labels},le=\"{end}\"}} {part}")?;
            }
            writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", times.count)?;
            writeln!(text, "{name}_sum{{{labels}}} {}", times.sum)?;
            writeln!(text, "{name}_count{{{labels}}} {}", times.count)?;
        }
        for (gauge, name, help) in [
            (Gauge::InFlight, "sessile_requests_in_flight", "Requests in progress."),
            (Gauge::Connections, "sessile_connections", "Open connections."),
            (Gauge::Streams, "sessile_event_streams", "Open event streams."),
            (Gauge::Waiting, "sessile_waiting", "Requests waiting for a turn or a lock."),
        ] {
            head(text, name, "gauge", help)?;
            writeln!(text, "{name} {}", self.now(gauge))?;
        }
        for (counter, name, help) in [
            (&self.limited, "sessile_rate_limited_total", "Requests refused by a rate limit or quota."),
            (&self.unrecorded, "sessile_audit_lost_total", "Reads missing from the audit log."),
            (
                &self.unlogged,
                "sessile_log_lost_total",
                "Log lines dropped because standard error was blocked.",
            ),
        ] {
            head(text, name, "counter", help)?;
            writeln!(text, "{name} {}", counter.load(Ordering::Relaxed))?;
        }
        Ok(())
    }
}
