//! The client against peers that are not a message bus.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sessile::vault::KeychainError;

use crate::SecretService;

fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Connects to a server that does this to whoever connects.
fn connect_to(serve: impl Fn(UnixStream) + Send + 'static) -> KeychainError {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bus");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    let start = Instant::now();
    let address = format!("unix:path={}", path.display());
    let error = SecretService::connect(&address, uid(), Duration::from_millis(500)).err().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    server.join().unwrap();
    assert!(matches!(error, KeychainError::Unreachable(_) | KeychainError::Protocol(_)), "{error:?}");
    error
}

/// Says yes to the user, and then this, over and over, until the client has gone.
fn after_greeting(mut stream: UnixStream, then: &[u8]) {
    let mut said = [0; 256];
    let _ = stream.read(&mut said);
    let _ = stream.write_all(b"OK 00112233\r\n");
    // It may speak again when the client has said that messages begin.
    let _ = stream.read(&mut said);
    while stream.write_all(then).is_ok() && !then.is_empty() {}
}

#[test]
fn peer_that_is_not_a_bus_fails_in_time() {
    connect_to(drop);
    connect_to(|mut stream| while stream.write_all(b"HTTP/1.1 400 Bad Request\r\nServer: x").is_ok() {});
    connect_to(|mut stream| while stream.write_all(&[0; 999]).is_ok() {});
    connect_to(|mut stream| drop(stream.read_to_end(&mut Vec::new())));
    // A byte at a time: each is in time, all together are not.
    connect_to(|mut stream| {
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    connect_to(|mut stream| while stream.write_all(b"OK 00112233\r\nl\x04\0\x01").is_ok() {});
    connect_to(|mut stream| drop(stream.write_all(b"REJECTED EXTERNAL\r\n")));
    connect_to(|stream| after_greeting(stream, b""));
    connect_to(|stream| after_greeting(stream, b"garbage"));
    connect_to(|stream| after_greeting(stream, &[0xff; 64]));
    // A message that never ends, one that is too long, and signals without end.
    connect_to(|stream| after_greeting(stream, b"l\x02\0\x01\0\0\xf0\0\x01\0\0\0\0\0\0\0"));
    let error = connect_to(|stream| after_greeting(stream, b"l\x02\0\x01\xff\xff\xff\xff\x01\0\0\0\0\0\0\0"));
    assert!(matches!(error, KeychainError::Protocol(_)), "{error:?}");
    let error = connect_to(|stream| after_greeting(stream, b"l\x04\0\x01\0\0\0\0\x01\0\0\0\0\0\0\0"));
    assert!(matches!(error, KeychainError::Unreachable(_)), "{error:?}");
}

#[test]
fn full_backlog_times_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bus");
    let listener = UnixListener::bind(&path).unwrap();
    let waiting = AtomicU32::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while UnixStream::connect(&path).is_ok() {
                waiting.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut before = u32::MAX;
        while before != waiting.load(Ordering::Relaxed) {
            before = waiting.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(300));
        }
        let (start, address) = (Instant::now(), format!("unix:path={}", path.display()));
        let error = SecretService::connect(&address, uid(), Duration::from_millis(200)).err().unwrap();
        let elapsed = start.elapsed();
        // Whoever still waits is told that nobody listens any more.
        drop(listener);
        assert!(matches!(error, KeychainError::Unreachable(_)), "{error:?}");
        assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    });
}
