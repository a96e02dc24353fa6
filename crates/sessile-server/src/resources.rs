//! Descriptors and threads that the runtime needs at its start: it panics without them.

use std::io::Result;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;

/// Pairs of descriptors for the poller, its wake-up and the signals of a runtime.
const PAIRS: usize = 4;

/// Stack of a thread that only waits.
const SMALL: usize = 1 << 16;

/// Fails if the process may not open the descriptors of a runtime.
pub fn require_descriptors() -> Result<()> {
    // All at once, and closed again before the runtime opens its own.
    let pairs: Result<Vec<_>> = (0..PAIRS).map(|_| UnixStream::pair()).collect();
    pairs.map(drop)
}

/// Fails if the process may not start this many threads.
pub(crate) fn require_threads(count: usize) -> Result<()> {
    let (release, waiting) = mpsc::channel::<()>();
    let waiting = std::sync::Arc::new(std::sync::Mutex::new(waiting));
    let start = |_| {
        let waiting = std::sync::Arc::clone(&waiting);
        let wait = move || {
            // Ends with the sender, which is dropped when every thread has been started.
            if let Ok(waiting) = waiting.lock() {
                let _ = waiting.recv();
            }
        };
        std::thread::Builder::new().stack_size(SMALL).spawn(wait)
    };
    // Kept until all are there: one after the other would prove nothing.
    let (started, refused): (Vec<_>, Vec<_>) = (0..count).map(start).partition(Result::is_ok);
    drop(release);
    for thread in started.into_iter().flatten() {
        let _ = thread.join();
    }
    refused.into_iter().find_map(Result::err).map_or(Ok(()), Err)
}
